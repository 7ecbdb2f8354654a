"""Artifact that remembers its latest forecasts: a new price costs one call, not one for every past origin."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

from torch import Tensor

from torchcommodity.export import Artifact, Metadata

CAPACITY = 512  # more than a document needs: a year of outcomes and half a year of horizons


@dataclass
class CachedArtifact:
    """Artifact whose forecasts from the same rows are computed once.

    Args:
        artifact: makes the forecasts.
    """

    artifact: Artifact
    _forecasts: OrderedDict[bytes, Tensor] = field(default_factory=OrderedDict, init=False)

    @property
    def metadata(self) -> Metadata:
        """Metadata of the artifact."""
        return self.artifact.metadata

    def __call__(self, prices: Tensor, days: Tensor) -> Tensor:
        """Cumulative log-return quantiles (B, H, N, Q), as of the artifact."""
        digest = hashlib.sha256()
        for tensor in (prices, days):
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.contiguous().numpy().data)
        key = digest.digest()
        if key not in self._forecasts:
            self._forecasts[key] = self.artifact(prices, days)
        self._forecasts.move_to_end(key)
        if len(self._forecasts) > CAPACITY:
            self._forecasts.popitem(last=False)
        return self._forecasts[key]

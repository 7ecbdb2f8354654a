"""Forecasts of the artifact at past origins, each from the rows up to its origin, and their outcomes."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel, target_rows, targets
from torchcommodity.export import Artifact, Metadata, panel_inputs
from torchcommodity.models import positive_prices
from torchcommodity.training import one_thread

OUTCOME_ROWS = {"daily": 250, "weekly": 104, "monthly": 60}  # about one year of trading days
OUTLOOK_ORIGINS = 2  # the newest row, and the one before it for the change since the previous forecast
CAPACITY = (
    512  # forecasts that are remembered, more than a document needs: a year of outcomes and half a year of horizons
)


@dataclass
class CachedArtifact:
    """Artifact whose forecasts from the same rows are computed once: a new price costs one call, not one per origin.

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


@dataclass(frozen=True)
class PastForecasts:
    """Forecasts at all origins from `first_origin` to the last row of the panel, and their outcomes.

    An outcome is the target of `forecast.score`: ln of the symbol's h-th later positive price over the one of row t;
    NaN if row t has no price or the h-th later one is in the future. Of a symbol with a price scale, quantiles and
    outcomes are changes of asinh(P / S).
    """

    first_origin: int  # row
    first_outcome: int  # row; outcomes before it are left out
    quantiles: Tensor  # (P, H, N, Q) cumulative log-return
    outcomes: Tensor  # (P, H, N) cumulative log-return
    target_rows: Tensor  # (P, H, N) int64, rows of the outcomes; -1 without one

    def known_origins(self, h: int, n: int) -> np.ndarray:
        """Rows of the origins of symbol n whose forecast at the h-th horizon has an outcome."""
        known = torch.isfinite(self.outcomes[:, h, n]) & torch.isfinite(self.quantiles[:, h, n]).all(-1)
        recent = self.target_rows[:, h, n] >= self.first_outcome
        origins: np.ndarray = self.first_origin + np.flatnonzero((known & recent).numpy())
        return origins


@one_thread()
def past_forecasts(artifact: Artifact | CachedArtifact, panel: Panel, outcome_rows: int | None = None) -> PastForecasts:
    """Forecasts for the last `outcome_rows` rows at all horizons; the last origin is the newest row.

    By default a year of days, two years of weeks or five years of months. With 0 only the last two forecasts, of which
    the outlook is made, and no outcomes.

    There is no look-ahead: the forecast at row t is a call of the artifact with the rows up to t only. Each origin is
    one call, which takes milliseconds with `pt2` and some tenths of a second with `onnx`.

    Raises:
        ValueError: the artifact rejects the panel, for example because it has too few rows.
    """
    prices, days = panel_inputs(artifact.metadata, panel)
    max_horizon, last = max(artifact.metadata.horizons), len(panel) - 1
    outcome_rows = OUTCOME_ROWS[artifact.metadata.frequency] if outcome_rows is None else outcome_rows
    first_outcome = max(last + 1 - outcome_rows, 0)
    rows_before = max_horizon if outcome_rows else OUTLOOK_ORIGINS
    first_origin = min(max(artifact.metadata.min_rows - 1, first_outcome - rows_before), last)
    origins = _until_exit(range(first_origin, len(panel)))
    quantiles = torch.cat([artifact(prices[:, : t + 1], days[:, : t + 1]) for t in origins])
    positive = positive_prices(panel.values.plain(), artifact.metadata.price_scale)
    outcomes, ends = (f(positive, artifact.metadata.horizons)[first_origin:] for f in (targets, target_rows))
    return PastForecasts(first_origin, first_outcome, quantiles, outcomes, ends)


def _until_exit(rows: Iterable[int]) -> Iterator[int]:
    """Yield the rows until the program exits: a thread that is stopped inside torch would crash the process."""
    for row in rows:
        if not threading.main_thread().is_alive():
            raise SystemExit  # ends this thread silently
        yield row

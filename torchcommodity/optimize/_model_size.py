"""Size of a forecaster: parameters, sparsity, bytes."""

from typing import NamedTuple

from torchcommodity.forecast import Forecaster
from torchcommodity.training import network_state


class ModelSize(NamedTuple):
    """Size of the network; `file_bytes` also includes the econometric part and the record of the fit."""

    parameters: int
    sparsity: float  # share of the parameters that are zero
    bytes: int
    file_bytes: int

    def __str__(self) -> str:
        network = f"{self.parameters:,} parameters, {self.sparsity:.0%} zero, {self.bytes:,} bytes"
        return f"{network}; file {self.file_bytes:,} bytes"


def model_size(forecaster: Forecaster) -> ModelSize:
    """Count parameters, zeros and bytes of a forecaster's network, and the bytes of its file.

    Args:
        forecaster: result of `forecast.fit` or `Forecaster.load`; a model without a network has no parameters.

    Example:
        >>> from torchcommodity import data, forecast
        >>> model_size(forecast.fit(data.embedded(["WTI"]).between("2012-01-01", "2018-12-31"))).parameters
        0
    """
    tensors = network_state(forecaster.model).values()
    count = sum(x.numel() for x in tensors)
    zeros = sum(int((x == 0).sum()) for x in tensors)
    return ModelSize(count, zeros / max(count, 1), sum(x.nbytes for x in tensors), len(forecaster.to_bytes()))

"""How large a forecaster is: numbers, zeros among them, bytes."""

from typing import NamedTuple

from torchcommodity.forecast import Forecaster
from torchcommodity.training import network_state


class Size(NamedTuple):
    """Of the network alone, but for `file`: the whole file with the econometric part and the record of the fit."""

    parameters: int
    zeros: float  # share of the parameters
    bytes: int
    file: int  # bytes

    def __str__(self) -> str:
        return f"{self.parameters:,} parameters, {self.zeros:.0%} zero, {self.bytes:,} bytes; file {self.file:,} bytes"


def size(forecaster: Forecaster) -> Size:
    """Count what the network holds and what the forecaster's file takes."""
    state = network_state(forecaster.model).values()
    count = sum(x.numel() for x in state)
    zeros = sum(int((x == 0).sum()) for x in state)
    return Size(count, zeros / max(count, 1), sum(x.nbytes for x in state), len(forecaster.to_bytes()))

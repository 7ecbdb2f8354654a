"""What a forecaster is asked when it is measured: the last rows of real prices, several times over."""

from typing import Any

from torch import Tensor

from torchcommodity.training import ModelInputs


def batch(past: ModelInputs, rows: int, size: int, ahead: int) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The last `rows` rows as a batch of `size` forecasts, with the rolls of `ahead` coming days."""
    held = len(past.prices)
    if not 1 <= rows <= held or size < 1:
        raise ValueError(f"optimize: rows must be in [1, {held}] and size at least 1; got rows={rows}, size={size}")

    def repeated(x: Tensor | None, first: int, stop: int | None = None) -> Any:
        return None if x is None else x[first:stop].repeat(size, *(1,) * x.dim())

    start = held - rows
    return (
        repeated(past.prices, start),
        repeated(past.rolls, start, held + ahead),
        repeated(past.curve, start),
    )

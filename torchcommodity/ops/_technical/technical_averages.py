"""Components of the relative strength index (RSI): price changes and their averages."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


def windows(x: Tensor, window: int) -> Tensor:
    """(..., T, N) -> (..., T, N, W): rows t-W+1 to t, NaN before the first row."""
    return pad(x, (0, 0, window, 0), value=torch.nan).unfold(-2, window, 1)[..., 1:, :, :]


def changes(x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Changes from the last price, zero where undefined, and where they are defined.

    "simple" requires a price in the previous row; "wilder" takes the last one before a gap.
    """
    finite = x.isfinite()
    last = linear_recurrence((~finite).to(x), x.where(finite, 0))
    has_last = finite if mode == "simple" else finite.cumsum(-2) > 0
    valid = finite & (shift(has_last.to(x)) > 0)  # as a number: Inductor does not compile a padded bool
    return (x - shift(last)).where(valid, 0), valid


def shift(x: Tensor) -> Tensor:
    """x_{t-1}, zero in the first row."""
    return pad(x, (0, 0, 1, 0))[..., :-1, :]


def carry_factor(valid: Tensor, rsi: int, dtype: torch.dtype) -> Tensor:
    """Factor of the previous Wilder average: 1 for the first `rsi` changes and where there is no change."""
    return 1 - (valid & (valid.cumsum(-2) > rsi)).to(dtype) / rsi


def averages(change: Tensor, valid: Tensor, rsi: int, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """Average gain and average loss per step, and where they are defined."""
    moves = torch.stack([change.clamp(min=0), -change.clamp(max=0)]) / rsi
    if mode == "simple":
        gains, losses = window_sum(moves, rsi)
        return gains, losses, window_sum(valid.to(torch.int64), rsi) == rsi
    gains, losses = linear_recurrence(carry_factor(valid, rsi, moves.dtype), moves)
    return gains, losses, valid.cumsum(-2) >= rsi

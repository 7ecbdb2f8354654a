"""What RSI is made of, as formulas: changes of the price, and their averages."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


def windows(x: Tensor, window: int) -> Tensor:
    """(..., T, N) -> (..., T, N, W): row t holds rows t-W+1 .. t, NaN before the first."""
    return pad(x, (0, 0, window, 0), value=torch.nan).unfold(-2, window, 1)[..., 1:, :, :]


def changes(x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Price less the last one there was, and where there are both; "simple" asks for the price of the row before."""
    finite = x.isfinite()
    last = linear_recurrence((~finite).to(x), x.where(finite, 0))
    known = finite if mode == "simple" else finite.cumsum(-2) > 0
    known = finite & (delayed(known.to(x)) > 0)  # a padded bool is more than Inductor can compile
    return (x - delayed(last)).where(known, 0), known


def delayed(x: Tensor) -> Tensor:
    return pad(x, (0, 0, 1, 0))[..., :-1, :]


def keep(known: Tensor, rsi: int, dtype: torch.dtype) -> Tensor:
    """The factor of yesterday's average: 1 while the first `rsi` changes are summed, and where there is no change."""
    return 1 - (known & (known.cumsum(-2) > rsi)).to(dtype) / rsi


def averages(change: Tensor, known: Tensor, rsi: int, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """Average gain, average loss, and where they are defined."""
    moves = torch.stack([change.clamp(min=0), -change.clamp(max=0)]) / rsi
    if mode == "simple":
        gains, losses = window_sum(moves, rsi)
        return gains, losses, window_sum(known.to(torch.int64), rsi) == rsi
    gains, losses = linear_recurrence(keep(known, rsi, moves.dtype), moves)
    return gains, losses, known.cumsum(-2) >= rsi

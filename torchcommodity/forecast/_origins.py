"""Where a forecast starts: each symbol's last positive price."""

from collections.abc import Sequence

import torch
from torch import Tensor


def origins(prices: Tensor) -> tuple[Tensor, Tensor]:  # (..., T, N) -> (..., N) int64, (..., N)
    """The row of each symbol's last positive price, and that price: zero, negative and NaN have no log-return."""
    known = torch.isfinite(prices) & (prices > 0)
    row = prices.shape[-2] - 1 - known.flip(-2).int().argmax(-2)
    return row, prices.gather(-2, row.unsqueeze(-2)).squeeze(-2)


def check_warm(prices: Tensor, symbols: Sequence[str], warmup: int) -> None:
    """A ValueError where one of N symbols has no more than `warmup` positive prices among (T, N)."""
    known = (torch.isfinite(prices) & (prices > 0)).sum(0).tolist()
    if short := [f"{symbol} {count}" for symbol, count in zip(symbols, known) if count <= warmup]:
        raise ValueError(f"every symbol must have more than {warmup} positive prices; got {', '.join(short)}")

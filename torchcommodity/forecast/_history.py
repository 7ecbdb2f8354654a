"""What a symbol's price history must have, and where its forecast starts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchcommodity.data import summarize_names


def last_prices(prices: Tensor) -> tuple[Tensor, Tensor]:  # (..., T, N) -> (..., N) int64, (..., N)
    """The row of each symbol's last positive price, and that price: zero, negative and NaN have no log-return."""
    positive = torch.isfinite(prices) & (prices > 0)
    row = prices.shape[-2] - 1 - positive.flip(-2).int().argmax(-2)
    return row, prices.gather(-2, row.unsqueeze(-2)).squeeze(-2)


def check_warmup(prices: Tensor, symbols: Sequence[str], warmup: int) -> None:
    """ValueError if a symbol has no more than `warmup` positive prices; prices (T, N), N symbols."""
    counts = (torch.isfinite(prices) & (prices > 0)).sum(0).tolist()
    if short := [f"{symbol} {count}" for symbol, count in zip(symbols, counts) if count <= warmup]:
        raise ValueError(f"every symbol must have more than {warmup} positive prices; got {summarize_names(short)}")

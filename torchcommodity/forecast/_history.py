"""What a forecast needs of a price history: enough prices for the warm-up, and the last price of each symbol."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchcommodity.data import summarize_names


def check_warmup(prices: Tensor, symbols: Sequence[str], warmup: int) -> None:
    """Raise ValueError if a symbol has no more than `warmup` positive prices, or only equal ones; prices (T, N)."""
    positive = _positive(prices)
    counts = positive.sum(0).tolist()
    if short := [f"{symbol} {count}" for symbol, count in zip(symbols, counts) if count <= warmup]:
        raise ValueError(f"every symbol must have more than {warmup} positive prices; got {summarize_names(short)}")
    varies = prices.where(positive, torch.inf).amin(0) < prices.where(positive, -torch.inf).amax(0)
    if constant := [symbol for symbol, is_varying in zip(symbols, varies.tolist()) if not is_varying]:
        raise ValueError(f"the prices of every symbol must vary; got constant prices for {summarize_names(constant)}")


def last_prices(prices: Tensor) -> tuple[Tensor, Tensor]:  # (..., T, N) -> (..., N) int64, (..., N)
    """Row of each symbol's last positive price, and that price."""
    row = prices.shape[-2] - 1 - _positive(prices).flip(-2).int().argmax(-2)
    return row, prices.gather(-2, row.unsqueeze(-2)).squeeze(-2)


def _positive(prices: Tensor) -> Tensor:
    return torch.isfinite(prices) & (prices > 0)

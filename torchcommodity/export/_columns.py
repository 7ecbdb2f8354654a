"""Columns of the prices of an artifact: symbols, references, closes of the curves of spot prices, and bars."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

BAR = 3  # open, high, low


class Columns(NamedTuple):
    """What the columns of prices (..., T, C) are; None where there is none of the kind."""

    symbols: Tensor  # (..., T, N)
    references: Tensor | None  # (..., T, R)
    curve: Tensor | None  # (..., T, N, K), NaN for a symbol without
    bars: Tensor | None  # (..., T, N, 3), NaN for a symbol without


class ColumnLayout(NamedTuple):
    """Which columns of the prices are what, for the graph and for what it does not say.

    Args:
        symbols: N, the first columns.
        references: R, the next ones.
        products: P, whose closes come next.
        contracts: K columns of each product.
        curves: for each symbol the number of its product; P = it has none.
        ranges: U, the number of symbols with bars, three columns each, the last ones.
        bars: for each symbol its number among those; U = it has none. Empty for a model without bars.
    """

    symbols: int
    references: int
    products: int
    contracts: int
    curves: tuple[int, ...]
    ranges: int
    bars: tuple[int, ...]

    @classmethod
    def of(
        cls,
        symbols: Sequence[str],
        references: Sequence[str],
        curve_of: Sequence[str | None],
        closes: Sequence[str],
        ranges: Sequence[str],
        has_bars: bool,
    ) -> "ColumnLayout":
        """The layout of the columns of these names; `closes` are those of `models.Basis`, `has_bars` of its config."""
        products = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in closes))
        P, U = len(products), len(ranges)
        curves = tuple(P if code is None else products.index(code) for code in curve_of)
        bars = tuple(list(ranges).index(symbol) if symbol in ranges else U for symbol in symbols if has_bars)
        return cls(len(symbols), len(references), P, len(closes) // max(P, 1), curves, U, bars)

    @property
    def columns(self) -> int:
        """C, their number."""
        return self.symbols + self.references + self.products * self.contracts + BAR * self.ranges

    def split(self, prices: Tensor) -> Columns:  # (..., T, C)
        """The columns by what they are."""
        sizes = [self.symbols, self.references, self.products * self.contracts, BAR * self.ranges]
        symbols, references, closes, bars = prices.split(sizes, -1)
        return Columns(
            symbols,
            references if self.references else None,
            _by_symbol(closes, self.contracts, self.curves) if self.products else None,
            _by_symbol(bars, BAR, self.bars) if self.bars else None,
        )


def _by_symbol(columns: Tensor, each: int, places: Sequence[int]) -> Tensor:  # (..., T, P K) -> (..., T, N, K)
    groups = columns.unflatten(-1, (columns.shape[-1] // each, each))
    none = torch.full_like(groups[..., :1, :], torch.nan)
    return torch.cat([groups, none], -2).index_select(-2, torch.tensor(places, device=columns.device))

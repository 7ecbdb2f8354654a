"""The futures curve: closes of the nearby contracts of several products over the same dates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchcommodity.data._core.calendar import Frequency
from torchcommodity.data._core.contracts import CONTRACTS, get_contract
from torchcommodity.data._core.errors import DataError, Finding, make_finding, summarize_names
from torchcommodity.data._core.prices import MIN_CHANGES, Dates, expected_range, overflows

MAX_MEDIAN_DISTANCE = 0.1  # in log price; a front contract further from the price is another series
MAX_DAYS_BEFORE_END = np.timedelta64(10, "D")
MONTHS_PER_YEAR = 12
MAX_FACTOR = 2.0  # a front contract further from the price on any day is in another unit
NEAR = 10.0  # unless it is within so many mean changes of the price


@dataclass(frozen=True)
class Curve:
    """Closes of nearby contracts as read, before they are aligned with a panel.

    Args:
        values: closes `(T, N, C)`, contract 1 in column 0; in the units of the file; NaN = missing.
        dates: `(T,)`, strictly increasing.
        symbols: N names, of series or of products.
        findings: data-quality warnings.
    """

    values: torch.Tensor
    dates: Dates
    symbols: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    def align(self, dates: Dates, symbols: Sequence[str]) -> torch.Tensor:
        """Closes for these dates and symbols, `(len(dates), len(symbols), C)`; NaN where the curve has none.

        Raises:
            DataError: no date or no symbol of the curve matches.
        """
        shared, curve_rows, rows = np.intersect1d(self.dates, dates, assume_unique=True, return_indices=True)
        known = [n for n, symbol in enumerate(symbols) if symbol in self.symbols]
        if not len(shared) or not known:
            raise DataError(
                f"curve: expected rows of {summarize_names(symbols)} from {dates[0]} to {dates[-1]}; "
                f"got {summarize_names(self.symbols)} from {self.dates[0]} to {self.dates[-1]}"
            )
        closes = self.values.new_full((len(dates), len(symbols), self.values.shape[-1]), torch.nan)
        for n in known:
            column = self.symbols.index(symbols[n])
            closes[torch.from_numpy(rows), n] = self.values[torch.from_numpy(curve_rows), column]
        return closes

    def spot_products(self, symbols: Iterable[str]) -> dict[str, str]:
        """Product of each of these spot prices that the table of products names, if the curve has it."""
        products = {contract.spot: code for code, contract in CONTRACTS.items() if contract.spot}
        codes = {symbol: products[symbol] for symbol in symbols if symbol in products}
        return {symbol: code for symbol, code in codes.items() if {symbol, code} & {*self.symbols}}

    def column_names(self, products: Mapping[str, str | None]) -> list[str]:
        """Name of the curve of each symbol, its own or that of its product, whether or not the curve has it."""
        return [symbol if symbol in self.symbols else code or symbol for symbol, code in products.items()]

    def check_end(self, dates: Dates, symbols: Sequence[str]) -> list[Finding]:
        """A finding for each symbol whose last close is more than `MAX_DAYS_BEFORE_END` days before the last date."""
        findings = []
        for n, symbol in enumerate(self.symbols):
            rows = torch.isfinite(self.values[:, n, 0]).nonzero()
            if symbol in symbols and len(rows) and dates[-1] - self.dates[int(rows[-1])] > MAX_DAYS_BEFORE_END:
                last = self.dates[int(rows[-1])]
                findings.append(make_finding("curve ended", symbol, last, value=f"the prices end on {dates[-1]}"))
        return findings


def check_curve(
    curve: torch.Tensor,
    prices: torch.Tensor,
    symbols: tuple[str, ...],
    dates: Dates,
    curve_of: tuple[str | None, ...],
) -> torch.Tensor:
    """Check shape, finiteness and unit of a curve; return it `(T, N, C)` as float64 without metadata.

    Where both are positive, the front contract must lie within a factor of 2, or 10 mean changes, of the price of a
    future on every day: vendors may roll on different days, but more means another unit. A spot price may be in another
    unit than the futures, and gas of a cold day cost six times as much.

    Raises:
        DataError: one of the checks fails.
    """
    closes = torch.as_tensor(curve, dtype=torch.float64).as_subclass(torch.Tensor)
    if closes.ndim != 3 or closes.shape[:2] != prices.shape or not closes.shape[2]:
        expected = f"({prices.shape[0]}, {prices.shape[1]}, contracts)"
        raise DataError(f"curve: expected closes of shape {expected}; got {tuple(closes.shape)}")
    if (unusable := closes[overflows(closes)]).numel():
        raise DataError(f"curve: expected {expected_range(unusable[0].item())}")
    for n, symbol in enumerate(symbols):
        changes = prices[:, n][~prices[:, n].isnan()].diff().abs()
        size = changes.mean() if len(changes) >= MIN_CHANGES else 0.0  # a spread near zero may be half of its contract
        is_near = (closes[:, n, 0] - prices[:, n]).abs() <= NEAR * size
        distance = _log_distance(closes[:, n, 0], prices[:, n]).masked_fill(is_near, 0.0)
        row = int(distance.argmax())
        if curve_of[n] is None and distance[row] > np.log(MAX_FACTOR):
            got = f"{float(closes[row, n, 0]):g} on {dates[row]}, when the price was {float(prices[row, n]):g}"
            raise DataError(f"curve: expected the first contract of {symbol!r} in the unit of its price; got {got}")
    return closes


def check_curve_of(
    curve_of: tuple[str | None, ...], symbols: tuple[str, ...], contracts: tuple[str | None, ...]
) -> None:
    """Raise a `DataError` unless each product is of a spot price, and has a contract for every month."""
    if len(curve_of) != len(symbols):
        raise DataError(f"curve_of: expected a product or None for each of {len(symbols)} symbols; got {len(curve_of)}")
    monthly = [code for code, contract in CONTRACTS.items() if len(contract.months) == MONTHS_PER_YEAR]
    for symbol, code, contract in zip(symbols, curve_of, contracts):
        if code is not None and get_contract(code).code not in monthly:
            raise DataError(
                f"curve_of: expected a product with a contract for every month, {', '.join(monthly)}; "
                f"got {symbol}={code}"
            )
        if code is not None and contract is not None:
            raise DataError(f"curve_of: expected spot prices; got {symbol}, a future of {contract}")


def check_spot_curve(curve: torch.Tensor, frequency: Frequency) -> None:
    """Raise a `DataError` for the curve of spot prices with one contract, or of weekly or monthly prices."""
    if frequency != "daily":
        raise DataError(f"curve: expected daily prices beside the curve of a spot price; got {frequency} ones")
    if curve.ndim == 3 and curve.shape[2] < 2:
        raise DataError("curve: expected at least two contracts for a spot price; got one")


def check_same_series(curve: torch.Tensor, prices: torch.Tensor, symbols: Sequence[str]) -> None:
    """Raise a `DataError` if the first contract of a symbol is more than 10 % off the price on half of the days."""
    for n, symbol in enumerate(symbols):
        known = (curve[:, n, 0] > 0) & (prices[:, n] > 0)
        median = float(_log_distance(curve[:, n, 0], prices[:, n])[known].median()) if known.any() else 0.0
        if median > MAX_MEDIAN_DISTANCE:
            raise DataError(
                f"curve: expected the first contract of {symbol!r} near its price; got a median distance of "
                f"{median:.1%}"
            )


def _log_distance(front: torch.Tensor, price: torch.Tensor) -> torch.Tensor:
    """|ln front - ln price|; zero where one of them has no logarithm."""
    positive = (front > 0) & (price > 0)
    return torch.where(positive, front / price, 1.0).log().abs()

"""What the fields of a panel must be, and when they are equal."""

import numpy as np
import torch

from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Dates, expected_range, overflows
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._core.synthetic import SYNTHETIC, is_synthetic


def check_contracts(contracts: tuple[str | None, ...], symbols: tuple[str, ...]) -> None:
    """Raise a `DataError` unless each symbol has one known product code or None."""
    if len(contracts) != len(symbols):
        raise DataError(
            f"panel: expected a contract or None for each of {len(symbols)} symbols; got {len(contracts)} contracts"
        )
    for code in contracts:
        if code is not None:
            get_contract(code)


def is_generated(symbol: str, record: Provenance) -> bool:
    """Whether a column is marked as generated, in its symbol or its publisher."""
    return is_synthetic(symbol) or SYNTHETIC in record.publisher.split(", ")


def check_shape(
    prices: torch.Tensor,
    dates: Dates,
    symbols: tuple[str, ...],
    units: tuple[str, ...],
    provenance: tuple[Provenance, ...],
) -> None:
    """Shapes agree, nothing is empty, symbols are distinct."""
    expected = (len(dates), len(symbols))
    if tuple(prices.shape) != expected or 0 in expected:
        raise DataError(
            f"panel: expected values of shape (dates, symbols) = {expected}, none of them 0; got {tuple(prices.shape)}"
        )
    if not len(symbols) == len(units) == len(provenance):
        got = f"{len(units)} and {len(provenance)}"
        raise DataError(f"panel: expected a unit and a provenance for each of {len(symbols)} symbols; got {got}")
    if len(set(symbols)) < len(symbols):
        repeated = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise DataError(f"panel: expected distinct symbols; got {repeated!r} twice")


def check_values(
    prices: torch.Tensor,
    dates: Dates,
    symbols: tuple[str, ...],
    provenance: tuple[Provenance, ...],
) -> None:
    """Dates increase, prices are finite or NaN, and synthetic values are marked."""
    if np.isnat(dates).any():
        raise DataError("panel: expected dates; got NaT")
    if (late := np.flatnonzero(np.diff(dates) <= np.timedelta64(0, "D"))).size:
        before, after = dates[late[0]], dates[late[0] + 1]
        hint = "; convert intraday prices to daily closes, e.g. frame.resample('D').last()" if before == after else ""
        raise DataError(f"panel: expected strictly increasing dates; got {before}, then {after}{hint}")
    if is_synthetic(prices) and not any(map(is_generated, symbols, provenance)):
        raise DataError(
            f"panel: expected {SYNTHETIC!r} as publisher of synthetic values; got {provenance[0].publisher!r}"
        )
    if (unusable := torch.nonzero(overflows(prices))).numel():
        row, column = unusable[0].tolist()
        where = f"for {symbols[column]!r} on {dates[row]}"
        raise DataError(f"panel: expected {expected_range(prices[row, column].item())} {where}")


def same_values(x: torch.Tensor | None, y: torch.Tensor | None) -> bool:
    """Whether two tensors have the same shape and values; NaN equals NaN."""
    if x is None or y is None:
        return x is y
    return bool(x.shape == y.shape) and torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)


def same_months(x: Dates | None, y: Dates | None) -> bool:
    """Whether two arrays of months are equal; NaT equals NaT."""
    if x is None or y is None:
        return x is y
    return np.array_equal(x.astype(np.int64), y.astype(np.int64))

"""The days on which a front-month series passes to the next contract, behind and ahead."""

from typing import Any

import numpy as np

from torchcommodity.data._contracts import Contract, contract
from torchcommodity.data._errors import DataError
from torchcommodity.data._expiry import Days, business_days

Prices = np.ndarray[Any, np.dtype[np.float64]]
Months = np.ndarray[Any, np.dtype[np.int64]]


def roll_days(code: str, first: np.datetime64, last: np.datetime64) -> Days:
    """The first trading days of every new front from `first` to `last`, both included, increasing; by the rule alone.

    >>> roll_days("CL", np.datetime64("2020-04-01"), np.datetime64("2020-06-30")).astype(str).tolist()
    ['2020-04-22', '2020-05-20', '2020-06-23']
    """
    product = contract(code)
    days = product.roll_days(_deliveries(product, first, last))
    found: Days = days[(days >= first) & (days <= last)]
    return found


def roll_months(code: str, dates: Days, ahead: int = 126) -> Months:
    """Which rows begin a new front contract: 0, or the calendar month 1 ... 12 of the roll.

    A roll stands on the first row from the rule's day on; a roll before the first row is not told. The rows ahead are
    the exchange's next business days, so that a flag depends on the rule and on earlier rows, never on later ones.

    Args:
        code: an exchange product code, a key of `CONTRACTS`.
        dates: `(T,)`, strictly increasing.
        ahead: business days to go on after the last row.

    Returns:
        `(T + ahead,)` int64. Where two rolls fall on one row (a hole in the dates), the later one's month.

    Raises:
        DataError: an unknown code, dates that do not increase, `ahead` < 0.

    Source: the rule of each product, `CONTRACTS[code].source`.

    >>> rows = np.arange("2020-04-20", "2020-04-24", dtype="datetime64[D]")
    >>> roll_months("CL", rows, ahead=0).tolist()
    [0, 0, 4, 0]
    """
    rows = _rows(code, dates, ahead)
    found = np.zeros(len(rows), dtype=np.int64)
    if len(rows):
        days = roll_days(code, rows[0], rows[-1])
        found[np.searchsorted(rows, days)] = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return found


def priced_rolls(code: str | None, dates: Days, prices: Prices, ahead: int) -> Months:
    """`roll_months` of a column with prices `(T,)`: each flag moved on to the next row that has a positive price.

    A roll before the first price is none. None as code is spot: no roll.
    """
    if code is None:
        return np.zeros(len(dates) + ahead, dtype=np.int64)
    scheduled = roll_months(code, dates, ahead)
    priced = np.append(np.isfinite(prices) & (prices > 0), np.ones(ahead, dtype=bool))
    rows = np.flatnonzero(priced)
    days = np.flatnonzero(scheduled)
    days = days[days >= rows[0]] if rows.size else days[:0]
    place = np.searchsorted(rows, days)
    reached = place < rows.size
    found = np.zeros_like(scheduled)
    found[rows[place[reached]]] = scheduled[days[reached]]
    return found


def check_contracts(contracts: tuple[str | None, ...], symbols: tuple[str, ...]) -> None:
    """One known product code or None for each symbol, or a `DataError`."""
    if len(contracts) != len(symbols):
        raise DataError(
            f"panel: expected a contract or None for each of {len(symbols)} symbols; got {len(contracts)} contracts"
        )
    for code in contracts:
        if code is not None:
            contract(code)


def _rows(code: str, dates: Days, ahead: int) -> Days:
    days = np.asarray(dates, dtype="datetime64[D]")
    if days.ndim != 1 or np.isnat(days).any() or (np.diff(days) <= np.timedelta64(0, "D")).any():
        raise DataError(f"rolls: expected strictly increasing dates (T,); got shape {days.shape}, {days[:3]} ...")
    if ahead < 0:
        raise DataError(f"rolls: expected ahead >= 0 rows; got {ahead}")
    if not len(days):
        raise DataError("rolls: expected at least one date; got none")
    open_days = business_days(contract(code).market)
    following = np.busday_offset(days[-1], np.arange(1, ahead + 1), roll="backward", busdaycal=open_days)
    rows: Days = np.concatenate([days, following])
    return rows


def _deliveries(product: Contract, first: np.datetime64, last: np.datetime64) -> Days:
    """Every delivery month whose contract can end between two days: it ends at most two months before delivery."""
    months = np.arange(first.astype("datetime64[M]") - 1, last.astype("datetime64[M]") + 3)
    delivered: Days = months[np.isin(months.astype(np.int64) % 12 + 1, product.delivers())]
    return delivered

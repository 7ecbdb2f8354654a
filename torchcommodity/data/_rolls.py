"""The days on which a front-month series switches to the next contract, past and future."""

from typing import Any

import numpy as np

from torchcommodity.data._contracts import Contract, get_contract
from torchcommodity.data._errors import DataError
from torchcommodity.data._expiry import Dates, business_calendar

Prices = np.ndarray[Any, np.dtype[np.float64]]
Months = np.ndarray[Any, np.dtype[np.int64]]


def roll_days(code: str, first: np.datetime64, last: np.datetime64) -> Dates:
    """The first trading day of every new front contract from `first` to `last`, both included, by the rule alone.

    >>> roll_days("CL", np.datetime64("2020-04-01"), np.datetime64("2020-06-30")).astype(str).tolist()
    ['2020-04-22', '2020-05-20', '2020-06-23']
    """
    contract = get_contract(code)
    days = contract.roll_days(_deliveries(contract, first, last))
    inside: Dates = days[(days >= first) & (days <= last)]
    return inside


def roll_months(code: str, dates: Dates, ahead: int = 126) -> Months:
    """Flag the rows that begin a new front contract: the calendar month 1 ... 12 of the roll, or 0.

    A roll is flagged on the first row on or after its day; one before the first row is not. The rows ahead are the next
    business days of the exchange, so that a flag depends on the rule and on earlier rows, never on later ones.

    Args:
        code: an exchange product code, a key of `CONTRACTS`.
        dates: `(T,)`, strictly increasing.
        ahead: business days after the last row.

    Returns:
        `(T + ahead,)` int64. Where two rolls fall on one row (a gap in the dates), the month of the later one.

    Raises:
        DataError: an unknown code, dates that do not increase, `ahead` < 0.

    Source: the rule of each product, `CONTRACTS[code].source`.

    >>> rows = np.arange("2020-04-20", "2020-04-24", dtype="datetime64[D]")
    >>> roll_months("CL", rows, ahead=0).tolist()
    [0, 0, 4, 0]
    """
    rows = _rows(code, dates, ahead)
    flags = np.zeros(len(rows), dtype=np.int64)
    if len(rows):
        days = roll_days(code, rows[0], rows[-1])
        flags[np.searchsorted(rows, days)] = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return flags


def observed_rolls(code: str | None, dates: Dates, prices: Prices, ahead: int) -> Months:
    """`roll_months` of a column with prices `(T,)`, each flag moved on to the next row with a positive price.

    A roll before the first price is dropped. A spot price, code None, has no roll.
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
    flags = np.zeros_like(scheduled)
    flags[rows[place[reached]]] = scheduled[days[reached]]
    return flags


def check_contracts(contracts: tuple[str | None, ...], symbols: tuple[str, ...]) -> None:
    """A `DataError` unless there is one known product code or None for each symbol."""
    if len(contracts) != len(symbols):
        raise DataError(
            f"panel: expected a contract or None for each of {len(symbols)} symbols; got {len(contracts)} contracts"
        )
    for code in contracts:
        if code is not None:
            get_contract(code)


def _rows(code: str, dates: Dates, ahead: int) -> Dates:
    """The dates, and `ahead` business days of the exchange after them."""
    days = np.asarray(dates, dtype="datetime64[D]")
    if days.ndim != 1 or np.isnat(days).any() or (np.diff(days) <= np.timedelta64(0, "D")).any():
        raise DataError(f"rolls: expected strictly increasing dates (T,); got shape {days.shape}, {days[:3]} ...")
    if ahead < 0:
        raise DataError(f"rolls: expected ahead >= 0 rows; got {ahead}")
    if not len(days):
        raise DataError("rolls: expected at least one date; got none")
    calendar = business_calendar(get_contract(code).market)
    following = np.busday_offset(days[-1], np.arange(1, ahead + 1), roll="backward", busdaycal=calendar)
    rows: Dates = np.concatenate([days, following])
    return rows


def _deliveries(contract: Contract, first: np.datetime64, last: np.datetime64) -> Dates:
    """The delivery months whose contract can end between two days: it ends at most two months before delivery."""
    months = np.arange(first.astype("datetime64[M]") - 1, last.astype("datetime64[M]") + 3)
    delivered: Dates = months[np.isin(months.astype(np.int64) % 12 + 1, contract.delivery_months())]
    return delivered

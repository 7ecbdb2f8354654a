"""The days on which a front-month series switches to the next contract: those it made, and those to come."""

from typing import Any

import numpy as np

from torchcommodity.data._core.calendar import RowCalendar, row_calendar
from torchcommodity.data._core.contracts import MONTH, Contract, business_calendar, get_contract
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Dates, Months, may_be_negative

Flags = np.ndarray[Any, np.dtype[np.int64]]


def check_deliveries(deliveries: Months, dates: Dates, symbols: tuple[str, ...]) -> None:
    """Raise a `DataError` unless there is one delivery month per price and no column rolls back."""
    if deliveries.shape != (len(dates), len(symbols)):
        raise DataError(
            f"deliveries: expected delivery months of shape {(len(dates), len(symbols))}; got {deliveries.shape}"
        )
    for column, symbol in zip(deliveries.T, symbols):
        known = np.flatnonzero(~np.isnat(column))
        back = np.flatnonzero(np.diff(column[known]) < np.timedelta64(0, "M"))
        if back.size:
            row, later = known[back[0]], known[back[0] + 1]
            raise DataError(
                f"deliveries: expected contracts of {symbol!r} in the order of delivery; got {column[row]}, "
                f"then {column[later]} on {dates[later]}"
            )


def past_roll_rows(deliveries: Months) -> Flags:
    """Rows `(R,)` on which the delivery month of a column `(T,)` changes; NaT = unchanged."""
    known = np.flatnonzero(~np.isnat(deliveries))
    rows: Flags = known[1:][np.diff(deliveries[known]) != np.timedelta64(0, "M")]
    return rows


def expected_roll_rows(code: str | None, dates: Dates, deliveries: Months, following: Dates) -> Flags:
    """Rows among the `following` days on which the column is expected to roll, by the rolls it made.

    The lead of a roll is its distance from the last trading day of the contract that was left (from the start of its
    delivery month where the exchange's rule is not known); the median lead is that of the rolls to come, as the rule of
    the series is not recorded. A series without a roll so far is expected to follow the exchange.
    """
    known = np.flatnonzero(~np.isnat(deliveries))
    if not known.size or not len(following):
        return np.array([], dtype=np.int64)
    contract = None if code is None else get_contract(code)
    calendar = business_calendar("US" if contract is None else contract.market)
    lead = _lead(contract, dates, deliveries, calendar)
    if lead is None:
        return np.array([], dtype=np.int64)
    months = _cycle(contract, deliveries[known], following[-1])
    days = np.busday_offset(_references(contract, months, calendar), lead, roll="backward", busdaycal=calendar)
    rows: Flags = np.searchsorted(following, days)  # a roll that is overdue is expected on the first day
    return rows[rows < len(following)]


def _lead(contract: Contract | None, dates: Dates, deliveries: Months, calendar: np.busdaycalendar) -> int | None:
    rows = past_roll_rows(deliveries)
    if not rows.size:
        return None if contract is None or contract.last_day is None else 1
    known = deliveries[~np.isnat(deliveries)]
    left = known[:-1][np.diff(known) != np.timedelta64(0, "M")]
    leads = np.busday_count(_references(contract, left, calendar), dates[rows], busdaycal=calendar)
    return int(np.median(leads))


def _references(contract: Contract | None, months: Months, calendar: np.busdaycalendar) -> Dates:
    if contract is not None and contract.last_day is not None:
        return contract.last_trading_days(months)
    days: Dates = np.busday_offset(months.astype("datetime64[D]"), 0, roll="forward", busdaycal=calendar)
    return days


def _cycle(contract: Contract | None, held: Months, last: np.datetime64) -> Months:
    """The delivery months from the last one held to a year after `last`, in the cycle of the series."""
    year = np.timedelta64(12, "M")
    numbers: Any = np.unique(held.astype(np.int64) % 12 + 1)
    if contract is not None and held[-1] - held[0] < year:  # not all months of the cycle were held
        numbers = contract.delivery_months()
    months: Months = np.arange(held[-1], max(last.astype("datetime64[M]"), held[-1]) + year)
    in_cycle = np.isin(months.astype(np.int64) % 12 + 1, numbers) | (months == held[-1])
    return np.asarray(months[in_cycle])


Prices = np.ndarray[Any, np.dtype[np.float64]]


def roll_days(code: str, first: np.datetime64, last: np.datetime64) -> Dates:
    """Roll days from `first` to `last`, both included: the first trading day of each new front contract.

    They follow from the exchange's rule alone, without prices.

    >>> roll_days("CL", np.datetime64("2020-04-01"), np.datetime64("2020-06-30")).astype(str).tolist()
    ['2020-04-22', '2020-05-20', '2020-06-23']
    """
    contract = get_contract(code)
    # contracts expire at most two months before their delivery
    months = np.arange(first.astype("datetime64[M]") - MONTH, last.astype("datetime64[M]") + 3 * MONTH)
    days = contract.roll_days(months[np.isin(months.astype(np.int64) % 12 + 1, contract.delivery_months())])
    inside: Dates = days[(days >= first) & (days <= last)]
    return inside


def roll_months(code: str, dates: Dates, ahead: int = 126) -> Flags:
    """Flag the rows that begin a new front contract: the calendar month 1 ... 12 of the roll, or 0.

    A roll is flagged on the first row on or after its day; one before the first row is not. The rows ahead are the next
    business days of the exchange, or weeks or months if the dates are such, so that a flag depends on the rule and on
    earlier rows, never on later ones.

    Args:
        code: an exchange product code, a key of `CONTRACTS`.
        dates: `(T,)`, strictly increasing.
        ahead: rows after the last one.

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


def column_roll_months(code: str | None, dates: Dates, deliveries: Months | None, ahead: int) -> Flags:
    """Flags `(T + ahead,)` of a column: its own rolls where its delivery months `(T,)` are known, else `roll_months`.

    A spot price (no code, no delivery months) has no rolls.
    """
    if deliveries is not None and not np.isnat(deliveries).all():
        rows = _rows(code, dates, ahead)
        flags = np.zeros(len(rows), dtype=np.int64)
        rolls = np.append(
            past_roll_rows(deliveries), len(dates) + expected_roll_rows(code, dates, deliveries, rows[len(dates) :])
        )
        flags[rolls] = rows[rolls].astype("datetime64[M]").astype(np.int64) % 12 + 1
        return flags
    if code is None:
        return np.zeros(len(dates) + ahead, dtype=np.int64)
    return roll_months(code, dates, ahead)


def move_to_prices(flags: Flags, prices: Prices) -> Flags:
    """Move each flag of a column with prices `(T,)` to the next row with a positive price, of a spread with any price.

    A roll before the first price is dropped.
    """
    usable = np.isfinite(prices) & ((prices > 0) | may_be_negative(prices))
    has_price = np.append(usable, np.ones(len(flags) - len(prices), dtype=bool))
    rows = np.flatnonzero(has_price)
    rolls = np.flatnonzero(flags)
    rolls = rolls[rolls >= rows[0]] if rows.size else rolls[:0]
    index = np.searchsorted(rows, rolls)
    in_range = index < rows.size
    moved = np.zeros_like(flags)
    moved[rows[index[in_range]]] = flags[rolls[in_range]]
    return moved


def _rows(code: str | None, dates: Dates, ahead: int) -> Dates:
    """The dates, and `ahead` rows after them: business days of the exchange, or weeks or months."""
    days = np.asarray(dates, dtype="datetime64[D]")
    if days.ndim != 1 or np.isnat(days).any() or (np.diff(days) <= np.timedelta64(0, "D")).any():
        raise DataError(f"rolls: expected strictly increasing dates (T,); got shape {days.shape}, {days[:3]} ...")
    if ahead < 0:
        raise DataError(f"rolls: expected ahead >= 0 rows; got {ahead}")
    if not len(days):
        raise DataError("rolls: expected at least one date; got none")
    calendar = row_calendar(days)
    if calendar.frequency == "daily":
        calendar = RowCalendar("daily")  # contracts do not trade on weekends
    following = calendar.following(days[-1], np.arange(1, ahead + 1), "CL" if code is None else code)
    rows: Dates = np.concatenate([days, following])
    return rows

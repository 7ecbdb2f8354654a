"""Rolls of a series whose contract is known on every row: those it made, and those to come."""

from typing import Any

import numpy as np

from torchcommodity.data._core.arrays import Dates, Months
from torchcommodity.data._core.contracts import Contract, get_contract
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.expiry import business_calendar

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

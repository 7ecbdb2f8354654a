"""The contract behind a symbol's last price, and the days on which its series rolls."""

from typing import NamedTuple

import numpy as np

from torchcommodity.data import CONTRACTS, Panel, roll_days, row_calendar
from torchcommodity.forecast._calendar import Dates

YEAR_OF_ROWS = {"daily": 260, "weekly": 53, "monthly": 13}


class ContractState(NamedTuple):
    """The contract behind a price: its delivery month and the next roll, both None where they are not known."""

    month: str | None  # YYYY-MM
    next_roll: str | None  # ISO date: first day of the next contract


def contract_state(panel: Panel, n: int, day: np.datetime64) -> ContractState:
    """Delivery month of symbol n's contract on a day of the panel, and the first roll after that day.

    Both follow from the delivery months of the panel where it has them, else from the rule of the exchange. A spot
    price has neither, and nor have products without a roll calendar.
    """
    days = symbol_roll_days(panel, n, day + np.timedelta64(400, "D"))
    following = days[days > day]
    next_roll = str(following[0]) if following.size else None
    deliveries, code = _delivery_months(panel, n), panel.contracts[n]
    if deliveries is not None:
        until_day = deliveries[(panel.dates <= day) & ~np.isnat(deliveries)]
        return ContractState(str(until_day[-1]) if until_day.size else None, next_roll)
    if code is None or CONTRACTS[code].last_day is None:
        return ContractState(None, next_roll)
    contract, month = CONTRACTS[code], day.astype("datetime64[M]")
    months = np.arange(month - np.timedelta64(1, "M"), month + np.timedelta64(15, "M"))
    months = months[np.isin(months.astype(np.int64) % 12 + 1, contract.delivery_months())]
    front = months[contract.roll_days(months) > day]
    return ContractState(str(front[0]), next_roll)


def symbol_roll_days(panel: Panel, n: int, last: np.datetime64) -> Dates:
    """Days from the panel's first row to `last` on which symbol n's series rolls: those of the past, then expected."""
    if _delivery_months(panel, n) is None:
        code = panel.contracts[n]
        if code is None or CONTRACTS[code].last_day is None:
            return np.array([], dtype="datetime64[D]")
        return roll_days(code, panel.dates[0], last)
    ahead = YEAR_OF_ROWS[panel.frequency]
    flags = panel.select([panel.symbols[n]]).roll_months(ahead)[:, 0].numpy()
    # the calendar of a product of an unknown exchange is that of crude oil, as in `Panel.roll_months`
    following = row_calendar(panel.dates).following(
        panel.dates[-1], np.arange(1, ahead + 1), panel.contracts[n] or "CL"
    )
    days: Dates = np.append(panel.dates, following)[flags > 0]
    return days[days <= last]


def _delivery_months(panel: Panel, n: int) -> Dates | None:
    """Delivery month of each row `(T,)`, or None where no row has one."""
    if panel.deliveries is None or np.isnat(panel.deliveries[:, n]).all():
        return None
    return panel.deliveries[:, n]

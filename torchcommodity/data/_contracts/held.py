"""Which contract a series holds on each row, by a roll rule; decided without later rows."""

from typing import NamedTuple

import numpy as np

from torchcommodity.data._contracts.roll_rule import RollRule
from torchcommodity.data._core.arrays import Array, Dates, Months
from torchcommodity.data._core.errors import DataError


class Quotes(NamedTuple):
    """Prices of the K contracts of one product on T days, contracts in the order of delivery."""

    dates: Dates  # (T,)
    deliveries: Months  # (K,)
    last_days: Dates  # (K,) the last days on which each contract may be held; NaT = not known
    prices: Array  # (T, K), NaN = missing
    activity: Array | None = None  # (T, K) volume or open interest, where the rule needs it; NaN = missing

    def listed(self) -> Array:
        """(T, K) bool: whether a contract had a price up to this row."""
        return np.logical_or.accumulate(~np.isnan(self.prices), axis=0)


def held_contracts(quotes: Quotes) -> Array:
    """The contract (T,) held on each row: the nearest of those listed so far that has not expired.

    A contract whose last day is not known is left on the first row without its price on which a later contract has one.
    With `activity`, the next contract is also entered on the row after it exceeds that of the contract held. No
    decision uses a later row, and the series never returns to an earlier contract.
    """
    has_price, listed = ~np.isnan(quotes.prices), quotes.listed()
    path = np.zeros(len(quotes.dates), dtype=np.int64)
    held = int(np.argmax(listed[0]))
    for t in range(len(path)):
        if t and quotes.activity is not None and _is_overtaken(quotes.activity[t - 1], listed[t - 1], held):
            held = _next(listed[t], held)
        while _has_expired(quotes, has_price, t, held) and listed[t, held + 1 :].any():
            held = _next(listed[t], held)
        path[t] = held
    return path


def curve(quotes: Quotes, held: Array, contracts: int) -> Array:
    """Prices (T, C) of the contracts from the one held on, in the order of delivery, among those listed so far."""
    later = quotes.listed() & (np.arange(len(quotes.deliveries)) >= held[:, None])
    place = later.cumsum(axis=1)
    nearby = np.full((len(held), contracts), np.nan)
    row, column = np.nonzero(later & (place <= contracts))
    nearby[row, place[row, column] - 1] = quotes.prices[row, column]
    return nearby


def last_holding_days(expiries: Dates, rule: RollRule, calendar: np.busdaycalendar, symbol: str) -> Dates:
    """The last days on which contracts with these last trading days may be held, `rule.days` business days before."""
    if not rule.days:
        return expiries
    if np.isnat(expiries).any():
        raise DataError(
            f"roll: expected known last trading days of {symbol!r} for {rule}; got contracts without one: name the "
            f"product (--contracts {symbol}=CL), add a column expiry, or roll by expiry, volume or open-interest"
        )
    days: Dates = np.busday_offset(expiries, -rule.days, roll="backward", busdaycal=calendar)
    return days


def _has_expired(quotes: Quotes, has_price: Array, t: int, held: int) -> bool:
    last = quotes.last_days[held]
    if not np.isnat(last):
        return bool(quotes.dates[t] > last)
    return bool(not has_price[t, held] and has_price[t, held + 1 :].any())


def _is_overtaken(activity: Array, listed: Array, held: int) -> bool:
    later = np.flatnonzero(listed[held + 1 :])
    if not later.size:
        return False
    now, following = np.nan_to_num(activity[[held, held + 1 + later[0]]])
    return bool(following > now)


def _next(listed: Array, held: int) -> int:
    return held + 1 + int(np.argmax(listed[held + 1 :]))

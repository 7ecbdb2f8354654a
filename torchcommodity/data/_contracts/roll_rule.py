"""When a front-month series switches to its next contract: the rule, and the contract held on each row."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from torchcommodity.data._core.arrays import Array, Dates, Months
from torchcommodity.data._core.contracts import MONTHS
from torchcommodity.data._core.errors import DataError

Trigger = Literal["expiry", "volume", "open-interest"]
EXPECTED = "expiry, 5d (days before expiry), volume, open-interest, months=HKNUZ, or several separated by commas"


@dataclass(frozen=True)
class RollRule:
    """When a series switches to the next contract. It never switches back.

    Args:
        when: "expiry": after the last trading day; "volume" or "open-interest": on the day after the next contract had
            more of it, at the latest at expiry.
        days: business days before the last trading day on which the contract is left at the latest.
        months: letters of the delivery months to hold, such as "HKNUZ"; default: those of the product.

    Raises:
        DataError: an unknown trigger, negative days, or a letter that is no delivery month.

    >>> RollRule.parse("volume,5d,months=HKNUZ")
    RollRule(when='volume', days=5, months='HKNUZ')
    """

    when: Trigger = "expiry"
    days: int = 0
    months: str = ""

    def __post_init__(self) -> None:
        known = self.when in get_args(Trigger) and self.days >= 0 and isinstance(self.days, int)
        if not known or set(self.months) - set(MONTHS):
            raise DataError(f"roll: expected {EXPECTED}; got {self}")

    @classmethod
    def parse(cls, text: "str | RollRule") -> "RollRule":
        """The rule of a text such as `5d` or `volume,months=HKNUZ`; a rule is returned unchanged."""
        if isinstance(text, RollRule):
            return text
        fields: dict[str, str | int] = {}
        for word in text.split(","):
            field, value = _parse_word(word.strip(), text)
            if field in fields:
                raise DataError(f"roll: expected {EXPECTED}; got {text!r}, with {field} twice")
            fields[field] = value
        return cls(**fields)  # type: ignore[arg-type]

    def delivery_months(self) -> tuple[int, ...]:
        """The chosen delivery months as numbers; empty where none are chosen."""
        return tuple(MONTHS.index(letter) + 1 for letter in self.months)

    def __str__(self) -> str:
        words = [self.when if self.when != "expiry" or not self.days else "", f"{self.days}d" if self.days else ""]
        return ",".join(filter(None, [*words, f"months={self.months}" if self.months else ""]))


def _parse_word(word: str, text: str) -> tuple[str, str | int]:
    if word in get_args(Trigger):
        return "when", word
    if re.fullmatch("[0-9]{1,3}d", word):
        return "days", int(word[:-1])
    if re.fullmatch(f"months=[{MONTHS}]+", word):
        return "months", word.removeprefix("months=")
    raise DataError(f"roll: expected {EXPECTED}; got {text!r}")


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

"""Futures contracts: delivery months, the last trading day of the front contract, and the published rule."""

from dataclasses import dataclass

import numpy as np

from torchcommodity.data._core import expiry
from torchcommodity.data._core.arrays import Dates
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.expiry import (
    Rule,
    before,
    business_calendar,
    business_day,
    business_day_from_end,
)

MONTHS = "FGHJKMNQUVXZ"  # the exchanges' letters for January to December


@dataclass(frozen=True)
class Contract:
    """A futures product and its roll rule.

    Args:
        code: the exchange's product code.
        name: name of the product.
        exchange: where it trades.
        months: letters of its delivery months, `FGHJKMNQUVXZ` for January to December.
        last_day: maps delivery months to the last trading days of their contracts; None = no roll calendar (metals).
        rule: `last_day` in words.
        source: where the rule is published.
        market: calendar of its business days, `US` or `ICE Europe`.

    >>> CONTRACTS["NG"].rule
    'third business day from the end of the month before delivery'
    """

    code: str
    name: str
    exchange: str
    months: str
    last_day: Rule | None
    rule: str
    source: str
    market: str = "US"

    def delivery_months(self) -> tuple[int, ...]:
        """The delivery months as numbers, January = 1."""
        return tuple(MONTHS.index(letter) + 1 for letter in self.months)

    def last_trading_days(self, deliveries: Dates) -> Dates:
        """Last trading days of the contracts of these delivery months `(M,) datetime64[M]`; empty without a rule."""
        if self.last_day is None:
            return np.array([], dtype="datetime64[D]")
        return self.last_day(deliveries, business_calendar("London" if self.market == "ICE Europe" else self.market))

    def roll_days(self, deliveries: Dates) -> Dates:
        """The trading day after each last trading day: the first on which the next contract is the front contract."""
        last, calendar = self.last_trading_days(deliveries), business_calendar(self.market)
        days: Dates = np.busday_offset(last, 1, roll="backward", busdaycal=calendar)
        return days


def get_contract(code: str) -> Contract:
    """Look up the contract of a product code.

    Raises:
        DataError: an unknown code; the message lists the known codes.

    >>> get_contract("C").months
    'HKNUZ'
    """
    if code not in CONTRACTS:
        raise DataError(f"contracts: expected a product code among {', '.join(CONTRACTS)}; got {code!r}")
    return CONTRACTS[code]


_MONTH_END = "last business day of the month before delivery"
_GRAIN = "business day before the 15th of the delivery month; to December 1999 the eighth from its end"
_CANOLA = "business day before the 15th of the delivery month"
_CARRY = "none: neighboring months differ by days of interest, and vendors roll by volume"

_TABLE = (
    # energies
    Contract("CL", "WTI crude oil", "NYMEX", MONTHS, expiry.crude,
             "third business day before the 25th of the month before delivery, or before the last one up to the 25th",
             "NYMEX Rulebook, chapter 200"),
    Contract("BRN", "Brent crude oil", "ICE Futures Europe", MONTHS, expiry.brent,
             "last business day of the second month before delivery, or the one before it at the end of the year; to "
             "February 2016 the business day before the 15th day before delivery, moved back to a business day",
             "ICE Futures Europe, product 219 (https://www.ice.com/products/219), and its specification of March 2012",
             "ICE Europe"),
    Contract("NG", "Henry Hub natural gas", "NYMEX", MONTHS, business_day_from_end(3, month=-1),
             "third business day from the end of the month before delivery", "NYMEX Rulebook, chapter 220"),
    Contract("HO", "NY Harbor ULSD (heating oil)", "NYMEX", MONTHS, business_day_from_end(1, month=-1), _MONTH_END,
             "NYMEX Rulebook, chapter 150"),
    Contract("RB", "RBOB gasoline", "NYMEX", MONTHS, business_day_from_end(1, month=-1), _MONTH_END,
             "NYMEX Rulebook, chapter 191"),
    Contract("G", "Low sulphur gasoil", "ICE Futures Europe", MONTHS, expiry.gasoil,
             "two business days before the 14th of the delivery month",
             "ICE Futures Europe, low sulphur gasoil futures, contract specification", "ICE Europe"),
    # grains
    Contract("C", "Corn", "CBOT", "HKNUZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 10"),
    Contract("W", "Chicago SRW wheat", "CBOT", "HKNUZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 14"),
    Contract("KW", "KC HRW wheat", "CBOT (KCBT to 2013)", "HKNUZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 14H"),
    Contract("O", "Oats", "CBOT", "HKNUZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 15"),
    Contract("RR", "Rough rice", "CBOT", "FHKNUX", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 17"),
    # oilseeds
    Contract("S", "Soybeans", "CBOT", "FHKNQUX", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 11"),
    Contract("SM", "Soybean meal", "CBOT", "FHKNQUVZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 13"),
    Contract("BO", "Soybean oil", "CBOT", "FHKNQUVZ", expiry.grain, _GRAIN, "CBOT Rulebook, chapter 12"),
    Contract("RS", "Canola", "ICE Futures US", "FHKNX", before(15), _CANOLA, "ICE Futures US, canola futures"),
    # softs
    Contract("SB", "Sugar No. 11", "ICE Futures US", "HKNV", business_day_from_end(1, month=-1), _MONTH_END,
             "ICE Futures US, Sugar No. 11 rules"),
    Contract("KC", "Coffee C", "ICE Futures US", "HKNUZ", business_day_from_end(9),
             "ninth business day from the end of the delivery month", "ICE Futures US, Coffee C rules"),
    Contract("CC", "Cocoa", "ICE Futures US", "HKNUZ", business_day_from_end(12),
             "twelfth business day from the end of the delivery month", "ICE Futures US, Cocoa rules"),
    Contract("CT", "Cotton No. 2", "ICE Futures US", "HKNVZ", business_day_from_end(17),
             "seventeenth business day from the end of the delivery month", "ICE Futures US, Cotton No. 2 rules"),
    Contract("OJ", "Frozen concentrated orange juice", "ICE Futures US", "FHKNUX", business_day_from_end(15),
             "fifteenth business day from the end of the delivery month", "ICE Futures US, FCOJ-A rules"),
    # livestock
    Contract("LC", "Live cattle", "CME", "GJMQVZ", business_day_from_end(1),
             "last business day of the delivery month", "CME Rulebook, chapter 101"),
    Contract("FC", "Feeder cattle", "CME", "FHJKQUVX", expiry.feeder_cattle,
             "last Thursday of the delivery month, in November the third; a week earlier where it or one of the four "
             "weekdays before it is a holiday", "CME Rulebook, chapter 102"),
    Contract("LH", "Lean hogs", "CME", "GJKMNQVZ", business_day(10),
             "tenth business day of the delivery month", "CME Rulebook, chapter 152"),
    # metals
    Contract("GC", "Gold", "COMEX", "GJMQVZ", None, _CARRY, "COMEX Rulebook, chapter 113"),
    Contract("SI", "Silver", "COMEX", "HKNUZ", None, _CARRY, "COMEX Rulebook, chapter 112"),
    Contract("HG", "Copper", "COMEX", "HKNUZ", None, _CARRY, "COMEX Rulebook, chapter 111"),
    Contract("PL", "Platinum", "NYMEX", "FJNV", None, _CARRY, "NYMEX Rulebook, chapter 105"),
    Contract("PA", "Palladium", "NYMEX", "HMUZ", None, _CARRY, "NYMEX Rulebook, chapter 106"),
)  # fmt: skip

CONTRACTS: dict[str, Contract] = {product.code: product for product in _TABLE}

"""Futures contracts: last trading days by the rules of the exchanges, the table of products, and codes of contracts.

A rule maps delivery months `(M,) datetime64[M]` and the business days of an exchange to the last trading days
`(M,) datetime64[D]`. It uses no prices and no rows, so that a future roll is as certain as a past one.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Dates, Months

Rule = Callable[[Months, np.busdaycalendar], Dates]

FIRST, LAST = "1970-01-01", "2100-12-31"  # the range of holidays
DAY, MONTH, WEEK = np.timedelta64(1, "D"), np.timedelta64(1, "M"), np.timedelta64(7, "D")
FEBRUARY, NOVEMBER = 1, 10  # months since January
CALENDARS = {
    "US": "CME_Agriculture",
    "ICE Europe": "ICE",
    "London": "LSE",
    "NYSE": "NYSE",
}  # names in pandas_market_calendars
FRIDAYS = np.array(["1999-12-31", "2004-12-31"], dtype="datetime64[D]")  # closed: New Year fell on the Saturday


@cache
def business_calendar(market: str) -> np.busdaycalendar:
    """Business days of a market, `US`, `ICE Europe`, `London` or `NYSE`: weekdays without its regular holidays.

    Or those of any calendar of pandas_market_calendars by its name, such as `XSHG`, Shanghai. Many of these markets
    announce their holidays year by year, so irregular ones count.

    They are the days of settlement, which are fewer than the days of electronic trading. ICE Europe trades on the bank
    holidays of London, but the rules of its contracts do not count them as business days.
    Unscheduled closures (days of mourning, disasters) count as business days: they were unknown in advance, and the
    panel has no row for them.
    """
    with extra("forecast"):
        import pandas_market_calendars  # slow to import; needed for dates ahead only

    if (name := CALENDARS.get(market, market)) not in pandas_market_calendars.get_calendar_names():
        names = "NYSE, LSE, XSHG, 24/5 and others of pandas_market_calendars"
        raise DataError(f"calendar: expected the name of a calendar, {names}; got {market!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about hours of trading, which are not used
        rules = pandas_market_calendars.get_calendar(name)
    if market not in CALENDARS:
        trading_days: np.busdaycalendar = rules.holidays().calendar
        return trading_days
    days = rules.regular_holidays.holidays(FIRST, LAST).to_numpy().astype("datetime64[D]")
    return np.busdaycalendar(holidays=np.append(days, FRIDAYS) if market == "US" else days)


def business_day(nth: int) -> Rule:
    """The nth business day of the delivery month."""
    return lambda months, open_days: _shift(_first(months), nth - 1, open_days)


def business_day_from_end(nth: int, *, month: int = 0) -> Rule:
    """The nth business day from the end (1 = the last) of the delivery month, or `month` months later."""
    return lambda months, open_days: _shift(_first(months + (month + 1) * MONTH), -nth, open_days)


def before(day: int) -> Rule:
    """The last business day before this day of the delivery month."""
    return lambda months, open_days: _shift(_first(months) + (day - 1) * DAY, -1, open_days)


def crude(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The third business day before the 25th of the month before delivery; before the last one up to the 25th."""
    return _shift(_shift(_first(months - MONTH) + 24 * DAY, 0, open_days, "backward"), -3, open_days)


def brent(months: Months, open_days: np.busdaycalendar) -> Dates:
    """Up to delivery in February 2016: the business day before the 15th day before delivery, that day moved back to a
    business day first. Since then: the last business day of the second month before delivery, or the one before it
    where that is the last of the year.
    """
    old = _shift(_shift(_first(months) - 15 * DAY, 0, open_days, "backward"), -1, open_days)
    end = _shift(_first(months - MONTH), -1, open_days)
    ends_in_december = months.astype(np.int64) % 12 == FEBRUARY
    new = np.where(ends_in_december, _shift(end, -1, open_days), end)
    return np.where(months < np.datetime64("2016-03"), old, new)


def grain(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The business day before the 15th; up to delivery in December 1999 the eighth one from the month's end."""
    old, new = business_day_from_end(8)(months, open_days), before(15)(months, open_days)
    return np.where(months < np.datetime64("2000-01"), old, new)


def gasoil(months: Months, open_days: np.busdaycalendar) -> Dates:
    """Two business days before the 14th of the delivery month."""
    return _shift(_first(months) + 13 * DAY, -2, open_days)


def feeder_cattle(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The last Thursday of the delivery month, in November the third, that is a business day after four of them."""
    last: Dates = np.busday_offset(_first(months + MONTH), -1, roll="forward", weekmask="Thu")
    third: Dates = np.busday_offset(_first(months), 2, roll="forward", weekmask="Thu")
    days = np.where(months.astype(np.int64) % 12 == NOVEMBER, third, last)
    for _ in range(2):
        weekdays = np.busday_offset(days, np.arange(-4, 1)[:, None])
        days = np.where(np.is_busday(weekdays, busdaycal=open_days).all(axis=0), days, days - WEEK)
    return days


def _first(months: Months) -> Dates:
    days: Dates = months.astype("datetime64[D]")
    return days


def _shift(days: Dates, offset: int, open_days: np.busdaycalendar, roll: Any = "forward") -> Dates:
    shifted: Dates = np.busday_offset(days, offset, roll=roll, busdaycal=open_days)
    return shifted


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
        through_month: whether it is delivered day by day through the delivery month, as gas is: its spot price is for
            the next day, before the front contract delivers, and reaches the price of that contract within the month.
        spot: embedded symbol of its spot price, if there is one.

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
    through_month: bool = False
    spot: str = ""

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
    Contract("CL", "WTI crude oil", "NYMEX", MONTHS, crude,
             "third business day before the 25th of the month before delivery, or before the last one up to the 25th",
             "NYMEX Rulebook, chapter 200", spot="WTI"),
    Contract("BRN", "Brent crude oil", "ICE Futures Europe", MONTHS, brent,
             "last business day of the second month before delivery, or the one before it at the end of the year; to "
             "February 2016 the business day before the 15th day before delivery, moved back to a business day",
             "ICE Futures Europe, product 219 (https://www.ice.com/products/219), and its specification of March 2012",
             "ICE Europe", spot="BRENT"),
    Contract("NG", "Henry Hub natural gas", "NYMEX", MONTHS, business_day_from_end(3, month=-1),
             "third business day from the end of the month before delivery", "NYMEX Rulebook, chapter 220",
             through_month=True, spot="HENRY_HUB"),
    Contract("HO", "NY Harbor ULSD (heating oil)", "NYMEX", MONTHS, business_day_from_end(1, month=-1), _MONTH_END,
             "NYMEX Rulebook, chapter 150"),
    Contract("RB", "RBOB gasoline", "NYMEX", MONTHS, business_day_from_end(1, month=-1), _MONTH_END,
             "NYMEX Rulebook, chapter 191"),
    Contract("G", "Low sulphur gasoil", "ICE Futures Europe", MONTHS, gasoil,
             "two business days before the 14th of the delivery month",
             "ICE Futures Europe, low sulphur gasoil futures, contract specification", "ICE Europe"),
    # grains
    Contract("C", "Corn", "CBOT", "HKNUZ", grain, _GRAIN, "CBOT Rulebook, chapter 10"),
    Contract("W", "Chicago SRW wheat", "CBOT", "HKNUZ", grain, _GRAIN, "CBOT Rulebook, chapter 14"),
    Contract("KW", "KC HRW wheat", "CBOT (KCBT to 2013)", "HKNUZ", grain, _GRAIN, "CBOT Rulebook, chapter 14H"),
    Contract("O", "Oats", "CBOT", "HKNUZ", grain, _GRAIN, "CBOT Rulebook, chapter 15"),
    Contract("RR", "Rough rice", "CBOT", "FHKNUX", grain, _GRAIN, "CBOT Rulebook, chapter 17"),
    # oilseeds
    Contract("S", "Soybeans", "CBOT", "FHKNQUX", grain, _GRAIN, "CBOT Rulebook, chapter 11"),
    Contract("SM", "Soybean meal", "CBOT", "FHKNQUVZ", grain, _GRAIN, "CBOT Rulebook, chapter 13"),
    Contract("BO", "Soybean oil", "CBOT", "FHKNQUVZ", grain, _GRAIN, "CBOT Rulebook, chapter 12"),
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
    Contract("FC", "Feeder cattle", "CME", "FHJKQUVX", feeder_cattle,
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


# Codes of the electronic session where they differ from the exchange's own, which `CONTRACTS` has.
ELECTRONIC = {
    "ZC": "C", "ZW": "W", "KE": "KW", "ZO": "O", "ZR": "RR", "ZS": "S", "ZM": "SM", "ZL": "BO", "LE": "LC", "GF": "FC",
    "HE": "LH",
}  # fmt: skip
NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
FORMS = "CLZ24, CL Z24, CLZ4, CLZ2024, CL-2024Z, CL 2024-12, RB2405, CF405 or 202412"

_YEAR = "(?:19[6-9]|20[0-9])[0-9]|[0-9]{1,2}"
_MONTH = "0[1-9]|1[0-2]"
_ROOT = "[A-Z0-9]{0,6}?"
_OUTRIGHT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?P<root>[A-Z0-9]{{1,6}}) +)?(?P<name>{'|'.join(NAMES)})[A-Z]*[ -]?'?(?P<year>{_YEAR})",  # ZC DEC 24
        rf"(?P<root>{_ROOT})(?P<letter>[{MONTHS}])(?P<last>[0-9])\^(?P<decade>[0-9])",  # CLZ4^2, LSEG
        rf"(?P<root>{_ROOT})[ _-]*(?P<letter>[{MONTHS}])[ -]?(?P<year>{_YEAR})",  # CLZ24, C H97, CLZ4
        rf"(?P<root>{_ROOT}) *(?P<letter>[{MONTHS}])(?P<last>[0-9]) (?P<year>[0-9](?P=last))",  # HOQ8 08, Bloomberg
        rf"(?P<root>{_ROOT})[ _-]*(?P<year>[12][0-9]{{3}})[ -]?(?P<letter>[{MONTHS}])",  # CL-2024Z
        rf"(?:(?P<root>[A-Z][A-Z0-9]{{0,5}})[ _-]*)?(?P<year>[12][0-9]{{3}})-?(?P<month>{_MONTH})(?:00|-?01)?",
        rf"(?P<root>[A-Z]+) +FM(?P<letter>[{MONTHS}])00(?P<year>[0-9]{{2}})!",  # ICE Europe's raw symbols
    )
)
# RB2405 and CF405 of the Chinese exchanges: a year of two digits or one, and the month
_NUMBERED = re.compile(rf"(?P<root>[A-Z]{{1,3}})(?P<year>[0-9]{{1,2}})(?P<month>{_MONTH})")
_COMBINED = re.compile(
    r"[0-9]{6}(?:[WF][1-9]|[-/][0-9]{6})|.*[A-Z0-9][-:/+ ].*[0-9].*[-:/+].*|.+:.+|.*[0-9] ?[-/+] ?[A-Z].*|"
    r".*[0-9] [CP] ?[0-9.]+"
)
_PARENT = re.compile(r"[A-Z0-9]+(\.(FUT|OPT|[A-Z]\.[0-9]+)|=F)")
_DECORATION = re.compile(  # CLZ24.NYM, SHFE.rb2405
    r"^(?:[A-Z]{2,8}:)(?=[A-Z0-9]+$)|^[A-Z]{3,5}\.(?=[A-Z]+[0-9]{3,4}$)|\.[A-Z]{1,4}$| COMDTY$| COMB$| ?\(.*\)$"
)


class ContractCode(NamedTuple):
    """A contract code before its year is completed.

    Args:
        root: the product as written, "" if the code has none.
        month: 1 to 12.
        year: as written.
        digits: of the year: 1, 2 or 4.
        is_numbered: the month is a number behind the year, as in RB2405; such a root is no code of `CONTRACTS`, whose
            RB is another product.
    """

    root: str
    month: int
    year: int
    digits: int
    is_numbered: bool = False


def numbers_months(codes: Iterable[str]) -> bool:
    """Whether codes such as CU2012 mean December 2020: one of them, such as CU2101, cannot have a year of four digits.

    >>> numbers_months(["CU2012", "CU2101"]), numbers_months(["CUZ2012", "CUZ2013"])
    (True, False)
    """
    matches = (_NUMBERED.fullmatch(_DECORATION.sub("", code.strip().upper())) for code in codes)
    return any(match and len(match["year"]) == 2 and match["year"] != "20" for match in matches)


def parse_contract(text: str, *, numbered: bool = False) -> ContractCode | None:
    """Parse the code of one contract; None for a spread, an option or a combination of contracts.

    Args:
        text: the code.
        numbered: CU2012 is a contract of December 2020, see `numbers_months`, not of September 2012.

    Raises:
        ValueError: another text; the message continues "expected ...".

    >>> parse_contract("CLZ24"), parse_contract("C H97").root, parse_contract("CLF4-CLG4")
    (ContractCode(root='CL', month=12, year=24, digits=2, is_numbered=False), 'C', None)
    >>> parse_contract("rb2405")
    ContractCode(root='RB', month=5, year=24, digits=2, is_numbered=True)
    """
    code = text.strip().upper()
    if _PARENT.fullmatch(code):
        raise ValueError(f"the code of one contract, such as {FORMS}; got {text!r}, which stands for many")
    plain = _DECORATION.sub("", code)
    number = _NUMBERED.fullmatch(plain)
    if number and (numbered or not any(pattern.fullmatch(plain) for pattern in _OUTRIGHT)):
        return ContractCode(number["root"], int(number["month"]), int(number["year"]), len(number["year"]), True)
    for pattern in _OUTRIGHT:
        if match := pattern.fullmatch(plain):
            fields = match.groupdict()
            year = fields.get("year") or ("20" if fields["decade"] < "6" else "19") + fields["decade"] + fields["last"]
            if "letter" in fields:
                month = MONTHS.index(fields["letter"]) + 1
            else:
                month = NAMES.index(fields["name"]) + 1 if "name" in fields else int(fields["month"])
            return ContractCode(fields.get("root") or "", month, int(year), len(year))
    if _COMBINED.fullmatch(code):
        return None
    hint = f" (delivery months are {MONTHS})" if re.fullmatch(r"[A-Z0-9]*[A-Z][0-9]{1,4}", plain) else ""
    raise ValueError(f"the code of one contract, such as {FORMS}{hint}; got {text!r}")


def delivery_months(codes: list[ContractCode], days: Months) -> Months:
    """Delivery months `(R,)` of codes quoted on `days (R,)`.

    A year of one digit is the first such year whose delivery month is not before the day; one of two digits is the
    nearest to the day.

    >>> delivery_months([parse_contract("CLZ4")], np.array(["2014-12-01"], dtype="datetime64[D]")).astype(str).tolist()
    ['2014-12']
    """
    numbers: dict[ContractCode, int] = {}  # few codes, many rows
    rows = np.fromiter((numbers.setdefault(code, len(numbers)) for code in codes), np.int64, len(codes))
    month, year, digits = np.array([code[1:4] for code in numbers], dtype=np.int64).T[:, rows]
    quoted = days.astype("datetime64[M]").astype(np.int64) + 12 * 1970
    today = quoted // 12
    decade = today - (today - year) % 10  # the latest year that ends in the digit
    decade += 10 * (12 * decade + month - 1 < quoted)
    century = year + 100 * np.round((today - year) / 100).astype(np.int64)
    full = np.select([digits == 1, digits == 2], [decade, century], year)
    months: Months = (12 * (full - 1970) + month - 1).astype("datetime64[M]")
    return months


def find_product(code: str) -> str | None:
    """The key of `CONTRACTS` for a code of the exchange or of its electronic session, or None.

    >>> find_product("ZC"), find_product("CL"), find_product("XX")
    ('C', 'CL', None)
    """
    code = ELECTRONIC.get(code.upper(), code.upper())
    return code if code in CONTRACTS else None

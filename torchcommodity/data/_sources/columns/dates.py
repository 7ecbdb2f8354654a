"""Dates as text: the style and the order of day and month are decided from a whole column."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.calendar import calendar_years, month_end
from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.columns.numbers import Parsed

FIRST_YEAR, LAST_YEAR = 1600, 2200
BUDDHIST = 543  # years by which the calendar of Thailand is ahead
EPOCHS = {10: 1, 13: 10**3, 16: 10**6, 19: 10**9}  # digits of a number of seconds, ms, us and ns since 1970
MONTHS = (  # without accents; of Western Europe, Poland, Russia, Turkey and Indonesia
    "january januar janvier enero gennaio janeiro januari styczen stycznia январь января ocak",
    "february februar fevrier febrero febbraio fevereiro februari luty lutego февраль февраля subat",
    "march marz maerz mrz mars marzo marco maart mrt marzec marca март марта maret",
    "april avril abril aprile kwiecien kwietnia апрель апреля nisan",
    "may mai mayo maggio maio mei maj maja маи мая mayıs",
    "june juni juin junio giugno junho czerwiec czerwca июнь июня haziran",
    "july juli juillet julio luglio julho lipiec lipca июль июля temmuz",
    "august aout agosto augustus sierpien sierpnia август августа agustos agustus",
    "september septembre septiembre settembre setembro wrzesien wrzesnia сентябрь сентября eylul",
    "october oktober octobre octubre ottobre outubro pazdziernik pazdziernika октябрь октября ekim",
    "november novembre noviembre novembro listopad listopada ноябрь ноября kasım",
    "december dezember decembre diciembre dicembre dezembro grudzien grudnia декабрь декабря aralık desember",
)

_NAME = r"(?P<name>[^\W\d_]{3,12})"
_DAY_NAME = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +)?"
_TIME = (
    r"(?:(?:T|,? +)(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]{1,9})?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
    r"(?: ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?)?"
)


@dataclass(frozen=True)
class Style:
    """A style of dates: a pattern with groups y, m, d (and a, b where day and month can be mistaken), an example."""

    example: str
    pattern: re.Pattern[str]

    def match(self, text: str) -> re.Match[str] | None:
        """The parts of a date in this style."""
        match = self.pattern.fullmatch(text.strip())
        return None if match and "name" in self.pattern.groupindex and not month_number(match["name"]) else match

    def read(self, texts: Iterable[str]) -> "Dates":
        """Those of the texts that are dates in this style."""
        dates, parts = [], [list[str]() for _ in self.pattern.groupindex]
        for text in texts:
            if match := self.match(text):
                dates.append(text)
                for column, part in zip(parts, match.groups("")):  # thousands of matches would busy the collector
                    column.append(part)
        return Dates(dates, dict(zip(self.pattern.groupindex, parts)))


class Dates(NamedTuple):
    """Dates in one style as text, and the parts of each by the name of the group of its pattern, "" = absent."""

    texts: list[str]
    parts: dict[str, list[str]]


def _style(example: str, pattern: str, time: str = _TIME) -> Style:
    return Style(example, re.compile(pattern + time, re.IGNORECASE))


STYLES = (
    _style("2020-04-20", r"(?P<y>[0-9]{4})(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)(?P<d>[0-9]{1,2})\.?"),
    _style("2020. 4. 20", r"(?P<y>[0-9]{4})(?P<mark>[-/.]) (?P<m>[0-9]{1,2})(?P=mark) (?P<d>[0-9]{1,2})\.?", ""),
    _style("20200420", r"(?P<y>[12][0-9]{3})(?P<m>[0-9]{2})(?P<d>[0-9]{2})"),
    _style("2020-04", r"(?P<y>[12][0-9]{3})(?:[-/]?(?P<m>0[1-9]|1[0-2])|M(?P<m1>0?[1-9]|1[0-2]))", ""),
    _style("20.04.2020", r"(?P<d>[0-9]{1,2})\. ?(?P<m>[0-9]{1,2})\. ?(?P<y>[0-9]{4}|[0-9]{2})(?:\.| ?г\.?)?"),
    _style("2020年4月20日", r"(?P<y>[0-9]{4})年(?P<m>[0-9]{1,2})月(?P<d>[0-9]{1,2})日", ""),
    _style("2020년 4월 20일", r"(?P<y>[0-9]{4})년 ?(?P<m>[0-9]{1,2})월 ?(?P<d>[0-9]{1,2})일", ""),
    _style("113/04/20", r"(?P<y>1[0-9]{2})(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)(?P<d>[0-9]{1,2})", ""),
    _style(
        "20/04/2020", _DAY_NAME + r"(?P<a>[0-9]{1,2})(?P<mark>[-/])(?P<b>[0-9]{1,2})(?P=mark)(?P<y>[0-9]{4}|[0-9]{2})"
    ),
    _style("20-Apr-2020", _DAY_NAME + r"(?P<d>[0-9]{1,2})\.?[ /-]*" + _NAME + r"\.?,?[ /-]*(?P<y>[0-9]{2}|[0-9]{4})"),
    _style("Apr 20, 2020", _DAY_NAME + _NAME + r"\.? (?P<d>[0-9]{1,2}),? +(?P<y>[0-9]{4})"),
    _style("Apr 2020", _NAME + r"\.?[ -](?P<y>[0-9]{4})", ""),
    _style("1587340800", r"(?P<epoch>[0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})(?:\.0*)?", ""),
)  # fmt: skip
NUMBER = re.compile(r"[0-9]{1,3}|[0-9]{1,7}\.[0-9]+")  # of no style, which a look at thousands of prices is spared
HINTS = (  # of what is no date: its pattern, and what to do
    ("[1-9][0-9]{4}", "a day number of a spreadsheet? format the column as dates"),
    ("7[0-9]{5}", "a day number of MATLAB? write it with datestr, as 2020-04-20"),
    ("[0-9]{9}", "seconds since 1970, before 2001? write days as 2020-04-20"),
    ("[12][0-9]{3}[ -]?Q[1-4]|Q[1-4][ -]?[0-9]{2,4}", "a quarter; prices must be daily, weekly or monthly"),
    ("[12][0-9]{3}[ -]?W[0-9]{1,2}", "a week; write the day of its price, such as its Friday"),
    ("[12][0-9]{3}", "a year; prices must be daily, weekly or monthly, with year, month and day in one column"),
    (
        "[A-Za-z]{3,9}[ '-]+[0-9]{2}|[12][0-9]{3}:[0-9]{2}|M?(0?[1-9]|1[0-2])[ /-][12][0-9]{3}",
        "a month? write it as 2020-04",
    ),
)

ORDER_HINT = "; say which comes first with --date-order dmy, mdy or ymd (date_order=)"


def find_style(text: str) -> Style | None:
    """The style of a date, None for other text.

    >>> find_style("Jan 31, 2024").example
    'Apr 20, 2020'
    """
    if NUMBER.fullmatch(text):
        return None
    return next((style for style in STYLES if style.match(text)), None)


class DateFormat(NamedTuple):
    """How the dates of a column are written: their style and, where it does not tell, the order of day and month."""

    style: Style
    order: str | None = None

    @classmethod
    def detect(cls, texts: Iterable[str]) -> "DateFormat":
        """The format of the first text that is a date, and of the others of its style.

        Raises:
            ValueError: no date, or day and month of all of them can be mistaken; the message begins "expected ...".
        """
        distinct = list(dict.fromkeys(texts))
        style = next(filter(None, map(find_style, distinct)), None)
        if style is None:
            raise ValueError(_no_style(distinct[0] if distinct else ""))
        order, problems = _decide_order(style.read(distinct))
        if problems:
            raise ValueError(next(iter(problems.values())).removesuffix(ORDER_HINT))
        return cls(style, order)

    def parse(self, texts: Sequence[str]) -> Parsed:
        """The local times `(R,) datetime64[s]`; bad are texts of another style, and those that are no day."""
        distinct = dict.fromkeys(texts)
        dates = self.style.read(distinct)
        others = {text: _other_style(text, self.style) for text in distinct.keys() - set(dates.texts)}
        return _to_times(texts, dates, self.order, others)


def parse_dates(texts: Sequence[str], order: str | None = None) -> Parsed:
    """The local times `(R,) datetime64[s]` of a column of dates in one style and one time zone.

    Dots mean day first. Slashes and dashes mean what a part above 12 in any row says. 24/03/15 is told by the other
    dates, see `_is_year_first`. A month is dated on its last weekday. Offsets of one time zone may differ by an hour,
    in summer.

    The rules are tested one after the other, each in all rows: the first date has a known style; the others have its
    style; day and month have one order; there is one time zone; each is a day of the calendar. Bad are the cells that
    break the first of these rules that is broken.
    """
    style = find_style(texts[0])
    if style is None:
        return _rejected(texts, {texts[0]: _no_style(texts[0])})
    distinct = dict.fromkeys(texts)  # each is read once
    dates = style.read(distinct)
    if others := distinct.keys() - set(dates.texts):
        return _rejected(texts, {text: _other_style(text, style) for text in others})
    is_stated = order in ("dmy", "mdy") or (order == "ymd" and _first_of_two_digits(dates.parts))
    order, problems = (order, {}) if is_stated else _decide_order(dates)
    if problems := problems or _second_zone(dates):
        return _rejected(texts, problems)
    return _to_times(texts, dates, order, {})


def index_texts(texts: Sequence[str], distinct: Iterable[str]) -> Array:
    """The index of each text among the distinct ones.

    >>> index_texts(["WTI", "BRENT", "WTI"], ["WTI", "BRENT"]).tolist()
    [0, 1, 0]
    """
    indices = {text: n for n, text in enumerate(distinct)}
    return np.fromiter(map(indices.__getitem__, texts), dtype=np.int64, count=len(texts))


def _no_style(text: str) -> str:
    hint = next((f" ({hint})" for pattern, hint in HINTS if re.fullmatch(pattern, text.strip())), "")
    return f"expected a date, such as {STYLES[0].example}; got {text.strip()[:60]!r}{hint}"


def _other_style(text: str, style: Style) -> str:
    hint = "" if any(map(str.isdigit, text)) else " (remove rows that are no prices: summaries, a second header)"
    return f"expected a date such as {style.example}, the style of the first row; got {text.strip()[:60]!r}{hint}"


def _decide_order(dates: Dates) -> tuple[str | None, dict[str, str]]:
    """`dmy` or `mdy`, as a part above 12 says, or `ymd`; or the text, and its problem, where parts say both or none."""
    texts, parts = dates
    if _is_year_first(parts):
        return "ymd", {}
    if "a" not in parts:
        return None, {}
    day_first, month_first = (next((n for n, part in enumerate(parts[name]) if int(part) > 12), None) for name in "ab")
    if day_first is not None and month_first is not None:
        early, late = sorted((day_first, month_first))
        got = f"{texts[late].strip()!r} after {texts[early].strip()!r}"
        return None, {texts[late]: f"expected dates in one order of day and month; got {got}"}
    if day_first is None and month_first is None:
        problem = f"day and month can be mistaken for each other in every row; got {texts[0].strip()!r}"
        return None, {texts[0]: f"{problem}{ORDER_HINT}"}
    return "mdy" if day_first is None else "dmy", {}


def _first_of_two_digits(parts: Mapping[str, list[str]]) -> str:
    """The name of the first part of dates of three parts with two digits each, such as 24/03/15; "" = others."""
    first = next((name for name in "ad" if name in parts and "name" not in parts), "")
    return first if first and all(len(text) == 2 for name in (first, "y") for text in parts[name]) else ""


def _is_year_first(parts: Mapping[str, list[str]]) -> bool:
    """Whether 24/03/15 is of March 2024, as in East Asia: so the dates are sorted, otherwise not, or farther apart."""
    first = _first_of_two_digits(parts)
    if not first or not _moments(parts, "ymd")[1].all():
        return False
    ranks = []
    has_months = first == "a" and all(int(part) <= 12 for part in parts["a"])
    for order in ("ymd", "dmy", *(["mdy"] if has_months else [])):
        days = _moments(parts, order)[0].astype(np.int64)
        steps = np.diff(days)
        ranks.append((bool((steps > 0).all() or (steps < 0).all()), -np.ptp(days)))
    return bool(ranks[0][0] and ranks[0] > max(ranks[1:]))


def _second_zone(dates: Dates) -> dict[str, str]:
    """The first time in a second time zone and its problem; two offsets may be those of winter and summer."""
    zones: dict[str, str] = {}
    for text, zone in zip(dates.texts, dates.parts.get("zone", ())):
        zone = zone.upper().replace(":", "")
        zones.setdefault("Z" if zone in ("UTC", "GMT", "+0000") else zone, text)
    if len(zones) < 2:
        return {}
    if len(zones) == 2 and "" not in zones:
        minutes = [0 if zone == "Z" else int(zone[:3]) * 60 + int(zone[0] + zone[3:]) for zone in zones]
        if abs(minutes[0] - minutes[1]) == 60:
            return {}
    first, second = list(zones)[:2]
    expected = f"expected one time zone in the file ({first or 'no time zone'}, as above)"
    return {zones[second]: f"{expected}; got {zones[second].strip()!r}"}


def _rejected(texts: Sequence[str], problems: Mapping[str, str]) -> Parsed:
    """The result of a column that is not read, with the problem of each bad text."""
    bad = np.array([text in problems for text in texts])
    return Parsed(np.full(len(texts), np.datetime64("NaT", "s")), bad, lambda row: problems[texts[row]])


def _to_times(texts: Sequence[str], dates: Dates, order: str | None, problems: dict[str, str]) -> Parsed:
    """The times of texts, each of which is one of the dates or has a problem; dates that are no day are bad too."""
    moments, possible = _moments(dates.parts, order)
    years = calendar_years(moments)
    for n in np.flatnonzero(~possible | (years < FIRST_YEAR) | (years > LAST_YEAR)).tolist():
        range_words = f"a date from {FIRST_YEAR} to {LAST_YEAR}"
        if LAST_YEAR < years[n] < LAST_YEAR + BUDDHIST:
            range_words += f", which of the Buddhist calendar is {BUDDHIST} years earlier"
        words = range_words if possible[n] else "a day of the calendar and a time of day"
        problems[dates.texts[n]] = f"expected {words}; got {dates.texts[n].strip()!r}"
    distinct = dict.fromkeys([*dates.texts, *problems])
    times = np.full(len(distinct), np.datetime64("NaT", "s"))
    times[: len(moments)] = moments
    rows, bad = index_texts(texts, distinct), np.array([text in problems for text in distinct])
    return Parsed(times[rows], bad[rows], lambda row: problems[texts[row]])


def _moments(parts: Mapping[str, list[str]], order: str | None) -> tuple[Array, Array]:
    """The local times `(M,) datetime64[s]` of the parts of M dates, and which of them are days of the calendar."""
    if digits := parts.get("epoch"):
        seconds = [int(text) // EPOCHS[len(text)] for text in digits]
        return np.array(seconds).astype("datetime64[s]"), np.ones(len(seconds), dtype=bool)

    if order == "ymd" and (first := _first_of_two_digits(parts)):
        parts, order = {**parts, "y": parts[first], first: parts["y"]}, "dmy"

    def number(name: str, default: int = 0) -> Array:
        return np.array([int(text) if text else default for text in parts.get(name) or [""] * len(parts["y"])])

    year = number("y")
    year += np.where([len(text) == 2 for text in parts["y"]], np.where(year > 68, 1900, 2000), 0)  # as POSIX reads them
    year += np.where([len(text) == 3 for text in parts["y"]], 1911, 0)  # of the Republic of China, as in Taiwan
    month, day = number("m") + number("m1"), number("d", 1)
    if "name" in parts:
        month = np.array([month_number(name) for name in parts["name"]])
    elif "a" in parts:
        month, day = (number("b"), number("a")) if order == "dmy" else (number("a"), number("b"))
    hour, minute, second = map(number, "HMS")
    if any(parts.get("half", ())):
        half = np.array([text.lower() for text in parts["half"]])
        hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    months = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    length = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
    possible = (year > 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    possible &= (hour <= 23) & (minute <= 59) & (second <= 59)
    days = months.astype("datetime64[D]") + (day - 1) if parts.keys() & {"d", "a"} else month_end(months)
    return days.astype("datetime64[s]") + (3600 * hour + 60 * minute + second), possible


@cache
def month_number(name: str) -> int | None:
    """1 to 12 for the name of a month or its first letters, at least three; None for other words.

    >>> [month_number(name) for name in ("Jan", "Sept", "Mrz", "août", "jui", "June", "day", "paź", "мая", "Şub")]
    [1, 9, 3, 8, None, 6, None, 10, 5, 2]
    """
    letters = unicodedata.normalize("NFKD", name.lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    numbers = [n for n, names in enumerate(MONTHS, 1) if any(word.startswith(plain) for word in names.split())]
    return numbers[0] if len(numbers) == 1 and len(plain) >= 3 else None

"""Dates as text: the style and the order of day and month are decided from a whole column."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.calendar import month_end
from torchcommodity.data._core.prices import Array

FIRST_YEAR, LAST_YEAR = 1600, 2200
EPOCHS = {10: 1, 13: 10**3, 16: 10**6, 19: 10**9}  # digits of a number of seconds, ms, us and ns since 1970
MONTHS = (  # in the languages of Western European publishers
    "january januar janvier enero gennaio janeiro januari",
    "february februar fevrier febrero febbraio fevereiro februari",
    "march marz maerz mrz mars marzo marco maart mrt",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro",
)

_NAME = r"(?P<name>[^\W\d_]{3,10})"
_DAY_NAME = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +)?"
_TIME = (
    r"(?:(?:T|,? +)(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,][0-9]{1,9})?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
    r"(?: ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?)?"
)
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(?: ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?)?"
)


@dataclass(frozen=True)
class Style:
    """A style of dates: a pattern with groups y, m, d (and a, b where day and month can be mistaken), an example."""

    example: str
    pattern: re.Pattern[str]

    def match(self, text: str) -> re.Match[str] | None:
        """The parts of a date in this style."""
        match = self.pattern.fullmatch(text.strip())
        has_name = match is not None and "name" in self.pattern.groupindex
        return None if match is None or (has_name and not month_number(match["name"])) else match


def _style(example: str, pattern: str, time: str = _TIME) -> Style:
    return Style(example, re.compile(pattern + time, re.IGNORECASE))


STYLES = (
    _style("2020-04-20", r"(?P<y>[0-9]{4})(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)(?P<d>[0-9]{1,2})"),
    _style("20200420", r"(?P<y>[12][0-9]{3})(?P<m>[0-9]{2})(?P<d>[0-9]{2})"),
    _style("2020-04", r"(?P<y>[12][0-9]{3})(?:[-/]?(?P<m>0[1-9]|1[0-2])|M(?P<m1>0?[1-9]|1[0-2]))", ""),
    _style("20.04.2020", r"(?P<d>[0-9]{1,2})\.(?P<m>[0-9]{1,2})\.(?P<y>[0-9]{4}|[0-9]{2})"),
    _style("2020年4月20日", r"(?P<y>[0-9]{4})年(?P<m>[0-9]{1,2})月(?P<d>[0-9]{1,2})日", ""),
    _style("20/04/2020", r"(?P<a>[0-9]{1,2})(?P<mark>[-/])(?P<b>[0-9]{1,2})(?P=mark)(?P<y>[0-9]{4}|[0-9]{2})"),
    _style("20-Apr-2020", _DAY_NAME + r"(?P<d>[0-9]{1,2})\.?[ /-]*" + _NAME + r"\.?,?[ /-]*(?P<y>[0-9]{2}|[0-9]{4})"),
    _style("Apr 20, 2020", _DAY_NAME + _NAME + r"\.? (?P<d>[0-9]{1,2}),? +(?P<y>[0-9]{4})"),
    _style("Apr 2020", _NAME + r"\.?[ -](?P<y>[0-9]{4})", ""),
    _style("1587340800", r"(?P<epoch>[0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})(?:\.0*)?", ""),
)  # fmt: skip
HINTS = (  # of what is no date: its pattern, and what to do
    ("[1-9][0-9]{4}", "a day number of a spreadsheet? format the column as dates"),
    ("7[0-9]{5}", "a day number of MATLAB? write it with datestr, as 2020-04-20"),
    ("[0-9]{9}", "seconds since 1970, before 2001? write days as 2020-04-20"),
    ("[12][0-9]{3}[ -]?Q[1-4]|Q[1-4][ -]?[0-9]{2,4}", "a quarter; prices must be daily, weekly or monthly"),
    ("[12][0-9]{3}[ -]?W[0-9]{1,2}", "a week; write the day of its price, such as its Friday"),
    ("[12][0-9]{3}", "a year; prices must be daily, weekly or monthly, with year, month and day in one column"),
    ("[A-Za-z]{3,9}[ -][0-9]{2}|[12][0-9]{3}:[0-9]{2}", "a month? write it as 2020-04"),
)


class Parsed(NamedTuple):
    """The cells of a column as numbers or times.

    Args:
        values: `(R,)`; those of bad cells mean nothing.
        bad: `(R,)` mask of the cells that are no number or time.
        problem: what was expected and received in a bad row, as an error says it.
    """

    values: Array
    bad: Array
    problem: Callable[[int], str]


def find_style(text: str) -> Style | None:
    """The style of a date, None for other text.

    >>> find_style("Jan 31, 2024").example
    'Apr 20, 2020'
    """
    return next((style for style in STYLES if style.match(text)), None)


def parse_dates(texts: Sequence[str], order: str | None = None) -> Parsed:
    """The local times `(R,) datetime64[s]` of a column of dates in one style and one time zone.

    Dots mean day first. Slashes and dashes mean what a part above 12 in any row says. A month is dated on its last
    weekday. Offsets of one time zone may differ by an hour, in summer.

    The rules are tested one after the other, each in all rows: the first date has a known style; the others have its
    style; day and month have one order; there is one time zone; each is a day of the calendar. Bad are the cells that
    break the first of these rules that is broken.
    """
    distinct = list(dict.fromkeys(texts))  # each is read once
    rows = index_texts(texts, distinct)
    style = find_style(distinct[0])
    if style is None:
        return _bad(rows, {0: _no_style(distinct[0])})
    matches = [match for text in distinct if (match := style.match(text))]
    if len(matches) < len(distinct):
        return _bad(rows, {n: _other_style(text, style) for n, text in enumerate(distinct) if not style.match(text)})
    if "a" in style.pattern.groupindex and order not in ("dmy", "mdy"):
        order, problems = _decide_order(matches)
        if problems:
            return _bad(rows, problems)
    if problems := _second_zone(matches):
        return _bad(rows, problems)
    moments = [_moment(match, order) for match in matches]
    if problems := {n: moment for n, moment in enumerate(moments) if isinstance(moment, str)}:
        return _bad(rows, problems)
    times = np.array(moments, dtype="datetime64[s]")
    if not style.pattern.groupindex.keys() & {"d", "a", "epoch"}:
        times = month_end(times.astype("datetime64[M]")).astype("datetime64[s]")
    return Parsed(times[rows], np.zeros(len(rows), dtype=bool), lambda row: "")


def index_texts(texts: Sequence[str], distinct: Iterable[str]) -> Array:
    """The index of each text among the distinct ones.

    >>> index_texts(["WTI", "BRENT", "WTI"], ["WTI", "BRENT"]).tolist()
    [0, 1, 0]
    """
    indices = {text: n for n, text in enumerate(distinct)}
    return np.fromiter(map(indices.__getitem__, texts), dtype=np.int64, count=len(texts))


def _bad(rows: Array, problems: dict[int, str]) -> Parsed:
    """The result of a column with problems, by the number of the distinct text."""
    times = np.full(len(rows), np.datetime64("NaT", "s"))
    return Parsed(times, np.isin(rows, list(problems)), lambda row: problems[int(rows[row])])


def _no_style(text: str) -> str:
    hint = next((f" ({hint})" for pattern, hint in HINTS if re.fullmatch(pattern, text.strip())), "")
    return f"expected a date, such as {STYLES[0].example}; got {text.strip()[:60]!r}{hint}"


def _other_style(text: str, style: Style) -> str:
    hint = "" if any(map(str.isdigit, text)) else " (remove rows that are no prices: summaries, a second header)"
    return f"expected a date such as {style.example}, the style of the first row; got {text.strip()[:60]!r}{hint}"


def _decide_order(matches: list[re.Match[str]]) -> tuple[str, dict[int, str]]:
    """`dmy` or `mdy`, as a part above 12 says; or the problem, where parts say both or none."""
    day_first = next((n for n, match in enumerate(matches) if int(match["a"]) > 12), None)
    month_first = next((n for n, match in enumerate(matches) if int(match["b"]) > 12), None)
    if day_first is not None and month_first is not None:
        early, late = sorted((day_first, month_first))
        got = f"{matches[late][0]!r} after {matches[early][0]!r}"
        return "", {late: f"expected dates in one order of day and month; got {got}"}
    if day_first is None and month_first is None:
        problem = f"day and month can be mistaken for each other in every row; got {matches[0][0]!r}"
        return "", {0: f"{problem}; say which comes first with --date-order dmy or mdy (date_order=)"}
    return "mdy" if day_first is None else "dmy", {}


def _second_zone(matches: list[re.Match[str]]) -> dict[int, str]:
    """The problem of the first time in a second time zone; two offsets may be those of winter and summer."""
    zones: dict[str, int] = {}
    if "zone" not in matches[0].re.groupindex:
        return {}
    for n, match in enumerate(matches):
        zone = (match["zone"] or "").upper().replace(":", "")
        zones.setdefault("Z" if zone in ("UTC", "GMT", "+0000") else zone, n)
    if len(zones) < 2:
        return {}
    if len(zones) == 2 and "" not in zones:
        minutes = [0 if zone == "Z" else int(zone[:3]) * 60 + int(zone[0] + zone[3:]) for zone in zones]
        if abs(minutes[0] - minutes[1]) == 60:
            return {}
    first, second = list(zones)[:2]
    expected = f"expected one time zone in the file ({first or 'no time zone'}, as above)"
    return {zones[second]: f"{expected}; got {matches[zones[second]][0]!r}"}


def _moment(match: re.Match[str], order: str | None) -> datetime | str:
    """The local time of a date, or what is wrong with it."""
    groups = match.groupdict()
    try:
        if digits := groups.get("epoch"):
            moment = datetime(1970, 1, 1) + timedelta(seconds=int(digits) // EPOCHS[len(digits)])
        else:
            moment = datetime.combine(_day(groups, order), datetime.min.time()) + _clock(groups)
    except (ValueError, OverflowError):
        return f"expected a day of the calendar and a time of day; got {match[0]!r}"
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return f"expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {match[0]!r}"
    return moment


def _day(groups: dict[str, str | None], order: str | None) -> date:
    year = int(groups["y"] or 0)
    if len(groups["y"] or "") == 2:  # as POSIX reads them: 69 is 1969, 68 is 2068
        year += 1900 if year > 68 else 2000
    if groups.get("name"):
        month = month_number(groups["name"] or "") or 0
        return date(year, month, int(groups.get("d") or 1))
    if groups.get("a"):
        parts = int(groups["a"] or 0), int(groups["b"] or 0)
        return date(year, *(parts[::-1] if order == "dmy" else parts))
    return date(year, int(groups["m"] or groups.get("m1") or 0), int(groups.get("d") or 1))


def _clock(groups: dict[str, str | None]) -> timedelta:
    hour, minute, second = (int(groups.get(part) or 0) for part in "HMS")
    if groups.get("half"):
        hour = hour % 12 + 12 * ((groups["half"] or "").lower() == "p")
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("not a time of day")
    return timedelta(hours=hour, minutes=minute, seconds=second)


@cache
def month_number(name: str) -> int | None:
    """1 to 12 for the name of a month or its first letters, at least three; None for other words.

    >>> [month_number(name) for name in ("Jan", "Sept", "Mrz", "août", "jui", "June", "day")]
    [1, 9, 3, 8, None, 6, None]
    """
    letters = unicodedata.normalize("NFKD", name.lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    numbers = [n for n, names in enumerate(MONTHS, 1) if any(word.startswith(plain) for word in names.split())]
    return numbers[0] if len(numbers) == 1 and len(plain) >= 3 else None


def parse_date(text: str) -> tuple[date, str]:
    """Parse an ISO date, optionally with a time: the calendar day as written, and the time zone as written or "".

    Raises:
        ValueError: another format or an impossible day; the message continues "expected ...".

    >>> parse_date("2020-04-20T14:30:00Z")
    (datetime.date(2020, 4, 20), 'Z')
    """
    cell = text.strip()
    match = _ISO.fullmatch(cell)
    if match is None:
        raise ValueError(f"an ISO date YYYY-MM-DD{_date_hint(cell)}; got {cell[:60]!r}")
    year, month, day = (int(part) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    if not FIRST_YEAR <= year <= LAST_YEAR or hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"a possible date and time from {FIRST_YEAR} to {LAST_YEAR}; got {cell!r}")
    try:
        return date(year, month, day), match[7] or ""
    except ValueError:
        raise ValueError(f"a day of the calendar; got {cell!r}") from None


def _date_hint(cell: str) -> str:
    if re.fullmatch(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{2,4}", cell):
        return " (day and month can be mistaken for each other)"
    return ""

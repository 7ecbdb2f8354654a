"""Dates as text: the style and the order of day and month are decided from a whole column."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.frequency import calendar_years, month_end
from torchcommodity.data._sources.columns.cells import FIRST_YEAR, LAST_YEAR
from torchcommodity.data._sources.columns.months import month_number
from torchcommodity.data._sources.tables.table import Origin

EPOCHS = {10: 1, 13: 10**3, 16: 10**6, 19: 10**9}  # digits of a number of seconds, ms, us and ns since 1970

_ISO = re.compile("(?:[0-9]{4}-[0-9]{2}-[0-9]{2};)+")
_NAME = r"(?P<name>[^\W\d_]{3,10})"
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


def find_style(text: str) -> Style | None:
    """The style of a date, None for other text.

    >>> find_style("Jan 31, 2024").example
    'Apr 20, 2020'
    """
    cell = text.strip()
    for style in STYLES:
        if (match := style.pattern.fullmatch(cell)) and _is_known_month(match):
            return style
    return None


def parse_dates(texts: list[str], lines: Array, origin: Origin, order: str | None = None) -> Array:
    """The local times `(R,) datetime64[s]` of a column of dates in one style and one time zone.

    Dots mean day first. Slashes and dashes mean what a part above 12 in any row says. A month is dated on its last
    weekday. Offsets of one time zone may differ by an hour, in summer.

    Raises:
        DataError: a cell that is no date of the style of the first, an impossible day, an undecided order.
    """
    line_of = dict(zip(reversed(texts), lines[::-1].tolist()))  # the first one: earlier lines overwrite later ones
    first = {text: line_of[text] for text in dict.fromkeys(texts)}
    distinct = index_texts(texts, first)
    if (iso := _parse_iso(first)) is not None:
        return iso[distinct]
    style = _first_style(first, origin)
    matches = {text: _match(text, style, origin.at(line)) for text, line in first.items()}
    if "a" in style.pattern.groupindex:
        order = _decide_order(matches, first, origin, order)
    _check_zones(matches, first, origin)
    known = [_time(matches[text], text, origin.at(line), order) for text, line in first.items()]
    times = np.array(known, dtype="datetime64[s]")[distinct]
    months = "d" not in style.pattern.groupindex and "a" not in style.pattern.groupindex and style is not STYLES[-1]
    return month_end(times.astype("datetime64[M]")).astype("datetime64[s]") if months else times


def _parse_iso(texts: Iterable[str]) -> Array | None:
    """Dates YYYY-MM-DD at once; None if one is another text or an impossible day, which is read one by one."""
    if not _ISO.fullmatch(";".join([*texts, ""])):
        return None
    try:
        days = np.array(list(texts), dtype="datetime64[D]")
    except ValueError:
        return None
    years = calendar_years(days)
    return days.astype("datetime64[s]") if years.min() >= FIRST_YEAR and years.max() <= LAST_YEAR else None


def index_texts(texts: Sequence[str], distinct: Iterable[str]) -> Array:
    """The index of each text among the distinct ones.

    >>> index_texts(["WTI", "BRENT", "WTI"], ["WTI", "BRENT"]).tolist()
    [0, 1, 0]
    """
    indices = {text: n for n, text in enumerate(distinct)}
    return np.fromiter(map(indices.__getitem__, texts), dtype=np.int64, count=len(texts))


def _first_style(first: dict[str, int], origin: Origin) -> Style:
    text, line = next(iter(first.items()))
    style = find_style(text)
    if style is None:
        hint = next((f" ({hint})" for pattern, hint in HINTS if re.fullmatch(pattern, text.strip())), "")
        got = f"{text.strip()[:60]!r}{hint}"
        raise DataError(f"{origin.at(line)}: expected a date, such as {STYLES[0].example}; got {got}")
    return style


def _match(text: str, style: Style, where: str) -> re.Match[str]:
    match = style.pattern.fullmatch(text.strip())
    if match is None or not _is_known_month(match):
        hint = "" if any(map(str.isdigit, text)) else " (remove rows that are no prices: summaries, a second header)"
        got = f"{text.strip()[:60]!r}{hint}"
        raise DataError(f"{where}: expected a date such as {style.example}, the style of the first row; got {got}")
    return match


def _is_known_month(match: re.Match[str]) -> bool:
    name = match.groupdict().get("name")
    return name is None or month_number(name) is not None


def _decide_order(matches: dict[str, re.Match[str]], first: dict[str, int], origin: Origin, order: str | None) -> str:
    """`dmy` or `mdy`: as stated, or as a part above 12 says."""
    if order in ("dmy", "mdy"):
        return order
    days_first = next((text for text, match in matches.items() if int(match["a"]) > 12), None)
    months_first = next((text for text, match in matches.items() if int(match["b"]) > 12), None)
    if days_first and months_first:
        late = max(days_first, months_first, key=first.__getitem__)
        early = min(days_first, months_first, key=first.__getitem__)
        got = f"{late.strip()!r} after {early.strip()!r}"
        raise DataError(f"{origin.at(first[late])}: expected dates in one order of day and month; got {got}")
    if days_first is None and months_first is None:
        text, line = next(iter(first.items()))
        raise DataError(
            f"{origin.at(line)}: day and month can be mistaken for each other in every row; got {text.strip()!r}; "
            "say which comes first with --date-order dmy or mdy (date_order=)"
        )
    return "dmy" if days_first else "mdy"


def _check_zones(matches: dict[str, re.Match[str]], first: dict[str, int], origin: Origin) -> None:
    zones: dict[str, str] = {}
    for text, match in matches.items():
        zones.setdefault(_zone(match), text)
    if len(zones) < 2 or _is_one_zone(list(zones)):
        return
    (one, _), (_, text) = list(zones.items())[:2]
    raise DataError(
        f"{origin.at(first[text])}: expected one time zone in the file ({one or 'no time zone'}, as above); "
        f"got {text.strip()!r}"
    )


def _zone(match: re.Match[str]) -> str:
    zone = (match.groupdict().get("zone") or "").upper().replace(":", "")
    return "Z" if zone in ("UTC", "GMT", "+0000") else zone


def _is_one_zone(zones: list[str]) -> bool:
    """Whether two offsets are those of winter and summer."""
    if len(zones) > 2 or "" in zones:
        return False
    minutes = [0 if zone == "Z" else int(zone[:3]) * 60 + int(zone[0] + zone[3:]) for zone in zones]
    return abs(minutes[0] - minutes[1]) == 60


def _time(match: re.Match[str], text: str, where: str, order: str | None) -> datetime:
    groups = match.groupdict()
    try:
        if groups.get("epoch"):
            digits = groups["epoch"]
            moment = datetime(1970, 1, 1) + timedelta(seconds=int(digits) // EPOCHS[len(digits)])
        else:
            moment = datetime.combine(_day(groups, order), datetime.min.time()) + _clock(groups)
    except (ValueError, OverflowError):
        raise DataError(f"{where}: expected a day of the calendar and a time of day; got {text.strip()!r}") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise DataError(f"{where}: expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {text.strip()!r}")
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

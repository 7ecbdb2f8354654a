"""Cells of a text table: a price or a date, or an error that says why the text is neither."""

import re
from datetime import date

_DASHES = {"-", "--", "\u2013", "\u2014"}
MISSING = frozenset(
    {"", ".", "..", "...", "\u2026", "nan", "<na>", "na", "n/a", "#n/a", "#n/a n/a", "null", "none", "nd"}
)
MISSING |= _DASHES
FIRST_YEAR, LAST_YEAR = 1600, 2200

_NAN, _INF = float("nan"), float("inf")
_MISSING_AS_WRITTEN = MISSING | {"NaN", "NA", "N/A", "#N/A"}  # the usual spellings: a set lookup without .lower()
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NUMBER_CHARACTERS = re.compile(r"[0-9.+\-eE;]*")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(?: ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?)?"
)


def parse_price(text: str) -> float:
    """Parse one price; blank, `.`, `NaN`, `NA`, `N/A`, `#N/A` and `null` (in any case) are NaN.

    Raises:
        ValueError: not a finite number with a decimal point; the message continues "expected ...".

    >>> parse_price("-37.63"), parse_price(" . ")
    (-37.63, nan)
    """
    cell = text.strip()
    if cell.lower() in MISSING:
        return _NAN
    if _NUMBER.fullmatch(cell):
        if (number := float(cell)) not in (_INF, -_INF):
            return number
        raise ValueError(f"a finite price; got {cell[:60]!r}")
    if cell.lower().lstrip("+-") in ("inf", "infinity"):
        raise ValueError(f"a finite price; got {cell[:60]!r}")
    if re.fullmatch(r"[+-]?[0-9][0-9.,' \u00a0_]*", cell):
        raise ValueError(f"a price with a decimal point and no thousands separator or decimal comma; got {cell[:60]!r}")
    raise ValueError(f"a price; got {cell[:60]!r}{_price_hint(cell)}")


def _price_hint(cell: str) -> str:
    """What to do about a cell that is no price."""
    if re.fullmatch(r"#[A-Z0-9/]+[!?]|#N/A .*", cell):
        return " (an error of the spreadsheet; correct it there, or leave the cell empty)"
    if re.fullmatch(r"[+-]?[0-9.,]+ ?%", cell):
        return " (a change in percent? read prices, or name their column with --column)"
    return "" if any(map(str.isdigit, cell)) else " (leave the cell empty where there is no price)"


def parse_prices(cells: list[str]) -> list[float]:
    """`parse_price` of every cell; rows of plain numbers, nearly all of them, take a faster path.

    >>> parse_prices(["18.27", "NA"])
    [18.27, nan]
    """
    plain = _NUMBER_CHARACTERS.fullmatch(";".join(cells))  # blank = missing
    if plain or _NUMBER_CHARACTERS.fullmatch(";".join([cell for cell in cells if cell not in _MISSING_AS_WRITTEN])):
        try:
            if plain:
                numbers = [float(cell) if cell else _NAN for cell in cells]
            else:
                numbers = [_NAN if cell in _MISSING_AS_WRITTEN else float(cell) for cell in cells]
        except ValueError:
            return [parse_price(cell) for cell in cells]
        if _INF not in numbers and -_INF not in numbers:
            return numbers
    return [parse_price(cell) for cell in cells]


def parse_date(text: str) -> tuple[date, str]:
    """Parse an ISO date, optionally with a time: the calendar day as written, and the time zone as written or "".

    Raises:
        ValueError: another format or an impossible day; the message continues "expected ...".

    >>> parse_date("2020-04-20T14:30:00Z")
    (datetime.date(2020, 4, 20), 'Z')
    """
    cell = text.strip()
    match = _DATE.fullmatch(cell)
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

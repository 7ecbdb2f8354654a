"""Horizons of a forecast: numbers of rows, and their names in weeks and months."""

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from torchcommodity.data._core.calendar import Frequency, RowCalendar

Horizon = int | str

UNITS = {"d": "day", "w": "week", "m": "month", "mo": "month", "y": "year"}
TRADING: Mapping[str, Fraction] = {
    "day": Fraction(1),
    "week": Fraction(5),
    "month": Fraction(21),
    "year": Fraction(252),
}
EVERY_DAY = {"day": Fraction(1), "week": Fraction(7), "month": Fraction(365, 12), "year": Fraction(365)}
WEEKLY = {"week": Fraction(1), "month": Fraction(52, 12), "year": Fraction(52)}
MONTHLY = {"month": Fraction(1), "year": Fraction(12)}
"""Rows of each unit, by what a row is."""

MAX_HORIZON = 100_000
TEXT = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)


def horizon_rows(horizons: Horizon | Iterable[Horizon], calendar: RowCalendar) -> tuple[int, ...]:
    """Convert horizons to numbers of rows, ascending, each once.

    An int is a number of rows. A text is a number and a unit in either case, `d`, `w`, `m` (or `mo`) and `y`, converted
    by what a row is and rounded to the nearest row:

    | rows | 1d | 1w | 1m | 3m | 1y |
    |---|---|---|---|---|---|
    | trading days | 1 | 5 | 21 | 63 | 252 |
    | every day, weekends too | 1 | 7 | 30 | 91 | 365 |
    | weeks | | 1 | 4 | 13 | 52 |
    | months | | | 1 | 3 | 12 |

    Args:
        horizons: one or several.
        calendar: of the rows, see `row_calendar`.

    Raises:
        TypeError: a horizon is neither an int nor a text.
        ValueError: no horizon, one below 1 or above 100,000, an unknown unit, or one shorter than a row.

    >>> horizon_rows(["2w", "1M", 10], RowCalendar("daily")), horizon_rows("1y", RowCalendar("monthly"))
    ((10, 21), (12,))
    >>> horizon_rows(["2w"], RowCalendar("monthly"))
    Traceback (most recent call last):
    ValueError: horizons: monthly prices must have horizons in months, years, such as '1m'; got '2w'
    """
    several = horizons if isinstance(horizons, Iterable) and not isinstance(horizons, str) else [horizons]
    rows = {_rows(horizon, calendar) for horizon in several}
    if not rows:
        raise ValueError("horizons: expected at least one; got none")
    return tuple(sorted(rows))


def horizon_index(horizon: Horizon, horizons: Sequence[int], calendar: RowCalendar) -> int:
    """Position of a horizon, rows or a text, among those of a forecast.

    Raises:
        ValueError: it is none of them.

    >>> horizon_index("1m", (5, 21, 63), RowCalendar("daily"))
    1
    """
    try:
        return horizons.index(*horizon_rows(horizon, calendar))
    except (TypeError, ValueError):
        from torch_opkit.arguments import current_operation  # imports torch, which a front of a server lacks

        choices = ", ".join(f"{rows} ({horizon_code(rows, calendar)})" for rows in horizons)
        raise ValueError(f"{current_operation()}: horizon must be one of {choices}; got {horizon!r}") from None


def horizon_unit(rows: int, calendar: RowCalendar) -> tuple[int, str]:
    """A horizon in the longest unit of which it is a multiple; of weeks, 4 are a month, and multiples of 13 are months.

    >>> [horizon_unit(rows, RowCalendar("daily")) for rows in (1, 10, 21)], horizon_unit(26, RowCalendar("weekly"))
    ([(1, 'day'), (2, 'week'), (1, 'month')], (6, 'month'))
    """
    if calendar.frequency == "monthly":
        return rows, "month"
    if calendar.frequency == "weekly":
        return (1, "month") if rows == 4 else (rows, "week") if rows % 13 else (3 * rows // 13, "month")
    units = _units(calendar)
    unit = next(unit for unit in ("month", "week", "day") if rows % units[unit] == 0)
    return int(rows // units[unit]), unit


def horizon_code(rows: int, calendar: RowCalendar) -> str:
    """Short name of a horizon, which `horizon_rows` reads; see `horizon_unit`.

    >>> [horizon_code(rows, RowCalendar("daily")) for rows in (1, 10, 21, 252)], horizon_code(26, RowCalendar("weekly"))
    (['1d', '2w', '1m', '12m'], '6m')
    """
    number, unit = horizon_unit(rows, calendar)
    return f"{number}{unit[0]}"


def horizon_name(rows: int, calendar: RowCalendar | Frequency) -> str:
    """Name of a horizon; see `horizon_unit`.

    Args:
        rows: the horizon.
        calendar: of the rows, or their frequency.

    >>> horizon_name(21, "daily"), horizon_name(12, "monthly"), horizon_name(2, "weekly")
    ('1 month', '12 months', '2 weeks')
    """
    number, unit = horizon_unit(rows, calendar if isinstance(calendar, RowCalendar) else RowCalendar(calendar))
    return f"{number} {unit}{'s' * (number != 1)}"


def _rows(horizon: Horizon, calendar: RowCalendar) -> int:
    rule = "expected numbers of rows, or texts such as '2w', '6m' and '1y'"
    if isinstance(horizon, str):
        match, units = TEXT.fullmatch(horizon.strip()), _units(calendar)
        unit = UNITS.get(match[2].lower()) if match else None
        if match is None or (match[2] and unit is None):
            raise ValueError(f"horizons: {rule}; got {horizon!r}")
        if unit is not None and unit not in units:
            names = ", ".join(f"{name}s" for name in units)
            example = f"1{next(iter(units))[0]}"
            raise ValueError(
                f"horizons: {calendar.frequency} prices must have horizons in {names}, such as {example!r}; "
                f"got {horizon!r}"
            )
        rows = int(match[1]) if unit is None else round(int(match[1]) * units[unit])
    else:
        if isinstance(horizon, bool) or not hasattr(horizon, "__index__"):
            raise TypeError(f"horizons: {rule}; got {horizon!r}")
        rows = operator.index(horizon)
    if rows < 1:
        raise ValueError(f"horizons: must be at least 1 row; got {horizon!r}")
    if rows > MAX_HORIZON:
        raise ValueError(f"horizons: must be at most {MAX_HORIZON:,} rows; got {horizon!r}")
    return rows


def _units(calendar: RowCalendar) -> Mapping[str, Fraction]:
    by_frequency = {"daily": TRADING, "weekly": WEEKLY, "monthly": MONTHLY}
    return EVERY_DAY if calendar.day == "every day" else by_frequency[calendar.frequency]

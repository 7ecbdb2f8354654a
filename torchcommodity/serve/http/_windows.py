"""From a request to what the artifact reads, checked as it will check, with the place of what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from torchcommodity.export import Metadata
from torchcommodity.serve._request_error import RequestError, expected
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._schema import Instance, Parameters, Request

Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Window:
    """One instance: T rows of N prices, NaN = missing, and their days."""

    prices: npt.NDArray[np.float64]  # (T, N)
    days: npt.NDArray[np.int64]  # (T,) since 1970-01-01


@dataclass(frozen=True)
class Wanted:
    """Which of the artifact's quantiles are asked for, and as what."""

    horizons: list[int]  # places in `metadata.horizons`
    levels: list[int]  # places in `metadata.levels`
    quantity: str


def windows(request: Request, about: Metadata, limits: Limits) -> list[Window]:
    """Every instance of a request.

    Raises:
        RequestError: 422, with the field.
    """
    count = len(request.instances)
    if not 1 <= count <= limits.instances:
        raise expected("instances", f"1 to {limits.instances} of them", count)
    return [_window(instance, f"instances[{i}]", about, limits) for i, instance in enumerate(request.instances)]


def wanted(parameters: Parameters | None, about: Metadata) -> Wanted:
    """Which quantiles, all of them by default.

    Raises:
        RequestError: 422, for a level or horizon that the artifact has not.
    """
    asked = parameters or Parameters()
    horizons = _places("horizons", asked.horizons, about.horizons)
    return Wanted(horizons, _places("levels", asked.levels, about.levels), asked.quantity)


def _places(name: str, asked: Sequence[float] | None, known: Sequence[float]) -> list[int]:
    field = f"parameters.{name}"
    if asked is not None and not 1 <= len(asked) <= len(known):
        raise expected(field, f"1 to {len(known)} of {', '.join(map(str, known))}", len(asked))
    for i, value in enumerate(asked or ()):
        if value not in known:
            raise expected(f"{field}[{i}]", f"one of {', '.join(map(str, known))}", value)
    return [list(known).index(value) for value in (known if asked is None else asked)]


def _window(instance: Instance, place: str, about: Metadata, limits: Limits) -> Window:
    rows = len(instance.dates)
    if not about.min_rows <= rows <= limits.rows:
        raise expected(f"{place}.dates", f"{about.min_rows} to {limits.rows} days", rows)
    days = _days(instance.dates, f"{place}.dates", about)
    given = instance.prices
    if isinstance(given, Mapping):
        prices = np.stack(_by_symbol(given, f"{place}.prices", about, rows), axis=1)
    else:
        prices = _by_row(given, f"{place}.prices", about, rows)
    return Window(prices, days)


def _by_row(given: Sequence[Numbers], field: str, about: Metadata, rows: int) -> npt.NDArray[np.float64]:
    if len(given) != rows:
        raise expected(field, f"as many rows as dates, {rows}", len(given))
    for row, numbers in enumerate(given):
        if len(numbers) != len(about.symbols):
            raise expected(f"{field}[{row}]", f"{len(about.symbols)} prices: {', '.join(about.symbols)}", numbers)
    return np.array(given, dtype=np.float64)  # None becomes NaN


def _by_symbol(given: Mapping[str, Numbers], field: str, about: Metadata, rows: int) -> list[npt.NDArray[np.float64]]:
    for symbol in given:
        if symbol not in about.symbols:
            raise expected(field, f"the symbols {', '.join(about.symbols)}", symbol)
    for symbol in about.symbols:
        if symbol not in given:
            raise expected(f"{field}.{symbol}", f"{rows} prices", None)
        if len(given[symbol]) != rows:
            raise expected(f"{field}.{symbol}", f"as many prices as dates, {rows}", len(given[symbol]))
    return [np.array(given[symbol], dtype=np.float64) for symbol in about.symbols]


def _days(dates: Sequence[str], field: str, about: Metadata) -> npt.NDArray[np.int64]:
    try:
        days = np.array(dates, dtype="datetime64[D]").astype(np.int64)
    except ValueError:
        raise _no_day(dates, field) from None
    first, last = about.day_range
    outside = np.flatnonzero((days < first) | (days > last))
    if outside.size:
        raise expected(f"{field}[{outside[0]}]", f"a day from {' to '.join(about.calendar)}", dates[outside[0]])
    falling = np.flatnonzero(np.diff(days) <= 0) + 1
    if falling.size:
        row = int(falling[0])
        raise expected(f"{field}[{row}]", f"a day after {dates[row - 1]}, the row before", dates[row])
    return days


def _no_day(dates: Sequence[str], field: str) -> RequestError:
    for row, text in enumerate(dates):
        try:
            date.fromisoformat(text)
        except ValueError:
            return expected(f"{field}[{row}]", "a day of the calendar as 2018-12-31", text)
    return RequestError(422, f"{field}: expected days of the calendar; got one that is none", field)

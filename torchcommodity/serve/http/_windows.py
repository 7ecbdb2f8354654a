"""Windows of a request, and the outputs that it selects, checked against the artifact's metadata."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from torchcommodity.data import Horizon, RowCalendar, frequency_problem, horizon_rows, latest_date, overflows
from torchcommodity.serve._request_error import RequestError, invalid_field
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._messages import OutputSelection, PriceWindow, ServedArtifact
from torchcommodity.serve.http._request import Instance, Parameters, PredictRequest, PriceSeries
from torchcommodity.serve.http._series import SeriesCache


def make_windows(
    request: PredictRequest, metadata: ServedArtifact, limits: Limits, series: SeriesCache, owner: str = ""
) -> list[PriceWindow]:
    """Windows of all instances of a request; those with a name are kept in `series`, for the owner of the token.

    Raises:
        RequestError: 422 with the invalid field.
    """
    count = len(request.instances)
    if not 1 <= count <= limits.max_instances:
        raise invalid_field("instances", f"1 to {limits.max_instances} instances", count)
    windows = []
    for i, instance in enumerate(request.instances):
        field = f"instances[{i}]"
        if instance.append and instance.series is None:
            raise invalid_field(f"{field}.series", "the name of the series to which the rows are appended", None)
        if instance.series is not None and not series.limit:
            expected = "no name: the server keeps no series (see its option --live)"
            raise invalid_field(f"{field}.series", expected, instance.series)
        window = _window(instance, field, metadata, limits)
        if instance.append:
            window = series.append(owner, str(instance.series), window, field)
            _check_rows(len(window.days), f"{field}.dates", metadata.min_rows, limits)
        dates, latest = window.days.astype("datetime64[D]"), latest_date(metadata.frequency)
        if dates[-1] > latest:
            row = len(instance.dates) - 1
            raise invalid_field(f"{field}.dates[{row}]", f"a date up to {latest}, not in the future", str(dates[-1]))
        if problem := frequency_problem(dates, metadata.frequency):
            raise RequestError(422, f"{field}.dates: {problem}", f"{field}.dates")
        if instance.series is not None:
            series.keep(owner, instance.series, window)
        windows.append(window)
    return windows


def _check_rows(rows: int, field: str, least: int, limits: Limits) -> None:
    if not least <= rows <= limits.max_rows:
        raise invalid_field(field, f"{least} to {limits.max_rows} dates", rows)


def select_outputs(parameters: Parameters | None, metadata: ServedArtifact) -> OutputSelection:
    """Outputs that the parameters select; all horizons and levels by default.

    Raises:
        RequestError: 422 for a level or horizon that the artifact does not have.
    """
    parameters = parameters or Parameters()
    rows = None if parameters.horizons is None else [_rows(horizon, metadata) for horizon in parameters.horizons]
    horizons = _indices("horizons", rows, metadata.horizons)
    return OutputSelection(horizons, _indices("levels", parameters.levels, metadata.levels), parameters.quantity)


def _rows(horizon: Horizon, metadata: ServedArtifact) -> Horizon:
    """A horizon of the artifact in rows; any other as it is."""
    with suppress(ValueError):
        (rows,) = horizon_rows(horizon, RowCalendar(metadata.frequency))
        return rows if rows in metadata.horizons else horizon
    return horizon


def _indices(name: str, values: Sequence[Any] | None, available: Sequence[float]) -> list[int]:
    if values is None:
        return list(range(len(available)))
    field, choices = f"parameters.{name}", ", ".join(map(str, available))
    if not 1 <= len(values) <= len(available):
        raise invalid_field(field, f"1 to {len(available)} of {choices}", len(values))
    for i, value in enumerate(values):
        if value not in available:
            raise invalid_field(f"{field}[{i}]", f"one of {choices}", value)
    return [list(available).index(value) for value in values]


def _window(instance: Instance, field: str, metadata: ServedArtifact, limits: Limits) -> PriceWindow:
    """Prices and days of an instance, by row or by symbol, one price per date and symbol.

    By symbol, the references, closes of curves, and open, high and low of the artifact may be left out.
    """
    rows = len(instance.dates)
    _check_rows(rows, f"{field}.dates", 1 if instance.append else metadata.min_rows, limits)
    days = _days(instance.dates, f"{field}.dates", metadata)
    field, symbols = f"{field}.prices", metadata.columns
    by_symbol = isinstance(instance.prices, dict)
    if isinstance(instance.prices, dict):
        for symbol in instance.prices:
            if symbol not in symbols:
                raise invalid_field(field, f"the symbols {', '.join(symbols)}", symbol)
        missing: PriceSeries = [None] * rows
        series = dict.fromkeys(symbols[len(metadata.symbols) :], missing) | instance.prices
        for symbol in symbols:
            if symbol not in series:
                raise invalid_field(f"{field}.{symbol}", f"{rows} prices", None)
            if (count := len(series[symbol])) != rows:
                raise invalid_field(f"{field}.{symbol}", f"{rows} prices, one per date", count)
        columns = [series[symbol] for symbol in symbols]
        prices = np.ascontiguousarray(_flat_array(columns, rows * len(symbols)).reshape(len(symbols), rows).T)
    else:
        if len(instance.prices) != rows:
            raise invalid_field(field, f"{rows} rows, one per date", len(instance.prices))
        if set(map(len, instance.prices)) != {len(symbols)}:
            i = next(i for i, row in enumerate(instance.prices) if len(row) != len(symbols))
            raise invalid_field(f"{field}[{i}]", f"{len(symbols)} prices ({', '.join(symbols)})", instance.prices[i])
        prices = _flat_array(instance.prices, rows * len(symbols)).reshape(rows, len(symbols))
    unusable = overflows(prices)
    if unusable.any():
        row, n = map(int, np.argwhere(unusable)[0])
        cell = f".{symbols[n]}[{row}]" if by_symbol else f"[{row}][{n}]"
        raise invalid_field(f"{field}{cell}", "zero, or a magnitude from 1e-100 to 1e100", prices[row, n])
    return PriceWindow(prices, days)


def _days(dates: Sequence[str], field: str, metadata: ServedArtifact) -> npt.NDArray[np.int64]:  # (T,)
    """Days since 1970-01-01 of ascending dates."""
    try:
        days = np.array(dates, "datetime64[D]").astype(np.int64)
    except ValueError:
        row = next(row for row, text in enumerate(dates) if not _is_date(text))
        raise invalid_field(f"{field}[{row}]", "a valid date such as 2018-12-31", dates[row]) from None
    first, last = metadata.day_range
    if (outside := np.flatnonzero((days < first) | (days > last))).size:
        row = int(outside[0])
        raise invalid_field(f"{field}[{row}]", f"a date from {' to '.join(metadata.calendar)}", dates[row])
    if (unordered := np.flatnonzero(days[1:] <= days[:-1]) + 1).size:
        row = int(unordered[0])
        raise invalid_field(f"{field}[{row}]", f"a date after {dates[row - 1]}, the previous row's", dates[row])
    return days


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _flat_array(lists: Sequence[PriceSeries], size: int) -> npt.NDArray[np.float64]:
    # twice as fast as np.array, which looks at every value twice; None becomes NaN
    return np.fromiter(chain.from_iterable(lists), object, size).astype(np.float64)

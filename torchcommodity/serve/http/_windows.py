"""Windows of a request, and the outputs that it selects, checked against the artifact's metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from torchcommodity.data import DataError, check_frequency, latest_date, overflows
from torchcommodity.serve._request_error import RequestError, invalid_field
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._schema import Instance, Parameters, PredictRequest
from torchcommodity.serve.http._series import SeriesCache, Window
from torchcommodity.serve.http._served import ServedArtifact

PriceColumn = Sequence[float | None]


@dataclass(frozen=True)
class OutputSelection:
    """Quantiles that a request selects."""

    horizons: list[int]  # indices into `metadata.horizons`
    levels: list[int]  # indices into `metadata.levels`
    quantity: str


def make_windows(
    request: PredictRequest, metadata: ServedArtifact, limits: Limits, series: SeriesCache
) -> list[Window]:
    """Windows of all instances of a request; those with a name are kept in `series`.

    Raises:
        RequestError: 422 with the invalid field.
    """
    count = len(request.instances)
    if not 1 <= count <= limits.max_instances:
        raise invalid_field("instances", f"1 to {limits.max_instances} instances", count)
    windows = []
    for i, instance in enumerate(request.instances):
        field = f"instances[{i}]"
        _check_series(instance, field, series)
        window = _window(instance, field, metadata, limits)
        if instance.append:
            window = series.append(str(instance.series), window, field)
            _check_rows(len(window.days), f"{field}.dates", metadata.min_rows, limits)
        _check_frequency(window.days, f"{field}.dates", metadata)
        if instance.series is not None:
            series.keep(instance.series, window)
        windows.append(window)
    return windows


def _check_series(instance: Instance, field: str, series: SeriesCache) -> None:
    if instance.append and instance.series is None:
        raise invalid_field(f"{field}.series", "the name of the series to which the rows are appended", None)
    if instance.series is not None and not series.limit:
        raise invalid_field(
            f"{field}.series", "no name: the server keeps no series (see its option --live)", instance.series
        )


def _check_rows(rows: int, field: str, least: int, limits: Limits) -> None:
    if not least <= rows <= limits.max_rows:
        raise invalid_field(field, f"{least} to {limits.max_rows} dates", rows)


def select_outputs(parameters: Parameters | None, metadata: ServedArtifact) -> OutputSelection:
    """Outputs that the parameters select; all horizons and levels by default.

    Raises:
        RequestError: 422 for a level or horizon that the artifact does not have.
    """
    parameters = parameters or Parameters()
    horizons = _indices("horizons", parameters.horizons, metadata.horizons)
    return OutputSelection(horizons, _indices("levels", parameters.levels, metadata.levels), parameters.quantity)


def _indices(name: str, values: Sequence[float] | None, available: Sequence[float]) -> list[int]:
    field, choices = f"parameters.{name}", ", ".join(map(str, available))
    if values is not None and not 1 <= len(values) <= len(available):
        raise invalid_field(field, f"1 to {len(available)} of {choices}", len(values))
    for i, value in enumerate(values or ()):
        if value not in available:
            raise invalid_field(f"{field}[{i}]", f"one of {choices}", value)
    return [list(available).index(value) for value in (available if values is None else values)]


def _window(instance: Instance, field: str, metadata: ServedArtifact, limits: Limits) -> Window:
    rows = len(instance.dates)
    _check_rows(rows, f"{field}.dates", 1 if instance.append else metadata.min_rows, limits)
    days = _days(instance.dates, f"{field}.dates", metadata)
    if isinstance(instance.prices, Mapping):
        prices = np.stack(_price_columns(instance.prices, f"{field}.prices", metadata, rows), axis=1)
    else:
        prices = _price_rows(instance.prices, f"{field}.prices", metadata, rows)
    if (unusable := np.argwhere(overflows(prices))).size:
        row, n = map(int, unusable[0])
        by_symbol = isinstance(instance.prices, Mapping)
        cell = f".{metadata.symbols[n]}[{row}]" if by_symbol else f"[{row}][{n}]"
        raise invalid_field(f"{field}.prices{cell}", "zero, or a magnitude from 1e-100 to 1e100", prices[row, n])
    return Window(prices, days)


def _price_rows(
    prices: Sequence[PriceColumn], field: str, metadata: ServedArtifact, rows: int
) -> npt.NDArray[np.float64]:  # (T, N)
    symbols = metadata.symbols
    if len(prices) != rows:
        raise invalid_field(field, f"{rows} rows, one per date", len(prices))
    for i, row in enumerate(prices):
        if len(row) != len(symbols):
            raise invalid_field(f"{field}[{i}]", f"{len(symbols)} prices ({', '.join(symbols)})", row)
    return np.array(prices, dtype=np.float64)  # None becomes NaN


def _price_columns(
    prices: Mapping[str, PriceColumn], field: str, metadata: ServedArtifact, rows: int
) -> list[npt.NDArray[np.float64]]:
    for symbol in prices:
        if symbol not in metadata.symbols:
            raise invalid_field(field, f"the symbols {', '.join(metadata.symbols)}", symbol)
    for symbol in metadata.symbols:
        if symbol not in prices:
            raise invalid_field(f"{field}.{symbol}", f"{rows} prices", None)
        if len(prices[symbol]) != rows:
            raise invalid_field(f"{field}.{symbol}", f"{rows} prices, one per date", len(prices[symbol]))
    return [np.array(prices[symbol], dtype=np.float64) for symbol in metadata.symbols]


def _days(dates: Sequence[str], field: str, metadata: ServedArtifact) -> npt.NDArray[np.int64]:
    try:
        days = np.array(dates, dtype="datetime64[D]").astype(np.int64)
    except ValueError:
        raise _invalid_date(dates, field) from None
    first, last = metadata.day_range
    outside = np.flatnonzero((days < first) | (days > last))
    if outside.size:
        row = int(outside[0])
        raise invalid_field(f"{field}[{row}]", f"a date from {' to '.join(metadata.calendar)}", dates[row])
    unordered = np.flatnonzero(np.diff(days) <= 0) + 1
    if unordered.size:
        row = int(unordered[0])
        raise invalid_field(f"{field}[{row}]", f"a date after {dates[row - 1]}, the previous row's", dates[row])
    latest = latest_date(metadata.frequency)
    if days[-1] > latest.astype(np.int64):
        raise invalid_field(f"{field}[{len(days) - 1}]", f"a date up to {latest}, not in the future", dates[-1])
    return days


def _check_frequency(days: npt.NDArray[np.int64], field: str, metadata: ServedArtifact) -> None:
    try:
        check_frequency(field, days.astype("datetime64[D]"), metadata.frequency)
    except DataError as error:
        raise RequestError(422, str(error), field) from None


def _invalid_date(dates: Sequence[str], field: str) -> RequestError:
    for row, text in enumerate(dates):
        try:
            date.fromisoformat(text)
        except ValueError:
            return invalid_field(f"{field}[{row}]", "a valid date such as 2018-12-31", text)
    return RequestError(422, f"{field}: expected valid dates such as 2018-12-31", field)

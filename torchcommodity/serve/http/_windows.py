"""Tensors of a request, and the outputs that it selects, checked against the artifact's metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

from torchcommodity.data import DataError, check_frequency, overflows
from torchcommodity.export import Metadata
from torchcommodity.serve._request_error import RequestError, invalid_field
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._schema import Instance, Parameters, PredictRequest

PriceColumn = Sequence[float | None]


@dataclass(frozen=True)
class Window:
    """Prices and days of one instance."""

    prices: npt.NDArray[np.float64]  # (T, N), NaN = missing
    days: npt.NDArray[np.int64]  # (T,) since 1970-01-01


@dataclass(frozen=True)
class OutputSelection:
    """Quantiles that a request selects."""

    horizons: list[int]  # indices into `metadata.horizons`
    levels: list[int]  # indices into `metadata.levels`
    quantity: str


def make_windows(request: PredictRequest, metadata: Metadata, limits: Limits) -> list[Window]:
    """Windows of all instances of a request.

    Raises:
        RequestError: 422 with the invalid field.
    """
    count = len(request.instances)
    if not 1 <= count <= limits.max_instances:
        raise invalid_field("instances", f"1 to {limits.max_instances} instances", count)
    return [_window(instance, f"instances[{i}]", metadata, limits) for i, instance in enumerate(request.instances)]


def select_outputs(parameters: Parameters | None, metadata: Metadata) -> OutputSelection:
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


def _window(instance: Instance, field: str, metadata: Metadata, limits: Limits) -> Window:
    rows = len(instance.dates)
    if not metadata.min_rows <= rows <= limits.max_rows:
        raise invalid_field(f"{field}.dates", f"{metadata.min_rows} to {limits.max_rows} dates", rows)
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
    prices: Sequence[PriceColumn], field: str, metadata: Metadata, rows: int
) -> npt.NDArray[np.float64]:  # (T, N)
    symbols = metadata.symbols
    if len(prices) != rows:
        raise invalid_field(field, f"{rows} rows, one per date", len(prices))
    for i, row in enumerate(prices):
        if len(row) != len(symbols):
            raise invalid_field(f"{field}[{i}]", f"{len(symbols)} prices ({', '.join(symbols)})", row)
    return np.array(prices, dtype=np.float64)  # None becomes NaN


def _price_columns(
    prices: Mapping[str, PriceColumn], field: str, metadata: Metadata, rows: int
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


def _days(dates: Sequence[str], field: str, metadata: Metadata) -> npt.NDArray[np.int64]:
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
    try:
        check_frequency(field, days.astype("datetime64[D]"), metadata.frequency)
    except DataError as error:
        raise RequestError(422, str(error), field) from None
    return days


def _invalid_date(dates: Sequence[str], field: str) -> RequestError:
    for row, text in enumerate(dates):
        try:
            date.fromisoformat(text)
        except ValueError:
            return invalid_field(f"{field}[{row}]", "a valid date such as 2018-12-31", text)
    return RequestError(422, f"{field}: expected valid dates such as 2018-12-31", field)

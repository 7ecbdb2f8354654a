"""Parse the rows of one panel into prices and days, or reject it with a reason."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from torchcommodity.batch._sources import Source
from torchcommodity.data import (
    check_frequency,
    check_not_future,
    expected_range,
    overflows,
    parse_date,
    parse_price,
    parse_prices,
    summarize_names,
)
from torchcommodity.export import Metadata
from torchcommodity.forecast import check_warmup

MAX_ROWS = 2_000_000  # per panel; the calendar has 33,237 days
EPOCH = date(1970, 1, 1).toordinal()

Array = np.ndarray[Any, Any]
Locate = Callable[[int], str]  # row of a column -> `panels.parquet, row 7`


class PanelRows(NamedTuple):
    """Rows of a panel, in the order of the table; rows beyond `MAX_ROWS` are only counted."""

    name: str | None
    batches: list[Any]  # pyarrow.RecordBatch
    total: int


class ParsedPanel(NamedTuple):
    """Inputs of the artifact: `prices` (T, N) float64, `days` (T,) int64 since 1970-01-01."""

    name: str
    prices: Array
    days: Array
    ignored_rows: int  # rows of symbols that the artifact does not have


class RejectedPanel(NamedTuple):
    """A panel without a forecast, and the reason."""

    name: str | None
    reason: str


def split_by_panel(batches: Iterable[Any]) -> Iterator[PanelRows]:
    """Group record batches of any size, sorted by panel, into the rows of each panel."""
    parts: list[Any] = []
    name, count = None, 0
    for batch in batches:
        runs = pc.run_end_encode(batch.column("panel"))
        start = 0
        for end, panel in zip(runs.run_ends.to_pylist(), runs.values.to_pylist()):
            if parts and panel != name:
                yield PanelRows(name, parts, count)
                parts, count = [], 0
            name = panel
            if count <= MAX_ROWS:
                parts.append(batch.slice(start, end - start))
            count += end - start
            start = end
    if parts:
        yield PanelRows(name, parts, count)


def parse_panel(rows: PanelRows, metadata: Metadata, source: Source) -> ParsedPanel | RejectedPanel:
    """Parse the prices and days of a panel.

    The days are those on which a symbol of the artifact has a row in the table, with or without a price. Rows of other
    symbols are ignored.
    """
    try:
        return _parse(rows, metadata, source)
    except ValueError as error:
        return RejectedPanel(rows.name, str(error))


def _parse(rows: PanelRows, metadata: Metadata, source: Source) -> ParsedPanel:
    table = pa.Table.from_batches(rows.batches)
    columns = {name: table.column(name).combine_chunks() for name in ("date", "symbol", "price", "file", "row")}
    files, numbers = columns["file"].to_numpy(), columns["row"].to_numpy()

    def locate(k: int) -> str:
        return source.at(int(files[k]), int(numbers[k]))

    if not rows.name:
        raise ValueError(f"{locate(0)}: expected the name of a panel; got none in {rows.total} rows")
    if rows.total > MAX_ROWS:
        raise ValueError(f"{locate(0)}: expected at most {MAX_ROWS:,} rows of a panel; got {rows.total:,}")
    symbols = _symbols(columns["symbol"], metadata, locate)
    known = np.flatnonzero(symbols >= 0)
    dates, prices = columns["date"], columns["price"]
    if len(known) < rows.total:
        dates, prices = dates.take(pa.array(known)), prices.take(pa.array(known))

    def locate_known(k: int) -> str:
        return locate(int(known[k]))

    day, price = _days(dates, metadata, locate_known), _prices(prices, locate_known)
    matrix, days = _matrix(day, symbols[known], price, metadata, locate_known)
    if len(days) < metadata.min_rows:
        raise ValueError(f"at least {metadata.min_rows} rows are needed; got {len(days)}")
    dates = days.astype("datetime64[D]")
    check_frequency("batch", dates, metadata.frequency)
    check_not_future("batch", dates, metadata.frequency)
    check_warmup(torch.from_numpy(matrix), metadata.symbols, metadata.warmup)
    return ParsedPanel(rows.name, matrix, days, rows.total - len(known))


def _symbols(column: Any, metadata: Metadata, locate: Locate) -> Array:
    """Index of each row's symbol in the artifact, -1 for other symbols; all symbols of the artifact must be present."""
    if column.null_count:
        raise ValueError(f"{locate(_first(column.is_null()))}: expected a symbol; got none")
    indices: Array = pc.fill_null(pc.index_in(column, pa.array(metadata.symbols, column.type)), -1).to_numpy()
    present = set(indices.tolist())
    if missing := [symbol for n, symbol in enumerate(metadata.symbols) if n not in present]:
        got = summarize_names(map(repr, pc.unique(column).to_pylist()))
        raise ValueError(f"{locate(0)}: expected rows of {summarize_names(missing)}; got {got}")
    return indices


def _days(column: Any, metadata: Metadata, locate: Locate) -> Array:
    if column.null_count:
        raise ValueError(f"{locate(_first(column.is_null()))}: expected a date; got none")
    if pa.types.is_date(column.type):
        days: Array = column.cast(pa.int32()).to_numpy().astype(np.int64)
    else:
        days = _parse_dates(column, locate)
    first, last = metadata.day_range
    if (outside := np.flatnonzero((days < first) | (days > last))).size:
        row, day = int(outside[0]), np.datetime64(int(days[outside[0]]), "D")
        raise ValueError(f"{locate(row)}: expected a date from {' to '.join(metadata.calendar)}; got {day}")
    return days


def _parse_dates(column: Any, locate: Locate) -> Array:
    """Each distinct text is parsed once."""
    encoded = column.dictionary_encode()
    codes, days = encoded.indices.to_numpy(), []
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            days.append(parse_day(text))
        except ValueError as error:
            row = int(np.flatnonzero(codes == code)[0])
            raise ValueError(f"{locate(row)}: expected {error}") from None
    numbers: Array = np.array(days, dtype=np.int64)[codes]
    return numbers


@lru_cache(maxsize=1 << 16)  # more than the days of the calendar
def parse_day(text: str) -> int:
    """Days from 1970-01-01 to an ISO date; a text that a table repeats is parsed once.

    >>> parse_day("1970-01-31")
    30
    """
    return parse_date(text)[0].toordinal() - EPOCH


def _prices(column: Any, locate: Locate) -> Array:
    if pa.types.is_floating(column.type):
        prices: Array = pc.fill_null(column, np.nan).to_numpy()
    else:
        prices = _parse_texts([text or "" for text in column.to_pylist()], locate)
    if (unusable := np.flatnonzero(overflows(prices))).size:
        raise ValueError(f"{locate(int(unusable[0]))}: expected {expected_range(float(prices[unusable[0]]))}")
    return prices


def _parse_texts(cells: list[str], locate: Locate) -> Array:
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        for k, cell in enumerate(cells):
            try:
                parse_price(cell)
            except ValueError as error:
                raise ValueError(f"{locate(k)}: expected {error}") from None
        raise


def _matrix(
    days: Array, symbols: Array, prices: Array, metadata: Metadata, locate: Locate
) -> tuple[Array, Array]:  # (T, N), (T,)
    dates, row = np.unique(days, return_inverse=True)
    cells = row * len(metadata.symbols) + symbols
    order = np.argsort(cells, kind="stable")
    repeated = order[1:][np.diff(cells[order]) == 0]
    if repeated.size:
        k = int(repeated.min())
        day, symbol = np.datetime64(int(days[k]), "D"), metadata.symbols[symbols[k]]
        raise ValueError(f"{locate(k)}: expected one price of {symbol} on {day}; got {prices[k]:g} as another one")
    matrix = np.full((len(dates), len(metadata.symbols)), np.nan)
    matrix[row, symbols] = prices
    return matrix, dates


def _first(mask: Any) -> int:
    return int(mask.to_numpy(zero_copy_only=False).argmax())

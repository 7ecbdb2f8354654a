"""The rows of one panel become a request, or the reason why they cannot."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from torchcommodity.batch._source import Source
from torchcommodity.data import parse_date, parse_price, parse_prices
from torchcommodity.export import Metadata
from torchcommodity.forecast import check_warmup

MOST = 2_000_000  # rows of one panel: the calendar has 33,237 days
Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """All rows of a panel, in the order of the table; more than `MOST` are only counted."""

    panel: str | None
    table: Any  # pyarrow.Table
    number: int


class Request(NamedTuple):
    """A panel as the artifact takes it: `prices` (T, N) float64, `days` (T,) int64 since 1970-01-01."""

    panel: str
    prices: Array
    days: Array
    left_out: int  # rows of other symbols


class Refused(NamedTuple):
    """A panel that gets no forecast, and why."""

    panel: str | None
    reason: str


def by_panel(batches: Iterable[Any]) -> Iterator[Rows]:
    """Rows sorted by panel, in batches of any size, to the rows of each panel."""
    held: list[Any] = []
    name, count = None, 0
    for batch in batches:
        runs = pc.run_end_encode(batch.column("panel"))
        start = 0
        for end, panel in zip(runs.run_ends.to_pylist(), runs.values.to_pylist()):
            if held and panel != name:
                yield Rows(name, pa.Table.from_batches(held), count)
                held, count = [], 0
            name = panel
            if count <= MOST:
                held.append(batch.slice(start, end - start))
            count += end - start
            start = end
    if held:
        yield Rows(name, pa.Table.from_batches(held), count)


def request(rows: Rows, about: Metadata, source: Source) -> Request | Refused:
    """What the artifact is asked for a panel.

    A row is a day on which a symbol of the artifact has a row, with a price or without. Other symbols are left out.
    """
    try:
        return _request(rows, about, source)
    except ValueError as error:
        return Refused(rows.panel, str(error))


def _request(rows: Rows, about: Metadata, source: Source) -> Request:
    columns = {name: rows.table.column(name).combine_chunks() for name in ("date", "symbol", "price", "file", "row")}
    places = columns["file"].to_numpy(), columns["row"].to_numpy()

    def at(k: int) -> str:
        return source.at(int(places[0][k]), int(places[1][k]))

    if not rows.panel:
        raise ValueError(f"{at(0)}: expected the name of a panel; got none in {rows.number} rows")
    if rows.number > MOST:
        raise ValueError(f"{at(0)}: expected at most {MOST:,} rows of a panel; got {rows.number:,}")
    symbols = _symbols(columns["symbol"], about, at)
    mine = np.flatnonzero(symbols >= 0)
    chosen = {name: columns[name] for name in ("date", "price")}
    if len(mine) < rows.number:
        chosen = {name: column.take(pa.array(mine)) for name, column in chosen.items()}

    def at_mine(k: int) -> str:
        return at(int(mine[k]))

    days, prices = _days(chosen["date"], about, at_mine), _prices(chosen["price"], at_mine)
    matrix, dates = _matrix(days, symbols[mine], prices, about, at_mine)
    if len(dates) < about.min_rows:
        raise ValueError(f"at least {about.min_rows} rows are needed; got {len(dates)}")
    check_warmup(torch.from_numpy(matrix), about.symbols, about.warmup)
    return Request(rows.panel, matrix, dates, rows.number - len(mine))


def _symbols(column: Any, about: Metadata, at: Callable[[int], str]) -> Array:
    """The place of each row's symbol in the artifact, -1 for others; all of the artifact's must be there."""
    if column.null_count:
        raise ValueError(f"{at(_first(column.is_null()))}: expected a symbol; got none")
    found: Array = pc.fill_null(pc.index_in(column, pa.array(about.symbols, column.type)), -1).to_numpy()
    there = set(found.tolist())
    if missing := [symbol for n, symbol in enumerate(about.symbols) if n not in there]:
        known = pc.unique(column).to_pylist()
        shown = ", ".join(map(repr, known[:5])) + (", ..." if len(known) > 5 else "")
        raise ValueError(f"{at(0)}: expected rows of {', '.join(missing)}; got {shown}")
    return found


def _days(column: Any, about: Metadata, at: Callable[[int], str]) -> Array:
    if column.null_count:
        raise ValueError(f"{at(_first(column.is_null()))}: expected a date; got none")
    if pa.types.is_date(column.type):
        days: Array = column.cast(pa.int32()).to_numpy().astype(np.int64)
    else:
        days = _days_of_text(column, at)
    first, last = about.day_range
    if (odd := np.flatnonzero((days < first) | (days > last))).size:
        got = np.datetime64(int(days[odd[0]]), "D")
        raise ValueError(f"{at(int(odd[0]))}: expected a date from {' to '.join(about.calendar)}; got {got}")
    return days


def _days_of_text(column: Any, at: Callable[[int], str]) -> Array:
    coded = column.dictionary_encode()
    days = []
    for code, text in enumerate(coded.dictionary.to_pylist()):
        try:
            days.append(parse_date(text)[0])
        except ValueError as error:
            row = int(np.flatnonzero(coded.indices.to_numpy() == code)[0])
            raise ValueError(f"{at(row)}: expected {error}") from None
    numbers: Array = np.array(days, dtype="datetime64[D]").astype(np.int64)[coded.indices.to_numpy()]
    return numbers


def _prices(column: Any, at: Callable[[int], str]) -> Array:
    if pa.types.is_floating(column.type):
        prices: Array = pc.fill_null(column, np.nan).to_numpy()
    else:
        prices = _prices_of_text([text or "" for text in column.to_pylist()], at)
    if (odd := np.flatnonzero(np.isinf(prices))).size:
        raise ValueError(f"{at(int(odd[0]))}: expected a finite price; got {prices[odd[0]]}")
    return prices


def _prices_of_text(cells: list[str], at: Callable[[int], str]) -> Array:
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        for k, cell in enumerate(cells):
            try:
                parse_price(cell)
            except ValueError as error:
                raise ValueError(f"{at(k)}: expected {error}") from None
        raise


def _matrix(
    days: Array, symbols: Array, prices: Array, about: Metadata, at: Callable[[int], str]
) -> tuple[Array, Array]:  # (T, N), (T,)
    dates, row = np.unique(days, return_inverse=True)
    cells = row * len(about.symbols) + symbols
    order = np.argsort(cells, kind="stable")
    again = order[1:][np.diff(cells[order]) == 0]
    if again.size:
        k = int(again.min())
        day, symbol = np.datetime64(int(days[k]), "D"), about.symbols[symbols[k]]
        raise ValueError(f"{at(k)}: expected one price of {symbol} on {day}; got {prices[k]:g} as another one")
    matrix = np.full((len(dates), len(about.symbols)), np.nan)
    matrix[row, symbols] = prices
    return matrix, dates


def _first(mask: Any) -> int:
    return int(mask.to_numpy(zero_copy_only=False).argmax())

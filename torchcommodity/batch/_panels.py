"""Rows of panels as prices and days: a block of panels in one pass over arrays; a fault rejects its panel alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from torch_opkit.arguments import operation
from torchcommodity.batch._sources import PanelTable
from torchcommodity.data import (
    check_frequency,
    check_not_future,
    expected_range,
    overflows,
    summarize_names,
)
from torchcommodity.export import Metadata
from torchcommodity.forecast import check_warmup

MAX_ROWS = 2_000_000  # per panel; the calendar has 33,237 days
NO_DAY = -(2**31)  # outside every calendar

Array = np.ndarray[Any, Any]


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


class Rows(NamedTuple):
    """R rows of a block of panels."""

    panel: Array  # number of the panel in the block
    file: Array
    line: Array
    symbol: Array  # index in the artifact; -1 = another symbol
    names: Any  # the symbols; an Arrow array, as are dates and prices
    date: Any
    price: Any

    def take(self, rows: Array) -> "Rows":
        """Some of the rows."""
        return Rows(*(x[rows] if isinstance(x, np.ndarray) else x.take(pa.array(rows)) for x in self))


def parse_block(
    block: Sequence[PanelRows], metadata: Metadata, source: PanelTable
) -> list[ParsedPanel | RejectedPanel]:
    """Prices and days of every panel, or the reason why it is rejected, in the order of the panels.

    The days of a panel are those on which a symbol of the artifact has a row in the table, with or without a price. Its
    references may have rows on them too. Rows of other symbols are ignored. Each rule is tested in all rows at once;
    the reason of a panel is that of the first rule that it breaks, in the first row that breaks it.
    """
    reasons: dict[int, str] = {}  # by number of the panel
    for k, panel in enumerate(block):
        where = source.at(*(int(panel.batches[0].column(name)[0].as_py()) for name in ("file", "row")))
        if not panel.name:
            reasons[k] = f"{where}: expected the name of a panel; got none in {panel.total} rows"
        elif panel.total > MAX_ROWS:
            reasons[k] = f"{where}: expected at most {MAX_ROWS:,} rows of a panel; got {panel.total:,}"
    named = [k for k in range(len(block)) if k not in reasons]
    parsed = _parse(named, block, metadata, source, reasons) if named else {}
    return [parsed[k] if k in parsed else RejectedPanel(panel.name, reasons[k]) for k, panel in enumerate(block)]


def _parse(
    panels: Sequence[int], block: Sequence[PanelRows], metadata: Metadata, source: PanelTable, reasons: dict[int, str]
) -> dict[int, ParsedPanel]:
    """The panels without a fault by their numbers; the reasons of the others are added."""
    table = pa.Table.from_batches([batch for k in panels for batch in block[k].batches])
    column = {name: table.column(name).combine_chunks() for name in ("file", "row", "symbol", "date", "price")}
    names = column["symbol"]
    symbol = pc.fill_null(pc.index_in(names, pa.array(metadata.columns, names.type)), -1).to_numpy()
    panel_of_row = np.repeat(np.array(panels), [block[k].total for k in panels])
    file, line = column["file"].to_numpy(), column["row"].to_numpy()
    rows = Rows(panel_of_row, file, line, symbol, names, column["date"], column["price"])

    def reject(bad: Array, describe: Callable[[int], str]) -> None:
        faults = np.flatnonzero(bad)
        for panel, first in zip(*np.unique(rows.panel[faults], return_index=True)):
            if int(panel) not in reasons:
                row = int(faults[first])
                where = source.at(int(rows.file[row]), int(rows.line[row]))
                reasons[int(panel)] = f"{where}: {describe(row)}"

    N, columns = len(metadata.symbols), metadata.columns
    present = np.zeros((len(block), len(columns) + 1), dtype=bool)
    present[rows.panel, rows.symbol] = True  # the last column: other symbols

    def absent_symbols(row: int) -> str:
        absent = [name for name, is_present in zip(metadata.symbols, present[rows.panel[row]]) if not is_present]
        own = pc.unique(rows.names.filter(pa.array(rows.panel == rows.panel[row]))).to_pylist()
        return f"expected rows of {summarize_names(absent)}; got {summarize_names(map(repr, own))}"

    reject(_is_null(rows.names), lambda row: "expected a symbol; got none")
    reject(np.asarray(~present[rows.panel, :N].all(axis=1)), absent_symbols)
    totals = np.bincount(rows.panel, minlength=len(block))
    rows = rows.take(np.flatnonzero(rows.symbol >= 0))
    ignored = totals - np.bincount(rows.panel, minlength=len(block))
    first, last = metadata.day_range
    reject(_is_null(rows.date), lambda row: "expected a date; got none")
    if pa.types.is_date(rows.date.type):
        days = pc.fill_null(rows.date.cast(pa.int32()), NO_DAY).to_numpy().astype(np.int64)
    else:
        encoded = rows.date.dictionary_encode()  # each distinct text is read once
        dates = source.form.parse_dates(encoded.dictionary.to_pylist() or [""])
        text = pc.fill_null(encoded.indices, 0).to_numpy()
        reject(dates.bad[text], lambda row: dates.problem(int(text[row])))
        days = dates.values[text].astype(np.int64)
    calendar = " to ".join(metadata.calendar)
    reject(
        (days < first) | (days > last),
        lambda row: f"expected a date from {calendar}; got {np.datetime64(int(days[row]), 'D')}",
    )
    if pa.types.is_floating(rows.price.type):
        prices = pc.fill_null(rows.price, np.nan).to_numpy()
    else:
        amounts = source.form.parse_prices([text or "" for text in rows.price.to_pylist()])
        reject(amounts.bad, amounts.problem)
        prices = amounts.values
    reject(overflows(prices), lambda row: f"expected {expected_range(float(prices[row]))}")

    good = np.flatnonzero(~np.isin(rows.panel, list(reasons)))
    rows, days, prices = rows.take(good), days[good], prices[good]
    span, C = last - first + 1, len(columns)
    keys, day_row = np.unique(rows.panel * span + days - first, return_inverse=True)
    cells = day_row * C + rows.symbol
    repeated = np.ones(len(cells), dtype=bool)
    repeated[np.unique(cells, return_index=True)[1]] = False

    def second_price(row: int) -> str:
        symbol, day = columns[rows.symbol[row]], np.datetime64(int(days[row]), "D")
        return f"expected one price of {symbol} on {day}; got {prices[row]:g} as another one"

    reject(repeated, second_price)
    matrix = np.full((len(keys), C), np.nan)
    matrix[day_row, rows.symbol] = prices
    if C > N:  # a day on which only references and curves have a row is none of the panel
        own_day = np.bincount(day_row, rows.symbol < N, len(keys)) > 0
        keys, matrix = keys[own_day], matrix[own_day]
    starts = np.searchsorted(keys, np.arange(len(block) + 1) * span)
    result = {}
    for k, (start, end) in enumerate(pairwise(starts)):
        if k in reasons:
            continue
        panel = ParsedPanel(str(block[k].name), matrix[start:end], keys[start:end] % span + first, int(ignored[k]))
        try:
            if len(panel.days) < metadata.min_rows:
                raise ValueError(f"at least {metadata.min_rows} rows are needed; got {len(panel.days)}")
            own = panel.days.astype("datetime64[D]")
            with operation("batch"):
                check_frequency(own, metadata.frequency)
                check_not_future(own, metadata.frequency)
            own_prices = torch.from_numpy(panel.prices[:, :N])
            check_warmup(own_prices, metadata.symbols, metadata.warmup, metadata.price_scale)
            result[k] = panel
        except ValueError as error:
            reasons[k] = str(error)
    return result


def _is_null(column: Any) -> Array:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))

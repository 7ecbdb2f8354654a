"""Parse the rows of many panels in one pass over arrays; a panel with a fault is parsed alone, for the reason."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from torchcommodity.batch._panels import (
    MAX_ROWS,
    Array,
    PanelRows,
    ParsedPanel,
    RejectedPanel,
    parse_day,
    parse_panel,
)
from torchcommodity.batch._sources import Source
from torchcommodity.data import infer_frequency, latest_date, overflows, parse_price, parse_prices
from torchcommodity.export import Metadata

NO_DAY = -(2**31)  # outside every calendar
NO_PRICE = np.inf  # a price that is rejected; a missing one is NaN


def parse_block(block: Sequence[PanelRows], metadata: Metadata, source: Source) -> list[ParsedPanel | RejectedPanel]:
    """`parse_panel` of every panel, in their order."""
    regular = [rows for rows in block if rows.name and rows.total <= MAX_ROWS]
    parsed = {rows.name: panel for rows, panel in zip(regular, _parse(regular, metadata))} if regular else {}
    return [parsed.get(rows.name) or parse_panel(rows, metadata, source) for rows in block]


class Rows(NamedTuple):
    """Rows of symbols of the artifact, of panels without a fault so far."""

    panel: Array  # index in the block
    symbol: Array  # index in the artifact
    day: Array
    price: Array


def _parse(block: Sequence[PanelRows], metadata: Metadata) -> Iterator[ParsedPanel | None]:
    """Each panel, or None if anything is wrong with it; the checks are those of `parse_panel`."""
    totals = np.array([rows.total for rows in block])
    rows, valid = _read_rows(block, totals, metadata)
    ignored = totals - np.bincount(rows.panel, minlength=len(block))
    prices, days, starts = _matrix(rows, valid, metadata)
    for k, (start, end) in enumerate(pairwise(starts)):
        panel = ParsedPanel(str(block[k].name), prices[start:end], days[start:end], int(ignored[k]))
        yield panel if valid[k] and _is_usable(panel, metadata) else None


def _read_rows(block: Sequence[PanelRows], totals: Array, metadata: Metadata) -> tuple[Rows, Array]:
    """The rows, and whether each panel has every symbol and only dates and prices that can be used."""
    table = pa.Table.from_batches([batch for rows in block for batch in rows.batches])
    date, symbols, prices = (table.column(name).combine_chunks() for name in ("date", "symbol", "price"))
    panel, symbol = np.repeat(np.arange(len(block)), totals), _symbols(symbols, metadata)
    valid = _has_all_symbols(panel, symbol, len(block), len(metadata.symbols))
    valid[panel[symbols.is_null().to_numpy(zero_copy_only=False)]] = False
    known = symbol >= 0
    rows = Rows(*(x[known] for x in (panel, symbol, _days(date), _prices(prices))))
    first, last = metadata.day_range
    valid[rows.panel[(rows.day < first) | (rows.day > last) | overflows(rows.price)]] = False
    return rows, valid


def _matrix(rows: Rows, valid: Array, metadata: Metadata) -> tuple[Array, Array, Array]:
    """Prices (R, N) and days (R,) of the valid panels, one below the other, and where each of the panels starts.

    A panel with two prices of one day and symbol becomes invalid.
    """
    panel, symbol, day, price = (x[valid[rows.panel]] for x in rows)
    first, last = metadata.day_range
    calendar = last - first + 1
    keys, row = np.unique(panel * calendar + day - first, return_inverse=True)
    matrix = np.full((len(keys), len(metadata.symbols)), np.nan)
    matrix[row, symbol] = price
    count = np.bincount(row * len(metadata.symbols) + symbol, minlength=matrix.size)
    valid[keys[np.flatnonzero(count > 1) // len(metadata.symbols)] // calendar] = False
    starts = np.searchsorted(keys, np.arange(len(valid) + 1) * calendar)
    return matrix, keys % calendar + first, starts


def _is_usable(panel: ParsedPanel, metadata: Metadata) -> bool:
    positive = panel.prices > 0
    lowest = np.where(positive, panel.prices, np.inf).min(axis=0, initial=np.inf)
    varies = lowest < np.where(positive, panel.prices, -np.inf).max(axis=0, initial=-np.inf)
    enough = (positive.sum(axis=0) > metadata.warmup) & varies
    days = panel.days.astype("datetime64[D]")
    if len(days) < metadata.min_rows or not enough.all():
        return False
    return infer_frequency(days) == metadata.frequency and bool(days[-1] <= latest_date(metadata.frequency))


def _symbols(column: Any, metadata: Metadata) -> Array:
    """Index of each row's symbol in the artifact, -1 for other symbols and for none."""
    indices: Array = pc.fill_null(pc.index_in(column, pa.array(metadata.symbols, column.type)), -1).to_numpy()
    return indices


def _has_all_symbols(panel: Array, symbol: Array, panels: int, symbols: int) -> Array:
    present = np.zeros((panels, symbols + 1), dtype=bool)
    present[panel, symbol] = True  # column -1: other symbols
    return np.asarray(present[:, :symbols].all(axis=1))


def _days(column: Any) -> Array:
    """Days since 1970-01-01; each distinct text is parsed once, and what is no date is `NO_DAY`."""
    if pa.types.is_date(column.type):
        days: Array = pc.fill_null(column.cast(pa.int32()), NO_DAY).to_numpy().astype(np.int64)
        return days
    encoded = column.dictionary_encode()
    days = np.array([*map(_day, encoded.dictionary.to_pylist()), NO_DAY])
    return np.asarray(days[pc.fill_null(encoded.indices, -1).to_numpy()])


def _day(text: str) -> int:
    try:
        return parse_day(text)
    except ValueError:
        return NO_DAY


def _prices(column: Any) -> Array:
    """Prices, NaN = missing; what is no price is `NO_PRICE`."""
    if pa.types.is_floating(column.type):
        prices: Array = pc.fill_null(column, np.nan).to_numpy()
        return prices
    cells = [text or "" for text in column.to_pylist()]
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        return np.array(list(map(_price, cells)))


def _price(text: str) -> float:
    try:
        return parse_price(text)
    except ValueError:
        return NO_PRICE

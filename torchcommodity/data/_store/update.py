"""`update`: fetch what is new or revised in the series of a stored panel, and append it as a vintage."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity.data._core.errors import DataError, condense, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.locations import Http
from torchcommodity.data._sources.publishers import eia, fred, is_eia, is_fred
from torchcommodity.data._store.rows import Vintage
from torchcommodity.data._store.store import Store


class Part(NamedTuple):
    """A series of a panel as fetched from `start` on (None = its whole history), a panel of one column."""

    symbol: str
    start: np.datetime64 | None
    panel: Panel


def merge_series(panel: Panel, parts: Sequence[Part]) -> Panel:
    """Replace the prices of each part's symbol from its start on; rows that lose their last price are dropped.

    Raises:
        DataError: a symbol that the panel does not have, or a part in another unit.
    """
    dates = np.unique(np.concatenate([panel.dates, *(part.panel.dates for part in parts)]))
    rows = np.searchsorted(dates, panel.dates)
    prices = _spread(panel.values.plain().numpy(), rows, len(dates))
    units, provenance = list(panel.units), list(panel.provenance)
    for part in parts:
        column = panel.symbols.index(panel.select([part.symbol]).symbols[0])
        if part.start is not None and part.panel.units[0] != units[column]:
            units_in_words = f"{units[column]!r}, as stored; got {part.panel.units[0]!r}"
            raise DataError(
                f"update: {part.symbol!r}: expected prices in {units_in_words}; --full reads them all again"
            )
        first = part.panel.dates[0] if part.start is None else min(part.start, part.panel.dates[0])
        prices[(dates >= first) | (part.start is None), column] = np.nan
        prices[np.searchsorted(dates, part.panel.dates), column] = part.panel.values.plain().numpy()[:, 0]
        units[column], provenance[column] = part.panel.units[0], part.panel.provenance[0]
    was_empty = np.isin(dates, panel.dates[np.isnan(panel.values.plain().numpy()).all(axis=1)])
    valid_rows = ~np.isnan(prices).all(axis=1) | was_empty
    curve = None
    if panel.curve is not None:
        values = _spread(panel.curve.plain().numpy(), rows, len(dates))[valid_rows]
        curve = MetadataTensor(torch.from_numpy(values))
    bars = None
    if panel.bars is not None:  # the publishers have closes only: a price that they give has no bar
        values = _spread(panel.bars.plain().numpy(), rows, len(dates))
        before = _spread(panel.values.plain().numpy(), rows, len(dates))
        bars = MetadataTensor(torch.from_numpy(np.where((before == prices)[..., None], values, np.nan)[valid_rows]))
    merged = Panel(
        MetadataTensor(torch.from_numpy(prices[valid_rows])),
        dates[valid_rows],
        panel.symbols,
        tuple(units),
        tuple(provenance),
        panel.contracts,
        curve,
        deliveries=None if panel.deliveries is None else _spread(panel.deliveries, rows, len(dates))[valid_rows],
        bars=bars,
        averages=panel.averages,
        calendars=panel.calendars,
    )
    # the findings of the merged prices, and those of reading: of the stored panel, and of rows after its last one
    current = inspect(merged)
    inspected = {finding.kind for finding in (*inspect(panel), *current)} | {"cached copy"}
    updated, last = {part.symbol: part for part in parts}, str(panel.dates[-1])
    reading = [f for f in panel.findings if f.symbol not in updated or updated[f.symbol].start is not None]
    for part in parts:
        new = (replace(f, symbol=part.symbol) for f in part.panel.findings if f.symbol)
        reading += [f for f in new if part.start is None or f.date > last]
    of_reading = [finding for finding in reading if finding.kind not in inspected]
    return replace(merged, findings=condense([*of_reading, *current]))


def _spread(values: Array, rows: Array, count: int) -> Array:
    """The values on their rows of `count`; missing on the others."""
    missing = "NaT" if values.dtype.kind == "M" else np.nan
    result = np.full((count, *values.shape[1:]), missing, dtype=values.dtype)
    result[rows] = values
    return result


OVERLAP = np.timedelta64(365, "D")  # read again before the last price, for revisions


class SeriesUpdate(NamedTuple):
    """What an update found in one series.

    Args:
        symbol: its symbol.
        new: number of prices on dates that had none.
        revised: number of prices that changed.
        withdrawn: number of prices that the publisher has no more.
        last: date of the last price, ISO.
    """

    symbol: str
    new: int
    revised: int
    withdrawn: int
    last: str


class Update(NamedTuple):
    """The result of `update`.

    Args:
        vintage: the new vintage, or the last one, with the counts 0, if nothing changed.
        series: what was found in each series.
        others: symbols that are from other sources; their prices are unchanged.
    """

    vintage: Vintage
    series: tuple[SeriesUpdate, ...]
    others: tuple[str, ...]


def update(
    name: str,
    store: Store | None = None,
    *,
    full: bool = False,
    http: Http | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Update:
    """Fetch what is new or revised in the series of FRED and the EIA in a stored panel, and append it as a vintage.

    Each series is fetched from a year before its last price on. The provenance of an updated column is that of its last
    fetch; earlier vintages keep theirs. If nothing changed, no vintage is added.

    Args:
        name: name of the panel.
        store: default: `Store()`.
        full: fetch the whole history, for revisions that are older than a year.
        http: timeouts and retries; the cache is not used.
        progress: called with the number of series fetched, their total, and the symbol of the next one.

    Raises:
        DataError: an unknown name, a panel without such series, a publisher that does not respond or responds with
            something else than the series, a unit that changed (without `full`). The store is unchanged.
    """
    store = store or Store()
    panel = store.load(name)
    symbols = updatable_symbols(panel)
    if not symbols:
        publishers = summarize_names(dict.fromkeys(record.publisher for record in panel.provenance))
        raise DataError(
            f"update: expected a panel with series of FRED or the EIA; got {name!r}, published by {publishers}; "
            f"read its source again (torchcommodity data add SOURCE --name {name})"
        )
    parts = []
    with TemporaryDirectory() as folder:  # a cached response is not what the publisher has now
        settings = replace(http or Http(), cache=Path(folder), max_age=0.0)
        for done, symbol in enumerate(symbols):
            if progress:
                progress(done, len(symbols), symbol)
            series = panel[symbol]
            record, dates = series.provenance[0], series.dates[~np.isnan(series.values.plain().numpy()[:, 0])]
            start = dates[-1] - OVERLAP if len(dates) and not full else None
            publisher = _publisher(record)
            assert publisher is not None
            parts.append(Part(series.symbols[0], start, publisher([record.series], start=start, http=settings)))
    updates: list[SeriesUpdate] = []

    def merge(stored: Panel | None) -> Panel:
        if stored is None:
            raise DataError(
                f"{store.path}: expected the panel {name!r}, which was removed while its series were fetched"
            )
        merged = merge_series(stored, parts)
        updates.extend(_compare(stored[part.symbol], merged[part.symbol]) for part in parts)
        is_same = not any(entry.new or entry.revised or entry.withdrawn for entry in updates)
        return stored if is_same and stored.units == merged.units else merged

    vintage = store.amend(name, merge)
    return Update(vintage, tuple(updates), tuple(symbol for symbol in panel.symbols if symbol not in symbols))


def updatable_symbols(panel: Panel) -> tuple[str, ...]:
    """The symbols that `update` can fetch again: those that were downloaded from FRED or the EIA.

    >>> from torchcommodity.data import embedded
    >>> updatable_symbols(embedded())
    ()
    """
    return tuple(symbol for symbol, record in zip(panel.symbols, panel.provenance) if _publisher(record))


def _publisher(record: Provenance) -> Callable[..., Panel] | None:
    return fred if is_fred(record) else eia if is_eia(record) else None


def _compare(old: Panel, new: Panel) -> SeriesUpdate:
    dates = np.union1d(old.dates, new.dates)
    before, after = (np.full(len(dates), np.nan) for _ in range(2))
    for prices, panel in ((before, old), (after, new)):
        prices[np.searchsorted(dates, panel.dates)] = panel.values.plain().numpy()[:, 0]
    had, has = ~np.isnan(before), ~np.isnan(after)
    added, revised, withdrawn = (int(mask.sum()) for mask in (~had & has, had & has & (before != after), had & ~has))
    return SeriesUpdate(new.symbols[0], added, revised, withdrawn, str(dates[has][-1]))

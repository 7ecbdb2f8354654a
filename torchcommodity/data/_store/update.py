"""`update`: fetch what is new or revised in the series of a stored panel, and append it as a vintage."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.publishers.eia import eia, is_eia
from torchcommodity.data._sources.publishers.fred import fred, is_fred
from torchcommodity.data._sources.publishers.http import Http
from torchcommodity.data._store.merge_series import Part, merge_series
from torchcommodity.data._store.state import Vintage
from torchcommodity.data._store.store import Store

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
    vintage, updates = _append(store, name, parts)
    return Update(vintage, updates, tuple(symbol for symbol in panel.symbols if symbol not in symbols))


def updatable_symbols(panel: Panel) -> tuple[str, ...]:
    """The symbols that `update` can fetch again: those that were downloaded from FRED or the EIA.

    >>> from torchcommodity.data import embedded
    >>> updatable_symbols(embedded())
    ()
    """
    return tuple(symbol for symbol, record in zip(panel.symbols, panel.provenance) if _publisher(record))


def _publisher(record: Provenance) -> Callable[..., Panel] | None:
    return fred if is_fred(record) else eia if is_eia(record) else None


def _append(store: Store, name: str, parts: Sequence[Part]) -> tuple[Vintage, tuple[SeriesUpdate, ...]]:
    series: list[SeriesUpdate] = []

    def merge(stored: Panel | None) -> Panel:
        if stored is None:
            raise DataError(
                f"{store.path}: expected the panel {name!r}, which was removed while its series were fetched"
            )
        merged = merge_series(stored, parts)
        series.extend(_compare(stored[part.symbol], merged[part.symbol]) for part in parts)
        same = stored.units == merged.units and not any(
            entry.new or entry.revised or entry.withdrawn for entry in series
        )
        return stored if same else merged

    return store.amend(name, merge), tuple(series)


def _compare(old: Panel, new: Panel) -> SeriesUpdate:
    dates = np.union1d(old.dates, new.dates)
    before, after = (np.full(len(dates), np.nan) for _ in range(2))
    for prices, panel in ((before, old), (after, new)):
        prices[np.searchsorted(dates, panel.dates)] = panel.values.plain().numpy()[:, 0]
    had, has = ~np.isnan(before), ~np.isnan(after)
    added, revised, withdrawn = (int(mask.sum()) for mask in (~had & has, had & has & (before != after), had & ~has))
    return SeriesUpdate(new.symbols[0], added, revised, withdrawn, str(dates[has][-1]))

"""How often the bands held: the share of outcomes inside them, and what chance alone can do to it."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from torchcommodity.data import Panel
from torchcommodity.export import Metadata
from torchcommodity.forecast import BANDS, level_index
from torchcommodity.serve.dashboard._past_forecasts import Hindsight

Places = Sequence[tuple[int, int]]  # (row of the origin, symbol)


def coverage(found: Hindsight, panel: Panel, about: Metadata) -> list[dict[str, Any]]:
    """One record a symbol (None = all together), horizon, and whether training had seen the outcome.

    `seen`: the outcome's day is no later than `trained_through`. `apart` counts forecasts that do not overlap, of
    all symbols together no more than of one, for they move together. `chance` is where the share of a perfect forecast
    would lie in 95 of 100 cases, with that many independent ones.
    """
    seen_rows = int((panel.dates <= np.datetime64(about.trained_through, "D")).sum())
    records = []
    for h, rows in enumerate(about.horizons):
        every = [(int(t), n) for n in range(len(about.symbols)) for t in found.known(h, rows, n)]
        for seen in (True, False):
            part = [(t, n) for t, n in every if (t + rows < seen_rows) == seen]
            groups = [(None, part), *((s, [p for p in part if p[1] == n]) for n, s in enumerate(about.symbols))]
            records += [
                {"symbol": symbol, "horizon": rows, "seen": seen, **_count(found, h, rows, chosen, panel, about)}
                for symbol, chosen in groups
                if chosen
            ]
    return records


def not_overlapping(origins: Iterable[int], rows: int) -> int:
    """The most forecasts of so many rows that do not overlap.

    >>> not_overlapping([0, 1, 2, 5, 6, 10], 5)
    3
    """
    count, free = 0, -1
    for origin in sorted(origins):
        if origin >= free:
            count, free = count + 1, origin + rows
    return count


def _count(found: Hindsight, h: int, rows: int, chosen: Places, panel: Panel, about: Metadata) -> dict[str, Any]:
    origins, symbols = (np.array(column) for column in zip(*chosen))
    met = found.met[origins - found.first, h, symbols]
    quantiles = found.quantiles[origins - found.first, h, symbols]
    apart, place = not_overlapping(set(origins.tolist()), rows), level_index(about.levels)
    return {
        "first": str(panel.dates[origins.min() + rows]),
        "last": str(panel.dates[origins.max() + rows]),
        "forecasts": len(chosen),
        "apart": apart,
        "bands": [
            {
                "stated": round(high - low, 3),
                "held": ((met >= quantiles[:, place[low]]) & (met <= quantiles[:, place[high]])).double().mean().item(),
                "chance": [float(x) / apart for x in stats.binom.ppf((0.025, 0.975), apart, high - low)],
            }
            for low, high in BANDS
            if low in place and high in place
        ],
    }

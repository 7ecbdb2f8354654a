"""Empirical coverage of the forecast intervals, with the interval that sampling error alone explains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from torchcommodity.data import Panel
from torchcommodity.export import Metadata
from torchcommodity.forecast import count_independent, intervals, level_index
from torchcommodity.serve.dashboard._past_forecasts import PastForecasts

Origins = Sequence[tuple[int, int]]  # (row of the origin, symbol)


def coverage(past: PastForecasts, panel: Panel, metadata: Metadata) -> list[dict[str, Any]]:
    """Coverage records by symbol (None = all symbols), horizon, and in-sample or out-of-sample outcomes.

    An outcome is `in_sample` if its date is not after `trained_through`. `independent` counts forecasts that do not
    overlap; those of several symbols on the same rows count once, because prices move together. `expected_range` is
    the central 95 % range of the coverage of a perfectly calibrated forecast with that many independent outcomes.
    """
    training_rows = int((panel.dates <= np.datetime64(metadata.trained_through, "D")).sum())
    records = []
    for h, horizon in enumerate(metadata.horizons):
        origins = [(int(t), n) for n in range(len(metadata.symbols)) for t in past.known_origins(h, n)]
        for in_sample in (True, False):
            selected = [(t, n) for t, n in origins if (_end(past, h, t, n) < training_rows) == in_sample]
            groups = [
                (None, selected),
                *(
                    (symbol, [origin for origin in selected if origin[1] == n])
                    for n, symbol in enumerate(metadata.symbols)
                ),
            ]
            for symbol, group in groups:
                if group:
                    identity = {"symbol": symbol, "horizon": horizon, "in_sample": in_sample}
                    records.append({**identity, **_record(past, h, group, panel, metadata)})
    return records


def _end(past: PastForecasts, h: int, row: int, n: int) -> int:
    return int(past.target_rows[row - past.first_origin, h, n])


def _record(past: PastForecasts, h: int, group: Origins, panel: Panel, metadata: Metadata) -> dict[str, Any]:
    rows, symbols = (np.array(column) for column in zip(*group))
    index, ends = level_index(metadata.levels), [_end(past, h, *origin) for origin in group]
    outcomes = past.outcomes[rows - past.first_origin, h, symbols]
    quantiles = past.quantiles[rows - past.first_origin, h, symbols]
    independent = count_independent(set(zip(rows.tolist(), ends)))
    bands = []
    for low, high in intervals(metadata.levels):
        inside = (outcomes >= quantiles[:, index[low]]) & (outcomes <= quantiles[:, index[high]])
        counts = stats.binom.ppf((0.025, 0.975), independent, high - low)
        bands.append(
            {
                "nominal": round(high - low, 3),
                "coverage": inside.double().mean().item(),
                "expected_range": [float(count) / independent for count in counts],
            }
        )
    return {
        "first": str(panel.dates[min(ends)]),
        "last": str(panel.dates[max(ends)]),
        "forecasts": len(group),
        "independent": independent,
        "bands": bands,
    }

"""Commodities of the dashboard's document: outlook, forecasts, fan, recent prices and past forecasts of each."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np
import torch

from torchcommodity.charts import format_age
from torchcommodity.data import Panel
from torchcommodity.export import Metadata
from torchcommodity.forecast import (
    Coverage,
    Forecast,
    Location,
    OutlookRow,
    intervals,
    level_index,
    main_interval,
    make_fan,
    outlook,
    symbol_roll_days,
)
from torchcommodity.models import price_after
from torchcommodity.serve.dashboard._past_forecasts import PastForecasts

Record = dict[str, Any]
HISTORY_ROWS = 260  # recent prices of a commodity: about one year of trading days; the page shows fewer of months


def symbol_records(
    past: PastForecasts,
    panel: Panel,
    metadata: Metadata,
    coverage: list[Record],
    today: date,
    location: Location | None,
) -> list[Record]:
    """One record per commodity of the artifact, in its order.

    Args:
        past: forecasts of the artifact, of which the last two make the outlook and its changes.
        panel: prices, aligned with the artifact.
        metadata: of the artifact.
        coverage: records of `coverage`.
        today: date from which the age of the prices is counted.
        location: what moves the medians; None = the artifact does not record it.
    """
    forecast = _forecast(past, panel, metadata, -1)
    previous = _forecast(past, panel, metadata, -2) if len(past.quantiles) > 1 else None
    in_sample, shares = _coverage_of_ranges(coverage, metadata)
    rows = outlook(forecast, previous, coverage=shares, today=today).rows
    return [_record(row, forecast, past, metadata, panel, in_sample, location, n) for n, row in enumerate(rows)]


def _forecast(past: PastForecasts, panel: Panel, metadata: Metadata, origin: int) -> Forecast:
    """The artifact's forecast from the last (-1) or the last but one row of the panel."""
    prices = panel.between(None, panel.dates[origin])
    return Forecast.from_log_returns(
        prices, metadata.horizons, metadata.levels, past.quantiles[origin], panel.dates, metadata.price_scale
    )


def _coverage_of_ranges(
    coverage: list[Record], metadata: Metadata
) -> tuple[dict[tuple[str, int], bool], dict[tuple[str, int], Coverage]]:
    """Coverage of the main range by symbol and horizon, out of sample where any outcome is, and whether it is not."""
    in_sample, shares = {}, {}
    low, high = main_interval(metadata.levels) or (0.0, 0.0)
    for record in sorted(coverage, key=lambda record: not record["in_sample"]):
        for band in record["bands"]:
            if band["nominal"] == round(high - low, 3) and record["symbol"] is not None:
                key = record["symbol"], record["horizon"]
                shares[key] = Coverage(band["coverage"], record["forecasts"], record["independent"])
                in_sample[key] = record["in_sample"]
    return in_sample, shares


def _record(
    row: OutlookRow,
    forecast: Forecast,
    past: PastForecasts,
    metadata: Metadata,
    panel: Panel,
    in_sample: dict[tuple[str, int], bool],
    location: Location | None,
    n: int,
) -> Record:
    prices, horizons = panel.values.plain()[:, n], range(len(metadata.horizons))
    recent = np.flatnonzero(np.isfinite(prices.numpy()))[-HISTORY_ROWS:]  # without the rows that have no price
    record = {
        **asdict(row),
        "age": format_age(row.age_days),
        "recent": {"dates": list(map(str, panel.dates[recent])), "prices": prices[recent].tolist()},
    }
    count = int(((prices > 0) | (prices.isfinite() & (row.symbol in metadata.signed))).sum())
    if not count:
        record |= {"last_price": None, "last_date": None, "age": None}
    if count <= metadata.warmup:
        message = f"no forecast yet: needs more than {metadata.warmup} positive prices; has {count}"
        return {**record, "ranges": [], "rolls": [], "forecasts": [], "past": [], "missing": message}
    origin = int(np.searchsorted(panel.dates, forecast.origins[n]))
    rolls = symbol_roll_days(panel, n, forecast.target_dates[-1, n])
    fan = make_fan(forecast, n, range(forecast.horizons[-1] + 1))  # every row from the last price to the last horizon
    return {
        **record,
        "ranges": [
            {
                **asdict(one),
                "in_sample": in_sample.get((row.symbol, one.rows)),
                "location": None if location is None else location.sentence(row.symbol, one.rows),
            }
            for one in row.ranges
        ],
        "rows_behind": len(panel) - 1 - origin,
        "rolls": list(map(str, rolls[rolls >= np.datetime64(record["recent"]["dates"][0])])),
        "forecasts": [
            {
                "rows": forecast.horizons[h],
                "date": str(forecast.target_dates[h, n]),
                "quantiles": dict(zip(map(str, forecast.levels), forecast.prices[h, n].tolist())),
            }
            for h in horizons
        ],
        "fan": {
            "dates": list(map(str, fan.dates)),
            "quantiles": {str(level): fan.prices[:, q].tolist() for level, q in _drawn_levels(forecast.levels)},
        },
        "past": [_past(past, panel, metadata, h, n) for h in horizons],
    }


def _past(past: PastForecasts, panel: Panel, metadata: Metadata, h: int, n: int) -> Record:
    """Past forecasts of one symbol and horizon with a known outcome, oldest first; rows index `days`."""
    horizon, origins = metadata.horizons[h], past.known_origins(h, n)
    start, rows = panel.values.plain()[origins, n], torch.from_numpy(origins - past.first_origin)
    scale = None if metadata.price_scale is None else metadata.price_scale[n]
    prices = price_after(start[:, None], past.quantiles[rows, h, n], scale)
    return {
        "rows": horizon,
        "origin": rows.tolist(),
        "target": (past.target_rows[rows, h, n] - past.first_origin).tolist(),
        "outcomes": price_after(start, past.outcomes[rows, h, n], scale).tolist(),
        "quantiles": {str(level): prices[:, q].tolist() for level, q in _drawn_levels(metadata.levels)},
    }


def _drawn_levels(levels: Sequence[float]) -> list[tuple[float, int]]:
    """Levels of the intervals and of the median, ascending, with their index."""
    index, drawn = level_index(levels), {0.5, *(level for interval in intervals(levels) for level in interval)}
    return [(levels[index[level]], index[level]) for level in sorted(drawn) if level in index]

"""Everything that the page shows, as one JSON document."""

import math
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np

from torchcommodity.data import Panel, check_not_synthetic, utc_now
from torchcommodity.export import Artifact, Metadata
from torchcommodity.forecast import (
    BANDS,
    Calendar,
    Correlation,
    align_panel,
    calendar,
    correlation,
    level_index,
    pairs_by_strength,
)
from torchcommodity.serve.dashboard._coverage import coverage
from torchcommodity.serve.dashboard._model_card import EMPTY, EXAMPLES, STALE, age, model_card
from torchcommodity.serve.dashboard._past_forecasts import Hindsight, hindsight

Document = dict[str, Any]
FORMAT = "torchcommodity.dashboard.1"
HISTORY = 260  # rows before the origin: about a year of days
REGIMES = 1260  # rows of correlation: about five years
POINTS = 700  # of its line; a screen shows no more
PAST = (*(low for low, _ in BANDS), 0.5, *(high for _, high in BANDS))  # levels that are kept of past forecasts


def empty(about: Metadata) -> Document:
    """The document of a server without prices: the model card, and how to give prices."""
    words = {"words": EMPTY, "examples": EXAMPLES}
    return {"format": FORMAT, "state": "empty", "made": utc_now(), "model": model_card(about), "how": words}


def document(artifact: Artifact, prices: Panel, source: str, today: date | None = None) -> Document:
    """Forecasts, what became of earlier ones, coverage, correlation, provenance and model card; NaN is None.

    Args:
        artifact: whose symbols the panel holds.
        prices: as read, with their findings.
        source: what the prices were asked from, in one word.
        today: against which ages are counted; default: the day in UTC.

    Raises:
        ValueError: the panel is synthetic, lacks a symbol, or has too few rows; in words.
    """
    check_not_synthetic("dashboard", prices)
    about = artifact.metadata
    panel = align_panel(prices, about.symbols, about.contracts)
    found, ahead = hindsight(artifact, panel), calendar(panel.dates)
    made = utc_now()
    whole = {
        "format": FORMAT,
        "state": "ready",
        "made": made,
        "model": model_card(about),
        "prices": _prices(panel, source, today or date.fromisoformat(made[:10])),
        "calendar": ahead.rule,
        "horizons": [{"rows": h, "code": ahead.code(h), "name": ahead.name(h)} for h in about.horizons],
        "days": list(map(str, panel.dates[found.first :])),  # of the rows that `past` counts
        "symbols": [_symbol(found, panel, about, ahead, n) for n in range(len(about.symbols))],
        "coverage": coverage(found, panel, about),
        "correlation": _correlation(correlation(panel), panel),
        "findings": [asdict(finding) for finding in prices.findings if finding.symbol in ("", *about.symbols)],
    }
    plain: Document = _plain(whole)
    return plain


def _prices(panel: Panel, source: str, today: date) -> Document:
    lasts = [_last_row(panel, n) for n in range(len(panel.symbols))]
    columns = [
        {**record, **({} if row is None else _dated(panel.dates[row], today))}
        for record, row in zip(panel.sources(), lasts)
    ]
    newest = _dated(panel.dates[max((row for row in lasts if row is not None), default=len(panel) - 1)], today)
    span = {"first": str(panel.dates[0]), "rows": len(panel), "source": source, "stale_after": STALE}
    return {**span, **newest, "columns": columns}


def _dated(day: np.datetime64, today: date) -> Document:
    days = int((np.datetime64(today, "D") - day).astype(int))
    return {"last": str(day), "age_days": days, "age": age(days), "stale": days > STALE}


def _last_row(panel: Panel, n: int) -> int | None:
    rows = np.flatnonzero(panel.values.plain()[:, n].numpy() > 0)
    return int(rows[-1]) if rows.size else None


def _symbol(found: Hindsight, panel: Panel, about: Metadata, ahead: Calendar, n: int) -> Document:
    row, prices = _last_row(panel, n), panel.values.plain()[:, n]
    named = {"symbol": panel.symbols[n], "unit": panel.units[n] or about.units[n], "contract": about.contracts[n]}
    recent = {"dates": list(map(str, panel.dates[-HISTORY:])), "prices": prices[-HISTORY:].tolist()}
    count = int((prices > 0).sum())
    if row is None or count <= about.warmup:
        none = f"no forecast yet: it has {count} positive prices and needs more than {about.warmup}"
        return {**named, "recent": recent, "forecasts": [], "past": [], "missing": none}
    origin, last = str(panel.dates[row]), prices[row].item()
    quantiles = (last * found.quantiles[-1, :, n].exp()).tolist()
    return {
        **named,
        "origin": origin,
        "last": last,
        "rows_behind": len(panel) - 1 - row,
        "recent": recent,
        "forecasts": [
            {"rows": h, "date": ahead.ahead(origin, h), "quantiles": dict(zip(map(str, about.levels), quantiles[i]))}
            for i, h in enumerate(about.horizons)
        ],
        "past": [_past(found, panel, about, i, n) for i in range(len(about.horizons))],
    }


def _past(found: Hindsight, panel: Panel, about: Metadata, h: int, n: int) -> Document:
    """Every forecast of one symbol and horizon whose outcome is known, oldest first; rows count from `days`."""
    rows, place = about.horizons[h], level_index(about.levels)
    origins = found.known(h, rows, n)
    start, here = panel.values.plain()[origins, n], origins - found.first
    prices = start[:, None] * found.quantiles[here, h, n].exp()
    return {
        "rows": rows,
        "origin": here.tolist(),
        "target": (here + rows).tolist(),
        "realized": (start * found.met[here, h, n].exp()).tolist(),
        "quantiles": {str(level): prices[:, place[level]].tolist() for level in sorted(PAST) if level in place},
    }


def _correlation(found: Correlation | None, panel: Panel) -> Document:
    if found is None:
        one = f"there is no pair: this artifact has one symbol, {panel.symbols[0]}"
        few = "there is none yet: it needs 120 rows with prices of at least two symbols on the same days"
        return {"missing": one if len(panel.symbols) == 1 else few}
    keep = np.flatnonzero(np.isfinite(found.mean))[-REGIMES:]
    keep = keep[:: -max(1, len(keep) // POINTS)][::-1]  # the newest row stays
    return {
        "symbols": found.symbols,
        "steady": found.steady,
        "left_out": found.left_out,
        "window": found.window,
        "threshold": found.threshold,
        "dates": list(map(str, found.dates[keep])),
        "mean": found.mean[keep].tolist(),
        "changes": [day for day in found.changes if day >= str(found.dates[keep[0]])],
        "since": found.changes[-1] if found.changes else None,
        "latest": found.latest.tolist(),
        "latest_date": found.latest_date,
        "pairs": pairs_by_strength(found),
    }


def _plain(value: Any) -> Any:
    """With seven significant digits, more than a screen shows, and None for a number that JSON does not know."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value

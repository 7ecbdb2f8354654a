"""Dashboard document: everything that the page shows, as one JSON object."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np

from torch_opkit.arguments import operation
from torchcommodity.charts import format_age
from torchcommodity.data import Panel, check_not_synthetic, summarize_findings, utc_now
from torchcommodity.export import Artifact, artifact_findings, panel_location
from torchcommodity.forecast import (
    STALE_DAYS,
    Correlation,
    calendar,
    correlation,
    pairs_by_strength,
)
from torchcommodity.serve.dashboard._coverage import coverage
from torchcommodity.serve.dashboard._model_card import FORMAT, model_card
from torchcommodity.serve.dashboard._past_forecasts import CachedArtifact, past_forecasts
from torchcommodity.serve.dashboard._symbols import symbol_records

Document = dict[str, Any]
CORRELATION_ROWS = 1260  # about five years
CORRELATION_POINTS = 700  # of the line; more cannot be told apart on a screen


def make_document(
    artifact: Artifact | CachedArtifact,
    prices: Panel,
    source: str,
    today: date | None = None,
    *,
    outlook_only: bool = False,
) -> Document:
    """Forecasts, past forecasts and outcomes, coverage, correlation, provenance and model card; NaN becomes None.

    Args:
        artifact: makes the forecasts.
        prices: panel with the artifact's symbols.
        source: name of the source of the prices.
        today: date from which the age of the prices is counted; default: the current date in UTC.
        outlook_only: leave out past forecasts and coverage: two calls of the artifact, not hundreds. The `state` is
            then `outlook`, else `ready`.

    Raises:
        ValueError: the panel is synthetic, lacks a symbol, or has too few rows.
    """
    with operation("dashboard"):
        check_not_synthetic(prices)
    metadata = artifact.metadata
    panel = metadata.align_panel(prices)
    past = past_forecasts(artifact, panel, 0 if outlook_only else None)
    days_ahead = calendar(panel.dates)
    findings = artifact_findings(metadata, panel)
    created, coverage_records = utc_now(), coverage(past, panel, metadata)
    today = today or date.fromisoformat(created[:10])
    document = {
        "format": FORMAT,
        "state": "outlook" if outlook_only else "ready",
        "created": created,
        "model": model_card(metadata),
        "prices": _prices(panel, source, today, metadata.signed),
        "calendar": days_ahead.rule,
        "horizons": [{"rows": h, "code": days_ahead.code(h), "name": days_ahead.name(h)} for h in metadata.horizons],
        "days": list(map(str, panel.dates[past.first_origin :])),  # row numbers of past forecasts index this list
        "symbols": symbol_records(past, panel, metadata, coverage_records, today, panel_location(metadata, panel)),
        "coverage": coverage_records,
        "correlation": _correlation(correlation(panel, metadata.price_scale), panel),
        "findings": [asdict(finding) for finding in summarize_findings(findings)],
    }
    rounded: Document = _round(document)
    return rounded


def _prices(panel: Panel, source: str, today: date, signed: Sequence[str]) -> Document:
    stale_days, columns = STALE_DAYS[panel.frequency], zip(panel.symbols, panel.values.plain().numpy().T)
    rows_with_price = [np.flatnonzero((x > 0) | (np.isfinite(x) & (symbol in signed))) for symbol, x in columns]
    last_rows = [int(rows[-1]) if rows.size else None for rows in rows_with_price]
    records = [
        {**record, **({} if row is None else _age(panel.dates[row], today, stale_days))}
        for record, row in zip(panel.sources(), last_rows)
    ]
    newest = max((row for row in last_rows if row is not None), default=len(panel) - 1)
    return {
        "first": str(panel.dates[0]),
        "rows": len(panel),
        "source": source,
        "stale_after": stale_days,
        **_age(panel.dates[newest], today, stale_days),
        "columns": records,
    }


def _age(day: np.datetime64, today: date, stale_days: int) -> Document:
    days = int((np.datetime64(today, "D") - day).astype(int))
    return {"last": str(day), "age_days": days, "age": format_age(days), "stale": days > stale_days}


def _correlation(result: Correlation | None, panel: Panel) -> Document:
    if result is None:
        single = f"needs at least two symbols; this model has one, {panel.symbols[0]}"
        short = "needs 120 rows with prices of at least two symbols on the same days"
        return {"missing": single if len(panel.symbols) == 1 else short}
    rows = np.flatnonzero(np.isfinite(result.mean))[-CORRELATION_ROWS:]
    rows = rows[:: -max(1, len(rows) // CORRELATION_POINTS)][::-1]  # counted from the end: the newest row stays
    return {
        "symbols": result.symbols,
        "dense": result.dense,
        "excluded": len(result.excluded),
        "window": result.window,
        "threshold": result.threshold,
        "dates": list(map(str, result.dates[rows])),
        "mean": result.mean[rows].tolist(),
        "changes": [day for day in result.changes if day >= str(result.dates[rows[0]])],
        "regime_start": result.changes[-1] if result.changes else None,
        "latest": result.latest.tolist(),
        "latest_date": result.latest_date,
        "pairs": pairs_by_strength(result),
    }


def _round(value: Any) -> Any:
    """Floats with seven significant digits; None for infinity and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {str(name): _round(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_round(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value

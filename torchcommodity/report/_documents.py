"""The report as a JSON document and as a CSV table."""

import json
import math
from dataclasses import asdict
from typing import Any

from torchcommodity.data import frame_to_csv
from torchcommodity.report._report_data import ReportData


def to_json(report: ReportData) -> str:
    """The report as one JSON document; NaN and infinity are null.

    `forecast.symbols` maps symbol -> quantiles -> horizon in rows -> level -> price; `outlook` has the fields of
    `forecast.Outlook`.
    """
    forecast, panel = report.forecast, report.panel
    document = {
        "format": "torchcommodity.forecast.1",
        **asdict(report.run),
        "data": {
            "first": str(panel.dates[0]),
            "last": str(panel.dates[-1]),
            "rows": len(panel),
            "columns": panel.sources(),
            "findings": [asdict(finding) for finding in panel.findings],
        },
        "forecast": {
            "horizons": {str(h): forecast.calendar.name(h) for h in forecast.horizons},
            "levels": list(forecast.levels),
            "calendar": forecast.calendar.rule,
            "symbols": {symbol: _symbol(report, n) for n, symbol in enumerate(forecast.symbols)},
        },
        "outlook": asdict(report.outlook),
        "fit": asdict(report.record),
        "backtest": asdict(report.backtest) if report.backtest else {"missing": report.no_backtest},
    }
    return json.dumps(finite(document), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def to_csv(report: ReportData) -> str:
    """`Forecast.to_pandas()` as CSV: a row per symbol, horizon and level; text safe for spreadsheets."""
    return frame_to_csv(report.forecast.to_pandas())


def _symbol(report: ReportData, n: int) -> dict[str, Any]:
    forecast = report.forecast
    return {
        "unit": forecast.units[n],
        "origin": str(forecast.origins[n]),
        "last_price": forecast.last[n].item(),
        "dates": {str(h): str(date) for h, date in zip(forecast.horizons, forecast.target_dates[:, n])},
        "quantiles": {
            str(h): dict(zip(map(str, forecast.levels), forecast.prices[i, n].tolist()))
            for i, h in enumerate(forecast.horizons)
        },
    }


def finite(value: Any) -> Any:
    """Replace NaN and infinity by None, and tuples by lists, for JSON."""
    if isinstance(value, dict):
        return {str(name): finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""The report as a JSON document and as a CSV table, and its files, written together."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchcommodity.data import check_output, frame_to_csv, write_files_atomic
from torchcommodity.forecast import Location
from torchcommodity.report._report_data import ReportData


def to_json(report: ReportData) -> str:
    """The report as one JSON document; NaN and infinity are null.

    `forecast.symbols` maps symbol -> quantiles -> horizon in rows -> level -> price; `outlook` has the fields of
    `forecast.Outlook`; `location` has the parts that move each median, see `forecast.LocationPart`.
    """
    forecast, panel = report.forecast, report.panel
    symbols = {
        symbol: {
            "unit": forecast.units[n],
            "origin": str(forecast.origins[n]),
            "last_price": forecast.last[n].item(),
            "dates": {str(h): str(date) for h, date in zip(forecast.horizons, forecast.target_dates[:, n])},
            "quantiles": {
                str(h): dict(zip(map(str, forecast.levels), forecast.prices[i, n].tolist()))
                for i, h in enumerate(forecast.horizons)
            },
        }
        for n, symbol in enumerate(forecast.symbols)
    }
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
            "symbols": symbols,
        },
        "outlook": asdict(report.outlook),
        "location": location_records(report.location) if report.location else [],
        "fit": asdict(report.record),
        "backtest": asdict(report.backtest) if report.backtest else {"missing": report.no_backtest},
    }
    return json.dumps(finite(document), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def location_records(location: Location) -> list[dict[str, Any]]:
    """The fields of each part; the change of the price only where prices may be negative."""
    records = [(part.symbol, part._asdict()) for part in location.parts]
    return [{k: x for k, x in record.items() if k != "change" or s in location.units} for s, record in records]


def to_csv(report: ReportData) -> str:
    """`Forecast.to_pandas()` as CSV: a row per symbol, horizon and level; text safe for spreadsheets."""
    return frame_to_csv(report.forecast.to_pandas())


def finite(value: Any) -> Any:
    """Replace NaN and infinity by None, and tuples by lists, for JSON."""
    if isinstance(value, dict):
        return {str(name): finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_output_folder(folder: Path, names: tuple[str, ...]) -> None:
    """Check that the files can be written, before any computation.

    Raises:
        ValueError: `folder` is a file, is not writable, or one of `names` in it is a folder or an input, see
            `data.protect_inputs`.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        where = "which is a file" if existing == folder else f"but {existing} is a file"
        raise ValueError(f"--out: must be a folder; got {folder}, {where}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"--out: must be a writable folder; got {folder}")
    if folders := [name for name in names if (folder / name).is_dir()]:
        raise ValueError(f"--out: {folder / folders[0]} must be a file; got a folder of that name")
    for name in names:
        check_output(folder / name, label="--out")


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, or none if one of them cannot be written.

    Readers see old or new files, never partial ones: see `data.write_files_atomic`.
    """
    check_output_folder(folder, tuple(files))
    folder.mkdir(parents=True, exist_ok=True)
    write_files_atomic(folder, files)

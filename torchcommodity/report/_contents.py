"""Everything that a report says, gathered before a line of it is written."""

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

import torchcommodity
from torchcommodity.data import Finding, Panel
from torchcommodity.forecast import Calendar, FitRecord, Forecast
from torchcommodity.report._evidence import Evidence, finite

PACKAGES = ("numpy", "pandas", "arch", "lightning", "scipy", "plotly")


@dataclass(frozen=True)
class Run:
    """When, with what and how a forecast was made.

    Args:
        made: ISO 8601 in UTC.
        command: that makes it again, as typed.
        source: what the data were asked from.
        data_sha256: of the numbers, dates, symbols, contracts and curve that were used.
        seed: of the network.
        versions: package -> version.
    """

    made: str
    command: str
    source: str
    data_sha256: str
    seed: int
    versions: dict[str, str]


@dataclass(frozen=True)
class Contents:
    """One report: prices and what was found about them, the forecast, the record of its fit, the evidence, the run.

    `evidence` is None where there was no walk-forward, and `no_evidence` says why.
    """

    panel: Panel
    findings: tuple[Finding, ...]
    forecast: Forecast
    record: FitRecord
    calendar: Calendar
    run: Run
    evidence: Evidence | None = None
    no_evidence: str = ""


def versions() -> dict[str, str]:
    """Of what computes the numbers; `none` for a package that is not installed."""
    found = {
        "torchcommodity": torchcommodity.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def to_json(contents: Contents) -> str:
    """The report as one JSON document, without a number that JSON does not know.

    `quantiles` are in price units: symbol -> horizon in rows -> level -> price.
    """
    forecast, calendar = contents.forecast, contents.calendar
    document = {
        "format": "torchcommodity.forecast.1",
        **asdict(contents.run),
        "data": {
            "first": str(contents.panel.dates[0]),
            "last": str(contents.panel.dates[-1]),
            "rows": len(contents.panel),
            "columns": contents.panel.sources(),
            "findings": [asdict(finding) for finding in contents.findings],
        },
        "forecast": {
            "horizons": {str(h): calendar.name(h) for h in forecast.horizons},
            "levels": list(forecast.levels),
            "calendar": calendar.rule,
            "symbols": {symbol: _symbol(contents, n) for n, symbol in enumerate(forecast.symbols)},
        },
        "fit": asdict(contents.record),
        "walk_forward": asdict(contents.evidence) if contents.evidence else {"missing": contents.no_evidence},
    }
    return json.dumps(_plain(document), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def _symbol(contents: Contents, n: int) -> dict[str, Any]:
    forecast = contents.forecast
    origin = str(forecast.origins[n])
    return {
        "unit": forecast.units[n],
        "origin": origin,
        "last_price": forecast.last[n].item(),
        "dates": {str(h): contents.calendar.ahead(origin, h) for h in forecast.horizons},
        "quantiles": {
            str(h): dict(zip(map(str, forecast.levels), forecast.prices[i, n].tolist()))
            for i, h in enumerate(forecast.horizons)
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else finite(value)


def to_csv(contents: Contents) -> str:
    """One row a symbol, horizon and level: `date` is the origin, `horizon` in rows, `target_date` the date ahead."""
    frame, calendar = contents.forecast.frame(), contents.calendar
    dates = frame["date"].dt.strftime("%Y-%m-%d")
    reached = {pair: calendar.ahead(*pair) for pair in set(zip(dates, frame["horizon"]))}
    frame.insert(3, "target_date", [reached[pair] for pair in zip(dates, frame["horizon"])])
    frame["date"] = dates
    frame["unit"] = frame["symbol"].map(dict(zip(contents.forecast.symbols, contents.forecast.units)))
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text

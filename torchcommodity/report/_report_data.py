"""Content of a forecast report."""

import platform
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version

import torch

import torchcommodity
from torchcommodity.data import Panel, printable
from torchcommodity.forecast import BacktestSummary, FitRecord, Forecast, Location, Outlook, outlook

PACKAGES = ("numpy", "pandas", "arch", "lightning-fabric", "scipy", "plotly")


@dataclass(frozen=True)
class RunRecord:
    """Record needed to reproduce a run.

    Args:
        created: ISO 8601 in UTC.
        command: the command as typed.
        source: where the prices were read from, as given to `data.read`.
        data_sha256: sha256 of prices, dates, symbols, contracts and curve.
        seed: random seed.
        versions: version by package.
        credits: lines that the publishers of the prices ask to be shown, see `Panel.credits`.
    """

    created: str
    command: str
    source: str
    data_sha256: str
    seed: int
    versions: dict[str, str]
    credits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("command", "source"):  # a file name need not be UTF-8
            object.__setattr__(self, name, printable(getattr(self, name)))


@dataclass(frozen=True)
class ReportData:
    """Content of a report: prices, forecast, fit record, backtest, run.

    Args:
        panel: the prices, with the problems found in them.
        forecast: result of `forecast.predict`.
        record: record of the fit.
        run: record of the run.
        backtest: scores and coverage, or None.
        no_backtest: reason why there is no backtest.
        previous: forecast of the same model made one row earlier, or None.
        location: what moves the medians, or None.
    """

    panel: Panel
    forecast: Forecast
    record: FitRecord
    run: RunRecord
    backtest: BacktestSummary | None = None
    no_backtest: str = ""
    previous: Forecast | None = None
    location: Location | None = None

    @property
    def outlook(self) -> Outlook:
        """The first screen; ages are counted to the day of the run."""
        records = self.backtest.interval_coverage if self.backtest else {}
        coverage = {(symbol, int(h)): item for symbol, items in records.items() for h, item in items.items()}
        return outlook(self.forecast, self.previous, coverage=coverage, today=date.fromisoformat(self.run.created[:10]))


def package_versions(*more: str) -> dict[str, str]:
    """Versions of the packages that compute the numbers, and of `more`; `none` for one that is not installed."""
    versions = {
        "torchcommodity": torchcommodity.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    for name in (*PACKAGES, *more):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "none"
    return versions

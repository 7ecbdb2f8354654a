"""Fit and backtest with results cached on disk."""

from typing import Any

import numpy as np

from torchcommodity.data import Covariates, Panel, calendar_years, to_panel
from torchcommodity.forecast._backtest import TEST_YEARS, backtest
from torchcommodity.forecast._cache import cache_key, load_or_compute
from torchcommodity.forecast._fit import fit
from torchcommodity.forecast._forecaster import Forecaster
from torchcommodity.forecast._summary import BacktestSummary, summarize
from torchcommodity.training import LOCAL, Executor, FitConfig, Progress, check_config, resolve_device

TRAIN_YEARS = 5  # minimum years of prices before the first test year
MIN_ROWS = {"daily": 20, "weekly": 4, "monthly": 1}  # a last year with no more rows is not tested


def cached_fit(
    prices: Any,
    config: FitConfig | None = None,
    *,
    covariates: Covariates | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Forecaster, bool]:
    """Fit a forecaster, or load it from the cache; also return whether it was cached.

    The cache key covers prices, dates, symbols, contracts, curve, covariates, settings, seed, torch version and the
    code of this package. Arguments and errors are those of `fit`.
    """
    panel = to_panel(prices, operation="fit")
    config = check_config("fit", config, panel)
    resolve_device("fit", config.train.device)
    return load_or_compute(
        f"{cache_key(panel, config, seed, _purpose('forecaster', covariates))}.safetensors",
        Forecaster.load,
        lambda: fit(panel, config, covariates=covariates, seed=seed, progress=progress),
        Forecaster.to_bytes,
    )


def cached_backtest(
    prices: Any,
    config: FitConfig | None = None,
    *,
    covariates: Covariates | None = None,
    first_year: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    executor: Executor = LOCAL,
) -> tuple[BacktestSummary, bool]:
    """Backtest the symbols with enough history, or load the summary from the cache; also return whether it was cached.

    A symbol is tested if its prices start at least five years before the first test year; the others are listed in
    `BacktestSummary.excluded`. A last year with 20 rows or fewer is not tested,
    nor one with 4 weeks or 1 month. Arguments are those of `backtest`.

    Raises:
        ValueError: no symbol has enough history; what `backtest` raises.
    """
    panel = to_panel(prices, operation="backtest")
    config = check_config("backtest", config, panel)
    symbols, (first, last) = backtest_span(panel, first_year)
    excluded = tuple(symbol for symbol in panel.symbols if symbol not in symbols)
    panel = panel.select(symbols).between(None, f"{last}-12-31")

    def compute() -> BacktestSummary:
        result = backtest(
            panel, config, covariates=covariates, first_year=first, seed=seed, progress=progress, executor=executor
        )
        return summarize(result, excluded)

    return load_or_compute(
        f"{cache_key(panel, config, seed, _purpose(f'backtest from {first} without {excluded}', covariates))}.json",
        lambda path: BacktestSummary.from_json(path.read_text("utf-8")),
        compute,
        lambda summary: summary.to_json().encode(),
    )


def backtest_span(panel: Panel, first_year: int | None = None) -> tuple[list[str], tuple[int, int]]:
    """Select the symbols with enough history for a backtest, and the first and last test year.

    Raises:
        ValueError: no symbol has five years of prices before the test years.
    """
    years, rows = np.unique(calendar_years(panel.dates), return_counts=True)
    prices = panel.values.plain().numpy()
    frequency = panel.frequency
    tested = rows > MIN_ROWS[frequency]
    last = int(years[tested][-1] if tested.any() else years[-1])
    starts = {s: _year_of_first_price(panel.dates, prices[:, n]) for n, s in enumerate(panel.symbols)}
    symbols = [s for s, year in starts.items() if year + TRAIN_YEARS <= (last if first_year is None else first_year)]
    if not symbols:
        raise ValueError(
            f"backtest: a symbol must have {TRAIN_YEARS} years of prices before the first test year; got prices from "
            f"{panel.dates[0]} to {panel.dates[-1]}"
        )
    earliest = max(starts[s] for s in symbols) + TRAIN_YEARS
    return symbols, (max(earliest, last - TEST_YEARS[frequency] + 1) if first_year is None else first_year, last)


def _purpose(text: str, covariates: Covariates | None) -> str:
    return text if covariates is None else f"{text} with {covariates.sha256}"


def _year_of_first_price(dates: np.ndarray, prices: np.ndarray) -> int:
    return int(str(dates[(prices > 0).argmax()])[:4])

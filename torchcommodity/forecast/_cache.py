"""Fit and backtest with results cached on disk, keyed by data, settings, seed and code."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

import torchcommodity
from torch_opkit.arguments import operation
from torchcommodity.data import (
    SPREAD_SERIES,
    Covariates,
    Panel,
    cache_dir,
    calendar_years,
    price_statistics,
    signed_symbols,
    to_panel,
    write_atomic,
)
from torchcommodity.forecast._backtest import TEST_YEARS, backtest
from torchcommodity.forecast._fit import fit
from torchcommodity.forecast._forecaster import Forecaster
from torchcommodity.forecast._summary import BacktestSummary, summarize
from torchcommodity.models import model_name
from torchcommodity.training import (
    LOCAL,
    Executor,
    FitConfig,
    Progress,
    add_extra_terms,
    check_config,
    resolve_device,
    to_toml,
)

MAX_FILES = 200
MAX_BYTES = 500 * 2**20
KINDS = {".safetensors": "forecaster", ".json": "backtest"}
TRAIN_YEARS = 5  # minimum years of prices before the first test year
MIN_ROWS = {"daily": 20, "weekly": 4, "monthly": 1}  # a last year with no more rows is not tested

T = TypeVar("T")


@operation("fit")
def cached_fit(
    prices: Any,
    config: FitConfig | None = None,
    *,
    covariates: Covariates | None = None,
    signed: Iterable[str] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Forecaster, bool]:
    """Fit a forecaster, or load it from the cache; also return whether it was cached.

    The cache key covers prices, dates, symbols, contracts, curve, bars, covariates, settings, seed, torch version and
    the code of this package: a network of the user's is fitted anew. Arguments and errors are those of `fit`.
    """
    panel = to_panel(prices)
    config = check_config(config, panel)
    signed = tuple(signed)
    resolve_device(config.train.device)

    def load(path: Path) -> Forecaster:
        forecaster = Forecaster.load(path)
        record, symbols, asked = forecaster.record, signed_symbols(panel, signed), add_extra_terms(config, covariates)
        received = (
            *(forecaster.symbols, forecaster.contracts, forecaster.frequency, record.seed, record.prices),
            *(to_toml(FitConfig(forecaster.model.config)), record.settings, set(forecaster.signed)),
            *(record.covariates, _spreads(forecaster.sources) - _spreads(panel.sources())),
        )
        expected = (
            *(panel.symbols, panel.contracts, panel.frequency, seed, price_statistics(panel, symbols)),
            *(to_toml(FitConfig(asked.model)), to_toml(asked), set(symbols)),
            *(() if covariates is None else covariates.specs, set[tuple[str, str]]()),
        )
        span = str(panel.dates[0]), str(panel.dates[-1]), len(panel)
        if received != expected or (record.first, record.through, record.rows) != span:
            raise ValueError(f"fit: expected {path} to be of these prices; got {forecaster!r}")
        return forecaster

    def compute() -> Forecaster:
        return fit(panel, config, covariates=covariates, signed=signed, seed=seed, progress=progress)

    if config.model.has_own_code:  # which is no part of the key
        return compute(), False
    key = cache_key(panel, config, seed, f"forecaster{_with_signed(signed)}", covariates)
    return load_or_compute(f"{key}.safetensors", load, compute, Forecaster.to_bytes)


@operation("backtest")
def cached_backtest(
    prices: Any,
    config: FitConfig | None = None,
    *,
    covariates: Covariates | None = None,
    signed: Iterable[str] = (),
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
    panel = to_panel(prices)
    config = check_config(config, panel)
    signed = tuple(signed)
    symbols, (first, last) = backtest_span(panel, first_year, signed)
    signed = tuple(symbol for symbol in signed if symbol in symbols)
    excluded = tuple(symbol for symbol in panel.symbols if symbol not in symbols)
    panel = panel.select(symbols).between(None, f"{last}-12-31")

    def compute() -> BacktestSummary:
        result = backtest(
            panel,
            config,
            covariates=covariates,
            signed=signed,
            first_year=first,
            seed=seed,
            progress=progress,
            executor=executor,
        )
        return summarize(result, excluded)

    def load(path: Path) -> BacktestSummary:
        summary = BacktestSummary.from_json(path.read_text("utf-8"))
        received = summary.model, summary.symbols, summary.excluded, summary.horizons
        if received != (model_name(config.model), panel.symbols, excluded, config.model.har.horizons):
            raise ValueError(f"backtest: expected {path} to be of these symbols and settings; got {summary.symbols}")
        return summary

    if config.model.has_own_code:
        return compute(), False
    purpose = f"backtest from {first} without {excluded}{_with_signed(signed)}"
    return load_or_compute(
        f"{cache_key(panel, config, seed, purpose, covariates)}.json",
        load,
        compute,
        lambda summary: summary.to_json().encode(),
    )


def backtest_span(
    panel: Panel, first_year: int | None = None, signed: Iterable[str] = ()
) -> tuple[list[str], tuple[int, int]]:
    """Select the symbols with enough history for a backtest, and the first and last test year.

    Args:
        panel: raw prices.
        first_year: as for `cached_backtest`.
        signed: as for `fit`.

    Raises:
        ValueError: no symbol has five years of prices before the test years.
    """
    year_of_row, frequency = calendar_years(panel.dates), panel.frequency
    years, rows = np.unique(year_of_row, return_counts=True)
    long_years = rows > MIN_ROWS[frequency]
    last = int(years[long_years][-1] if long_years.any() else years[-1])
    prices, of_any_sign = panel.values.plain().numpy(), np.isin(panel.symbols, signed_symbols(panel, signed))
    first_prices = ((prices > 0) | (np.isfinite(prices) & of_any_sign)).argmax(0)
    starts = {symbol: int(year_of_row[row]) for symbol, row in zip(panel.symbols, first_prices)}
    symbols = [s for s, year in starts.items() if year + TRAIN_YEARS <= (last if first_year is None else first_year)]
    if not symbols:
        raise ValueError(
            f"backtest: a symbol must have {TRAIN_YEARS} years of prices before the first test year; got prices from "
            f"{panel.dates[0]} to {panel.dates[-1]}"
        )
    earliest = max(starts[s] for s in symbols) + TRAIN_YEARS
    return symbols, (max(earliest, last - TEST_YEARS[frequency] + 1) if first_year is None else first_year, last)


class CacheEntry(NamedTuple):
    """One cached result."""

    path: Path
    kind: str  # "forecaster" or "backtest"
    size: int  # bytes
    last_used: datetime  # UTC


def cache_entries() -> list[CacheEntry]:
    """List the cached results in `data.cache_dir() / "models"`, least recently used first."""
    entries = []
    for path in _folder().glob("*"):
        if path.suffix in KINDS:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # removed by another process
            used = datetime.fromtimestamp(status.st_mtime, timezone.utc)
            entries.append(CacheEntry(path, KINDS[path.suffix], status.st_size, used))
    return sorted(entries, key=lambda entry: (entry.last_used, entry.path))


def clear_cache() -> int:
    """Remove every cached result; return how many were removed. Cached downloads are kept."""
    entries = cache_entries()
    for entry in entries:
        entry.path.unlink(missing_ok=True)
    return len(entries)


def load_or_compute(
    name: str,
    load: Callable[[Path], T],
    compute: Callable[[], T],
    dump: Callable[[T], bytes],
) -> tuple[T, bool]:
    """Return the cached result of that file name and True, or compute and store it and return False.

    A missing or damaged file is computed again. A cache that cannot be written is ignored. After each write the least
    recently used results beyond `MAX_FILES` files or `MAX_BYTES` bytes are removed.
    """
    path = _folder() / name
    try:
        result = load(path)
        os.utime(path)  # time of last use
        return result, True
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        pass
    result = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, dump(result))
        entries = cache_entries()
        count, size = len(entries), sum(entry.size for entry in entries)
        for entry in entries[:-1]:
            if count <= MAX_FILES and size <= MAX_BYTES:
                break
            entry.path.unlink(missing_ok=True)
            count, size = count - 1, size - entry.size
    except OSError:
        pass
    return result, False


def _spreads(sources: Iterable[Mapping[str, str]]) -> set[tuple[str, str]]:
    """Symbol and formula of the spreads, which `predict` makes of their legs; other sources may differ."""
    series = {(source["symbol"], source["series"]) for source in sources}
    return {(symbol, text) for symbol, text in series if text.startswith(SPREAD_SERIES)}


def _with_signed(signed: Sequence[str]) -> str:
    return f" with asinh of {', '.join(signed)}" if signed else ""


def cache_key(panel: Panel, config: FitConfig, seed: int, purpose: str, covariates: Covariates | None) -> str:
    """Hash everything that a result depends on: prices, settings, seed, purpose, torch version and code."""
    if covariates is not None:
        purpose = f"{purpose} with {covariates.sha256}"
    parts = [data_hash(panel), to_toml(config), seed, purpose, torch.__version__, code_hash()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def data_hash(panel: Panel) -> str:
    """sha256 of all that a fit uses of a panel: prices, dates, symbols and the rest, not of provenance."""
    others = [x for x in (panel.averages, panel.curve_of) if any(x)]
    digest = hashlib.sha256(json.dumps([panel.symbols, panel.contracts, *others, *map(str, panel.dates)]).encode())
    for values in (panel.values, panel.curve, panel.bars):
        if values is not None:
            digest.update(values.plain().numpy().tobytes())
    if panel.deliveries is not None:
        digest.update(panel.deliveries.tobytes())
    if panel.references is not None:
        digest.update(data_hash(panel.references).encode())
    return digest.hexdigest()


@cache
def code_hash() -> str:
    """sha256 of the sources and the native library of this package: another version does not share its cache."""
    package = Path(torchcommodity.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in {".py", ".so"}):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()


def _folder() -> Path:
    return cache_dir() / "models"

"""Which price histories a model can be fitted on."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, operation
from torchcommodity.data import (
    MIN_CHANGES,
    Frequency,
    Panel,
    frequency_mismatch,
    signed_symbols,
    summarize_names,
    to_panel,
)
from torchcommodity.models import HarConfig, fit_price_scale
from torchcommodity.training._config import FitConfig

HINT = "select others with prices[list(training.usable_symbols(prices))], --symbols or fit and forecast --drop-unusable"


def min_fit_rows(config: HarConfig) -> int:
    """Minimum number of positive prices of a symbol for a fit: the warm-up and twice the longest horizon."""
    return config.warmup + 2 * config.horizons[-1] + 1


@operation("usable_symbols")
def usable_symbols(prices: Any, config: FitConfig | None = None, signed: Iterable[str] = ()) -> tuple[str, ...]:
    """Select the symbols that `fit` accepts: those with enough prices that change, positive ones or those of spreads.

    Args:
        prices: raw prices, anything that `data.to_panel` takes.
        config: settings of the fit; the defaults for the frequency of the prices if None.
        signed: as for `forecast.fit`.

    >>> from torchcommodity import data
    >>> usable_symbols(data.embedded().between("2017-01-01", "2018-12-31"))
    ('BRENT', 'HENRY_HUB')
    """
    panel = to_panel(prices)
    values, har = panel.values.plain(), (config or FitConfig.for_frequency(panel.frequency)).model.har
    valid = _usable(panel, signed_symbols(panel, signed))
    usable = (valid.sum(0) >= min_fit_rows(har)) & (_changes(values, valid) >= MIN_CHANGES)
    mismatches = _mismatches(panel, valid, har.frequency)
    symbols = [symbol for symbol, is_usable in zip(panel.symbols, usable.tolist()) if is_usable]
    return tuple(symbol for symbol in symbols if symbol not in (*mismatches, *_returns(panel)))


def check_prices(panel: Panel, signed: Collection[str] = ()) -> None:
    """Raise ValueError if symbols have no positive or only equal prices, or returns in their place, and name them.

    Args:
        panel: raw prices.
        signed: symbols whose prices may be zero or negative.
    """
    values, valid = panel.values.plain(), _usable(panel, signed)
    if returns := _returns(panel):
        raise ValueError(
            f"{current_operation()}: every symbol must have prices, not returns or other changes; got values of both "
            f"signs without trend for {summarize_names(returns)}{_hint(panel, returns)}"
        )
    if empty := _names(panel, ~valid.any(0)):
        raise ValueError(
            f"{current_operation()}: every symbol must have positive prices; got none for "
            f"{summarize_names(empty)}{_hint(panel, empty)}"
        )
    if constant := _names(panel, _constant(values, valid)):
        raise ValueError(
            f"{current_operation()}: the prices of every symbol must vary; got constant prices for "
            f"{summarize_names(constant)}{_hint(panel, constant)}"
        )


def check_returns(panel: Panel, purpose: str) -> None:
    """Raise ValueError if symbols are spreads, whose prices below zero have no return, and name them.

    Args:
        panel: raw prices.
        purpose: what needs returns, such as "a portfolio".
    """
    if names := signed_symbols(panel):
        raise ValueError(
            f"{current_operation()}: {purpose} needs returns, which prices below zero do not have; got "
            f"{summarize_names(names)}: use the legs of the spread, or select other symbols"
        )


def price_scale(prices: Tensor, symbols: Sequence[str], signed: Collection[str]) -> Tensor | None:  # (T, N) -> (N,)
    """S of the signed symbols, NaN for the others, see `models.fit_price_scale`; None without a signed symbol.

    Raises:
        ValueError: the prices of a signed symbol never change.
    """
    mask = torch.tensor([symbol in signed for symbol in symbols])
    scale = fit_price_scale(prices, mask)
    if scale is not None and not (scale[mask] > 0).all():
        constant = [s for s, x in zip(symbols, scale.tolist()) if s in signed and not x > 0]
        raise ValueError(
            f"{current_operation()}: prices that may be negative must change, or their scale S, 25 times the mean "
            f"change, is zero; got no change of {summarize_names(constant)}"
        )
    return scale


def check_history(panel: Panel, config: HarConfig, *, allow_short: bool = False, signed: Collection[str] = ()) -> None:
    """Raise ValueError if symbols have no positive, constant, too few or, say, monthly prices, and name them.

    Args:
        panel: raw prices.
        config: settings of the econometric part.
        allow_short: accept symbols with too few prices.
        signed: symbols whose prices may be zero or negative.
    """
    check_prices(panel, signed)
    values, valid = panel.values.plain(), _usable(panel, signed)
    changes, counts = _changes(values, valid), valid.sum(0)
    is_long = counts >= min_fit_rows(config)
    if names := [symbol for symbol, code in zip(panel.symbols, panel.curve_of) if code and symbol in signed]:
        rule = "a spot price with the futures curve of a product must be positive"
        raise ValueError(f"{current_operation()}: {rule}; got prices of any sign for {summarize_names(names)}")
    if names := _names(panel, (changes < MIN_CHANGES) & is_long):
        still = [f"{name} {changes[panel.symbols.index(name)]}" for name in names]
        raise ValueError(
            f"{current_operation()}: the prices of every symbol must change at least {MIN_CHANGES} times, or their "
            f"scale is not known; got {summarize_names(still)}{_hint(panel, names)}"
        )
    if mismatches := _mismatches(panel, valid, config.frequency):
        got = summarize_names(f"{symbol} {mismatch}" for symbol, mismatch in mismatches.items())
        raise ValueError(
            f"{current_operation()}: the prices of every symbol must be {config.frequency}, like the panel's rows; got "
            f"{got}{_hint(panel, list(mismatches))}; make one panel of each frequency, daily, weekly or monthly"
        )
    has_rolls = (panel.rolls(ahead=0) > 0).any(0) if config.frequency == "monthly" else torch.zeros(len(panel.symbols))
    if rolling := _names(panel, has_rolls):
        rule = "monthly prices must be spot prices: nearly every month of a front-month future has a roll"
        remedy = "use daily prices, or no --contracts to ignore the rolls"
        raise ValueError(f"{current_operation()}: {rule}; got contracts of {summarize_names(rolling)}; {remedy}")
    required = min_fit_rows(config)
    short = [f"{symbol} {count}" for symbol, count in zip(panel.symbols, counts.tolist()) if count < required]
    if short and not allow_short:
        reason = f"a warm-up of {config.warmup} and twice the longest horizon of {config.horizons[-1]}"
        kind = "prices" if signed else "positive prices"
        raise ValueError(
            f"{current_operation()}: every symbol must have at least {required} {kind} ({reason}); got "
            f"{summarize_names(short)}{_hint(panel, short)}"
        )


def check_past(panel: Panel, config: HarConfig, rows: int, signed: Collection[str] = ()) -> None:
    """Raise ValueError if no symbol has enough prices that vary after the warm-up in the first `rows` rows."""
    values, valid = panel.values.plain()[:rows], _usable(panel, signed)[:rows]
    after = valid & (valid.cumsum(0) > config.warmup)
    if not ((after.sum(0) > config.horizons[-1]) & ~_constant(values, after)).any():
        columns = zip(panel.symbols, valid.sum(0).tolist(), _constant(values, after).tolist())
        counts = [f"{symbol} {count}{' without a change' * is_constant}" for symbol, count, is_constant in columns]
        required, date = config.warmup + config.horizons[-1], panel.dates[rows - 1]
        kind = "prices" if signed else "positive prices"
        rule = f"more than {required} {kind} by {date} that vary after the first {config.warmup}"
        raise ValueError(f"{current_operation()}: a symbol must have {rule}; got {summarize_names(counts)}")


def _mismatches(panel: Panel, valid: Tensor, frequency: Frequency) -> dict[str, str]:
    """Symbols whose own prices are of another frequency, and what they are."""
    own = valid.numpy()
    words = {s: frequency_mismatch(panel.dates[own[:, n]], frequency) for n, s in enumerate(panel.symbols)}
    return {symbol: mismatch for symbol, mismatch in words.items() if mismatch}


def _returns(panel: Panel) -> list[str]:
    """Symbols whose values look like returns."""
    return [finding.symbol for finding in panel.findings if finding.kind == "looks like returns"]


def _hint(panel: Panel, unusable: Sequence[str]) -> str:
    return f"; {HINT}" if len(unusable) < len(panel.symbols) else ""


def _usable(panel: Panel, signed: Collection[str]) -> Tensor:  # (T, N) bool
    """Positive prices, and all prices of symbols that may be negative."""
    prices, may_be_negative = panel.values.plain(), torch.tensor([symbol in signed for symbol in panel.symbols])
    return torch.isfinite(prices) & ((prices > 0) | may_be_negative)


def _changes(prices: Tensor, valid: Tensor) -> Tensor:  # (T, N) each -> (N,)
    """How many prices differ from the one before."""
    columns = [own[is_valid] for own, is_valid in zip(prices.T, valid.T)]
    return torch.stack([(own.diff() != 0).sum() for own in columns])


def _constant(prices: Tensor, valid: Tensor) -> Tensor:  # (T, N) each -> (N,); False with fewer than two valid prices
    lowest = torch.where(valid, prices, torch.inf).amin(0)
    highest = torch.where(valid, prices, -torch.inf).amax(0)
    return (lowest == highest) & (valid.sum(0) > 1)


def _names(panel: Panel, mask: Tensor) -> list[str]:
    return [symbol for symbol, selected in zip(panel.symbols, mask.tolist()) if selected]

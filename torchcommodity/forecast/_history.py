"""What a forecast needs of a price history: its symbols, enough prices for the warm-up, and the last price of each."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torch_opkit import MetadataTensor
from torch_opkit.arguments import current_operation, operation
from torchcommodity.data import (
    NOT_STATED,
    TREATMENTS,
    Finding,
    Frequency,
    Panel,
    PriceForm,
    Provenance,
    RowCalendar,
    calendar_conflict,
    check_frequency,
    check_not_future,
    may_be_negative,
    row_calendar,
    signed_findings,
    summarize_names,
    usable_ranges,
)
from torchcommodity.models import CURVE_AGE, LARGEST_CHANGE, RELATION_RULES, positive_prices
from torchcommodity.training import panel_bars, reference_prices

RANGE_ROWS = 5  # rows without a range after which a finding says so
CAPPED_ROWS, CAPPED_SHARE = 63, 0.05  # last changes, and the share of capped ones from which a finding says so


class PriceRange(NamedTuple):
    """Number, minimum and maximum of each symbol's usable prices, (N,) each: positive, or of any sign with a scale."""

    counts: Tensor  # int64
    lowest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, prices: Tensor, scale: Tensor | None = None) -> "PriceRange":  # (T, N), (N,)
        """The range of some rows; infinite where no price is usable."""
        usable = _positive(positive_prices(prices, scale))
        lowest, highest = prices.where(usable, torch.inf).amin(0), prices.where(usable, -torch.inf).amax(0)
        return cls(usable.sum(0), lowest, highest)

    def join(self, other: "PriceRange") -> "PriceRange":
        """The range of both."""
        lowest, highest = torch.minimum(self.lowest, other.lowest), torch.maximum(self.highest, other.highest)
        return PriceRange(self.counts + other.counts, lowest, highest)

    def check(self, symbols: Sequence[str], warmup: int) -> None:
        """Raise ValueError if a symbol has no more than `warmup` positive prices, or only equal ones."""
        counts = self.counts.tolist()
        if short := [f"{symbol} {count}" for symbol, count in zip(symbols, counts) if count <= warmup]:
            raise ValueError(f"every symbol must have more than {warmup} positive prices; got {summarize_names(short)}")
        varies = (self.lowest < self.highest).tolist()
        if constant := [symbol for symbol, is_varying in zip(symbols, varies) if not is_varying]:
            names = summarize_names(constant)
            raise ValueError(f"the prices of every symbol must vary; got constant prices for {names}")


def check_warmup(prices: Tensor, symbols: Sequence[str], warmup: int, scale: Tensor | None = None) -> None:
    """Raise ValueError if a symbol has no more than `warmup` usable prices, or only equal ones; prices (T, N)."""
    PriceRange.of(prices, scale).check(symbols, warmup)


def last_prices(
    prices: Tensor, scale: Tensor | None = None
) -> tuple[Tensor, Tensor]:  # (..., T, N), (N,) -> (..., N) int64, (..., N)
    """Row of each symbol's last positive price, or last price of any sign with a scale, and that price."""
    usable = _positive(positive_prices(prices, scale))
    row = prices.shape[-2] - 1 - usable.flip(-2).int().argmax(-2)
    return row, prices.gather(-2, row.unsqueeze(-2)).squeeze(-2)


def select_prices(
    panel: Panel,
    symbols: Sequence[str],
    contracts: Sequence[str | None],
    references: Sequence[str],
    curve_of: Sequence[str | None],
) -> Panel:
    """Symbols and references of a forecaster, in its order, with its contracts and the products of its curves.

    A reference that the panel has in neither role is NaN, and so is the curve of spot prices that it lacks.
    """
    panel, name = panel.with_references([name for name in references if name in panel.symbols]), current_operation()
    panel = panel.select(symbols)
    for symbol, contract, fitted in zip(panel.symbols, panel.contracts, contracts):
        if contract is not None and contract != fitted:
            expected = "a spot price" if fitted is None else f"contract {fitted}"
            raise ValueError(f"{name}: {symbol} must be {expected}, as in the fit; got contract {contract}")
    panel = panel.with_contracts(dict(zip(symbols, contracts)))
    for symbol, code, fitted in zip(panel.symbols, panel.curve_of, curve_of):
        if code is not None and code != fitted:
            expected = "no curve" if fitted is None else f"the curve of {fitted}"
            raise ValueError(f"{name}: {symbol} must have {expected}, as in the fit; got that of {code}")
    if any(curve_of):
        missing = panel.values.plain().new_full((*panel.values.shape, 1), torch.nan)
        curve = MetadataTensor(missing) if panel.curve is None else panel.curve
        panel = replace(panel, curve=curve, curve_of=tuple(curve_of))
    if not references:
        return replace(panel, references=None)
    prices = reference_prices(panel, references)
    return replace(panel, references=make_references(prices, panel.dates, references))


def make_references(prices: Tensor, dates: np.ndarray, names: Sequence[str]) -> Panel:
    """References of a forecaster: prices (T, R) without unit and provenance, which no forecast uses."""
    provenance = (Provenance("", "", NOT_STATED, "", "", ""),) * len(names)
    return Panel(MetadataTensor(prices), dates, tuple(names), ("",) * len(names), provenance)


def _curve_findings(panel: Panel) -> list[Finding]:
    """A finding for each spot price of an aligned panel whose curve is not known on its last own rows."""
    if panel.curve is None:
        return []
    return missing_curves(panel.values.plain(), panel.curve.plain(), panel.symbols, panel.curve_of, panel.dates)


def missing_curves(
    prices: Tensor, curve: Tensor, symbols: Sequence[str], curve_of: Sequence[str | None], dates: np.ndarray
) -> list[Finding]:
    """A finding for each spot price, of (T, N), whose curve, of (T, N, C), is not known on its last own rows."""
    findings = []
    for n, (symbol, code) in enumerate(zip(symbols, curve_of)):
        own = _positive(prices[:, n]).nonzero()[:, 0]
        if code is None or not len(own):
            continue
        first, last = (int(own[-min(len(own), k)]) for k in (CURVE_AGE + 1, 1))
        known = _positive(curve[first : last + 1, n])
        if not (known[:, 0] & (known.sum(-1) > 1)).any():
            value = f"no closes of two contracts of {code} in the {CURVE_AGE} rows to {dates[last]}"
            findings.append(Finding("curve missing", symbol, "", 0, value, TREATMENTS["curve missing"]))
    return findings


def input_findings(panel: Panel, ranges: Sequence[str] = ()) -> list[Finding]:
    """Findings of an aligned panel: a calendar that its dates contradict, a curve, references or bars that ended.

    Args:
        panel: prices of a forecaster's symbols.
        ranges: symbols that were fitted with their open, high and low.
    """
    kind, findings, has_price = "other calendar", _curve_findings(panel), _positive(panel.values.plain()).numpy()
    if row_calendar(panel.dates) == RowCalendar("daily"):
        for n, (symbol, contract) in enumerate(zip(panel.symbols, panel.contracts)):
            if contract is None and (value := calendar_conflict(panel.dates[has_price[:, n]], panel.calendars[n])):
                findings.append(Finding(kind, symbol, "", 0, value, TREATMENTS[kind]))
    if panel.references is not None:
        prices, last = panel.references.values.plain(), str(panel.dates[-1])
        findings += ended_references(prices, panel.references.symbols, last, panel.frequency)
    if ranges:
        usable = usable_ranges(panel.values.plain(), panel_bars(panel))
        columns = [panel.symbols.index(name) for name in ranges]
        findings += ended_ranges(usable[:, columns], ranges, str(panel.dates[-1]))
    return findings


def signed_price_findings(
    findings: Iterable[Finding], prices: Tensor, dates: np.ndarray, symbols: Sequence[str], scale: Tensor | None
) -> list[Finding]:
    """Findings for the price forms of a fit, as `data.signed_findings` leaves them, with what these leave out or cap.

    That is one of each symbol in logs with so many negative prices that a fit on them would take asinh(P / S), and one
    of each symbol of which many recent changes are capped.

    Args:
        findings: of the prices.
        prices: (T, N).
        dates: (T,) datetime64[D].
        symbols: their N names.
        scale: (N,) S, NaN = log; None: all are logs.
    """
    scales = [math.nan] * len(symbols) if scale is None else scale.tolist()
    reasons = {f.symbol: f.value for f in findings if f.kind == "signed prices"}
    changed = [
        *signed_findings(
            findings,
            [
                PriceForm(s, "log") if math.isnan(x) else PriceForm(s, "asinh", reasons.get(s, f"S = {x:.4g}"))
                for s, x in zip(symbols, scales)
            ],
        )
    ]
    kind = "negative prices"
    for n, (symbol, own) in enumerate(zip(symbols, prices.numpy().T)):
        if math.isnan(scales[n]) and may_be_negative(own):
            rows = np.flatnonzero(own < 0)
            changed = [f for f in changed if (f.kind, f.symbol) != ("nonpositive", symbol)]
            value = f"{own[rows[-1]]:g}, and {len(rows) - 1:,} before; the fit took logs"
            changed.append(Finding(kind, symbol, str(dates[rows[-1]]), 0, value, TREATMENTS[kind], len(rows)))
    if scale is None:
        return changed
    kind, log = "capped changes", positive_prices(prices, scale).log()
    for n, symbol in enumerate(symbols):
        if math.isnan(scales[n]):
            continue
        own = log[:, n]
        changes = own[own.isfinite()].diff()[-CAPPED_ROWS:]
        count = int((changes.abs() >= LARGEST_CHANGE).sum())
        if count > CAPPED_SHARE * len(changes):
            value = f"{count} of the last {len(changes)} are larger than {LARGEST_CHANGE:g} S, or a jump of that size"
            changed.append(Finding(kind, symbol, "", 0, value, TREATMENTS[kind]))
    return changed


def ended_references(prices: Tensor, names: Sequence[str], last: str, frequency: Frequency) -> list[Finding]:
    """A finding if references, prices (T, R), have no recent price on the last row, whose date is `last`."""
    max_age = RELATION_RULES[frequency].max_age
    recent = _positive(prices[-max_age - 1 :]).any(0).tolist()
    ended = [name for name, is_recent in zip(names, recent) if not is_recent]
    if not ended:
        return []
    value = f"no price of {summarize_names(ended)} in the {max_age} rows to {last}"
    kind = "reference ended"
    return [Finding(kind, "", last, 0, value, TREATMENTS[kind], len(ended))]


def ended_ranges(usable: Tensor, names: Sequence[str], last: str) -> list[Finding]:
    """A finding if symbols have no usable range, (T, N) bool, in the rows up to the last one, whose date is `last`."""
    recent = usable[-RANGE_ROWS:].any(0).tolist()
    ended = [name for name, is_recent in zip(names, recent) if not is_recent]
    if not ended:
        return []
    kind = "ranges ended"
    value = f"no usable range of {summarize_names(ended)} in the {RANGE_ROWS} rows to {last}"
    return [Finding(kind, "", last, 0, value, TREATMENTS[kind], len(ended))]


def _positive(prices: Tensor) -> Tensor:
    return torch.isfinite(prices) & (prices > 0)


@operation("predict")
def align_panel(
    panel: Panel,
    symbols: Sequence[str],
    contracts: Sequence[str | None],
    frequency: Frequency = "daily",
    references: Sequence[str] = (),
    curve_of: Sequence[str | None] = (),
) -> Panel:
    """Select the symbols of a forecaster from a panel, in its order and with its contracts, on the rows with a price.

    The references of the result are those of the forecaster, NaN where the panel has them neither among its symbols
    nor among its references.

    Args:
        panel: raw prices.
        symbols: N symbols of the forecaster.
        contracts: their N product codes; None = spot.
        frequency: of the prices of the fit.
        references: names of the R references of the forecaster.
        curve_of: products of the curves of its N symbols; default: it has no spot price with a curve.

    Raises:
        ValueError: the panel has no such symbol, another contract or the curve of another product for it, prices of
            another frequency, or a date that is still to come.

    Example:
        >>> from torchcommodity import data
        >>> align_panel(data.embedded(), ("HENRY_HUB", "WTI"), (None, None)).symbols
        ('HENRY_HUB', 'WTI')
    """
    name = current_operation()
    if missing := [symbol for symbol in symbols if symbol not in panel.symbols]:
        others = () if panel.references is None else panel.references.symbols
        hint = f", a reference there: read it by name (symbols={missing[0]!r})" if missing[0] in others else ""
        raise ValueError(
            f"{name}: prices must have every symbol of the forecaster; got {summarize_names(panel.symbols, 20)} "
            f"without {summarize_names(missing)}{hint}"
        )
    products = curve_of or (None,) * len(symbols)
    panel = select_prices(panel, symbols, contracts, references, products).drop_empty_rows()
    check_frequency(panel.dates, frequency)
    if not panel.synthetic:  # simulated prices may lie in the future
        check_not_future(panel.dates, frequency)
    return panel

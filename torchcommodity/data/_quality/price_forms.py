"""Which prices are forecast in logs, and which, such as spreads, may be zero or negative."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from torchcommodity.data._core.errors import Finding, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import may_be_negative
from torchcommodity.data._core.provenance import check_several
from torchcommodity.opkit.arguments import current_operation

SIGNED = "signed prices"  # kind of finding
RATIO_KINDS = {"nonpositive", "jump", "decimal slip"}  # rules of positive prices


@dataclass(frozen=True)
class PriceForm:
    """How a model takes the prices of a symbol.

    Args:
        symbol: its name.
        form: "log" for ln P, where prices of zero or below are missing, or "asinh" for asinh(P / S).
        reason: what the prices say of it; empty for positive prices.
    """

    symbol: str
    form: Literal["log", "asinh"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.symbol} {self.form}" + (f": {self.reason}" if self.reason else "")


def price_forms(panel: Panel, signed: Iterable[str] = ()) -> tuple[PriceForm, ...]:
    """Decide for each symbol whether it is forecast in logs or in asinh(P / S).

    A symbol with at least two negative prices, or one of `signed`, is "asinh". All others are "log": a single negative
    price, and prices of zero, which are mostly placeholders, are left out of returns.

    Args:
        panel: the prices of a fit.
        signed: symbols whose prices may be zero or negative, whatever they were so far.

    Raises:
        ValueError: `signed` names a symbol that the panel lacks.
        TypeError: `signed` is a text.

    >>> from torchcommodity import data
    >>> oil = data.embedded(["BRENT", "WTI"])
    >>> print(*price_forms(oil), sep="; ")
    BRENT log; WTI log: one price below zero, -36.98 on 2020-04-20: left out of returns
    >>> print(price_forms(oil, signed=["WTI"])[1])
    WTI asinh: signed; 1 of 10,226 prices is below zero
    """
    check_several(current_operation("price_forms"), signed)
    signed = tuple(signed)
    if unknown := [symbol for symbol in signed if symbol not in panel.symbols]:
        rule = f"signed must name symbols of the prices, {summarize_names(panel.symbols)}"
        raise ValueError(f"{current_operation('price_forms')}: {rule}; got {summarize_names(unknown)}")
    columns = zip(panel.symbols, panel.values.plain().detach().numpy().T)
    return tuple(_price_form(symbol, prices, panel.dates, symbol in signed) for symbol, prices in columns)


def _price_form(symbol: str, prices: np.ndarray, dates: np.ndarray, is_signed: bool) -> PriceForm:
    negative = np.flatnonzero(prices < 0)
    if is_signed or may_be_negative(prices):
        verb = "is" if negative.size == 1 else "are"
        words = f"{negative.size:,} of {np.count_nonzero(~np.isnan(prices)):,} prices {verb} below zero"
        return PriceForm(symbol, "asinh", f"signed; {words}" if is_signed else words)
    reasons = [f"one price below zero, {prices[n]:g} on {dates[n]}" for n in negative]
    if zeros := int(np.count_nonzero(prices == 0)):
        reasons.append(f"{zeros:,} price{'s' * (zeros > 1)} of zero")
    return PriceForm(symbol, "log", f"{' and '.join(reasons)}: left out of returns" if reasons else "")


def signed_symbols(panel: Panel, signed: Iterable[str] = ()) -> tuple[str, ...]:
    """The symbols of a panel that `price_forms` takes in asinh(P / S).

    >>> from torchcommodity import data
    >>> signed_symbols(data.embedded(["BRENT", "WTI"]), ["WTI"])
    ('WTI',)
    """
    return tuple(form.symbol for form in price_forms(panel, signed) if form.form == "asinh")


def signed_findings(findings: Iterable[Finding], forms: Sequence[PriceForm]) -> tuple[Finding, ...]:
    """Findings without those that rest on positive prices or on ratios, for the symbols of any sign; with one of each.

    >>> from torchcommodity import data
    >>> wti = data.embedded(["WTI"])
    >>> print(*signed_findings(wti.findings, price_forms(wti, ["WTI"])))
    signed prices WTI: signed; 1 of 10,226 prices is below zero (forecast as asinh(P / S), without log-returns)
    """
    reasons = {form.symbol: form.reason for form in forms if form.form == "asinh"}
    kept = (x for x in findings if x.symbol not in reasons or x.kind not in {SIGNED, *RATIO_KINDS})
    return (*kept, *(make_finding(SIGNED, symbol, value=reason) for symbol, reason in reasons.items()))

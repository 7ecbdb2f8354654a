"""Inputs of a model from a panel, and returns of futures with and without the price gap between two contracts."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import Panel
from torchcommodity.models import ModelInputs
from torchcommodity.ops import log_returns


def model_inputs(
    panel: Panel,
    ahead: int,
    extra_variances: Tensor | None = None,
    references: Sequence[str] = (),
    bars: bool = False,
) -> ModelInputs:
    """Build the inputs of a model from a panel, with the roll calendar of the next `ahead` rows.

    Rolls are on the dates of the calendar even where prices are missing, so that the calendar known at a row does
    not depend on later prices.

    Args:
        panel: raw prices, with `contracts` and `curve` if they are futures, or `curve` and `curve_of` if they are spot.
        ahead: A, at least the longest horizon of the model.
        extra_variances: (T, H, N, X), see `covariate_variances`.
        references: names of `HarConfig.references`; those that `panel.references` lacks are NaN.
        bars: with open, high and low, as `HarConfig.bars` says; NaN for a panel without.

    Returns:
        Prices; rolls, for a panel with contracts; the curve, if it has one; the extra variances; prices of the
        references; the dates; the bars.

    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI"]).between("2018-01-01", "2018-12-31").with_contracts({"WTI": "CL"})
    >>> inputs = model_inputs(panel, ahead=126)
    >>> inputs.prices.shape, inputs.rolls.shape
    (torch.Size([249, 1]), torch.Size([375, 1]))
    """
    days = torch.from_numpy(panel.dates.astype(np.int64))
    others = reference_prices(panel, references) if references else None
    prices = panel.values.plain().detach()
    averages = torch.tensor(panel.averages) if any(panel.averages) else None
    ranges = panel_bars(panel) if bars else None
    curve = None if panel.curve is None else panel.curve.plain().detach()
    if not any(panel.contracts) and panel.deliveries is None:
        return ModelInputs(prices, None, curve, extra_variances, others, days, ranges, averages)
    rolls = panel.roll_months(ahead)
    closed = ~panel.open_days() & (rolls[: len(panel)] == 0)
    rolls[: len(panel)][closed] = -1
    return ModelInputs(prices, rolls, curve, extra_variances, others, days, ranges, averages)


def panel_bars(panel: Panel, symbols: Sequence[str] | None = None) -> Tensor:  # (T, N, 3)
    """Open, high and low; NaN where the panel has none, and for symbols other than these."""
    missing = torch.full((*panel.values.shape, 3), torch.nan, dtype=torch.double)
    if panel.bars is None:
        return missing
    bars = panel.bars.plain().detach()
    if symbols is None:
        return bars
    own = torch.tensor([symbol in symbols for symbol in panel.symbols])
    return torch.where(own[:, None], bars, missing)


def reference_prices(panel: Panel, references: Sequence[str]) -> Tensor:  # (T, R)
    """Prices of the references, NaN where the panel has none."""
    prices = torch.full((len(panel), len(references)), torch.nan, dtype=torch.double)
    if panel.references is not None:
        columns = dict(zip(panel.references.symbols, panel.references.values.plain().detach().unbind(1)))
        for k, name in enumerate(references):
            if name in columns:
                prices[:, k] = columns[name]
    return prices


def nearby_closes(panel: Panel, names: Sequence[str]) -> Tensor:  # (T, len(names))
    """Closes of the contracts of products, `CL 1` the front contract of CL, NaN where the panel has none."""
    closes = torch.full((len(panel), len(names)), torch.nan, dtype=torch.double)
    if panel.curve is not None:
        curve = panel.curve.plain().detach()
        for k, name in enumerate(names):
            code, nth = name.rsplit(" ", 1)
            if code in panel.curve_of and int(nth) <= curve.shape[2]:
                closes[:, k] = curve[:, panel.curve_of.index(code), int(nth) - 1]
    return closes


def roll_gaps(panel: Panel) -> Tensor:  # (T, N)
    """Part of each log-return that comes from switching to another contract: ln F_{1+n}(s) - ln F_1(s).

    s is the row of the last positive price before t, and n the number of rolls after s up to t; F_1, F_2, ... are the
    nearby contracts of the panel's curve. The gap is not a return: a holder of the second contract
    over the roll earns ln F_1(t) - ln F_2(s).

    Args:
        panel: prices with `contracts`, and `curve` where it is known.

    Returns:
        (T, N) float64, log-return: zero on a row without a roll and for a symbol without a contract, NaN on a roll
        beyond the curve. Row t uses prices up to row t - 1 and the calendar.

    References:
        Erb, Harvey (2006). The strategic and tactical value of commodity futures. Financial Analysts Journal 62(2):
        their roll return, here on the day of the roll.

    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI"]).between("2018-12-18", "2018-12-21")
    >>> roll_gaps(panel)[:, 0].tolist()  # spot
    [0.0, 0.0, 0.0, 0.0]
    >>> roll_gaps(panel.with_contracts({"WTI": "CL"}))[:, 0].tolist()  # treated as a front month without a curve
    [0.0, 0.0, nan, 0.0]
    """
    return _gaps(model_inputs(panel, ahead=0))


def roll_adjusted_returns(panel: Panel | ModelInputs) -> Tensor:  # (T, N)
    """Log-returns of the contract held, without roll gaps: the returns that an investor can earn.

    r_t = ln F_1(t) - ln F_{1+n}(s), with s the row of the last positive price and n the number of rolls since; the
    log-return of the price on rows without a roll.

    Args:
        panel: prices with `contracts`, and `curve` where it is known; or the inputs of a model.

    Returns:
        (T, N) float64, log-return. NaN where the log-return of the price is missing, and on a roll beyond the curve:
        zero would lower the volatility. A portfolio holds no position in the asset over such a row.

    >>> from torchcommodity import data
    >>> panel = data.embedded(["WTI"]).between("2018-12-18", "2018-12-21").with_contracts({"WTI": "CL"})
    >>> [round(r, 3) for r in roll_adjusted_returns(panel)[:, 0].tolist()]
    [nan, 0.039, nan, -0.006]
    """
    inputs = model_inputs(panel, ahead=0) if isinstance(panel, Panel) else panel
    return log_returns(inputs.prices) - _gaps(inputs)


def non_roll_returns(panel: Panel) -> Tensor:  # (T, N)
    """Log-returns with NaN on every roll, for volatility estimates.

    `ops.riskmetrics_variance` and similar operators skip NaN, so roll gaps do not enter the volatility.

    Args:
        panel: prices with `contracts`.

    Returns:
        (T, N) float64, log-return; NaN on a roll, and where the log-return is missing.

    >>> from torchcommodity import data, ops
    >>> panel = data.embedded(["WTI"]).between("2018-01-01", "2018-12-31").with_contracts({"WTI": "CL"})
    >>> int(non_roll_returns(panel).isnan().sum() - ops.log_returns(panel.values).isnan().sum())
    12
    """
    is_roll = panel.rolls(ahead=0) > 0
    return torch.where(is_roll, torch.nan, log_returns(panel.values.plain()))


def _gaps(inputs: ModelInputs) -> Tensor:  # (T, N)
    if inputs.rolls is None:
        return torch.zeros_like(inputs.prices)
    prices, has_price = inputs.prices, inputs.prices > 0
    rows = torch.arange(len(prices))[:, None].expand(prices.shape)
    latest = torch.where(has_price, rows, -1).cummax(0).values
    before = torch.cat([torch.full_like(latest[:1], -1), latest[:-1]])
    last_rows = torch.where(before < 0, rows, before)  # with a positive price before each row; the row itself if none
    passed = (inputs.rolls[: len(prices)] > 0).long().cumsum(0)
    counts = torch.where(has_price, passed - passed.gather(0, last_rows), 0)
    if inputs.curve is None:
        return torch.where(counts > 0, torch.nan, torch.zeros_like(prices))
    contracts = inputs.curve.shape[-1]
    curve = inputs.curve.gather(0, last_rows[..., None].expand(-1, -1, contracts))
    curve = torch.cat([curve, torch.full_like(curve[..., :1], torch.nan)], -1)  # NaN beyond the curve
    entered = curve.gather(-1, counts.clamp(max=contracts)[..., None]).squeeze(-1)
    return torch.where(counts > 0, _log(entered) - _log(curve[..., 0]), 0.0)


def _log(prices: Tensor) -> Tensor:
    return torch.where(prices > 0, prices, torch.nan).log()

"""Tests of the value at risk and expected shortfall of a backtest's forecasts."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from torch_opkit.arguments import operation, raise_invalid
from torchcommodity.risk._coverage_tests import christoffersen_test, kupiec_test
from torchcommodity.risk._evaluated_forecasts import (
    EvaluatedForecasts,
    PriceForecasts,
    has_outcome,
    independent_rows,
    model_of,
)
from torchcommodity.risk._forecast_risk import forecast_expected_shortfall, forecast_value_at_risk
from torchcommodity.risk._position_losses import extend_tails, simple_return_quantiles
from torchcommodity.risk._quantile_curve import negate_quantiles
from torchcommodity.risk._shortfall import acerbi_szekely_test, fissler_ziegel_loss

Side = Literal["long", "short"]


@dataclass(frozen=True)
class TailEvaluation:
    """Value at risk and expected shortfall of one symbol at one horizon against the outcomes.

    Args:
        model: name of the model.
        symbol: symbol.
        horizon: rows.
        side: of the position, "long" or "short".
        level: confidence level.
        forecasts: number of forecasts with an outcome.
        observations: those whose periods do not overlap; the sample of the tests.
        exceedances: outcomes among them with a loss beyond value at risk.
        expected: their expected number.
        kupiec_p_value: of `kupiec_test`.
        christoffersen_p_value: of conditional coverage, `christoffersen_test`; NaN with fewer than 2 observations.
        z2: of `acerbi_szekely_test`; negative if losses were larger or more frequent than forecast.
        z2_p_value: one-sided.
        fissler_ziegel: mean `fissler_ziegel_loss` over all forecasts; lower is better.
    """

    model: str
    symbol: str
    horizon: int
    side: Side
    level: float
    forecasts: int
    observations: int
    exceedances: int
    expected: float
    kupiec_p_value: float
    christoffersen_p_value: float
    z2: float
    z2_p_value: float
    fissler_ziegel: float


@operation("evaluate_tails")
def evaluate_tails(
    backtest: EvaluatedForecasts,
    level: float = 0.95,
    *,
    model: str | None = None,
    side: Side = "long",
) -> tuple[TailEvaluation, ...]:
    """Test value at risk and expected shortfall of a position in each symbol, at each horizon of a backtest.

    Losses are those of the simple return, a fraction of the price at the origin; gaps of front-month prices at contract
    rolls are part of it. Targets of h rows overlap and exceed together, so the tests take the forecasts whose periods
    do not overlap, from the first one on: about T / h. Seven years have 14 half-years, too few for a test of any power.
    Forecasts whose expected shortfall is a gain, before a roll to a much higher contract, are left out of the scores of
    ES. Of a symbol whose prices may be negative, losses are in price units per unit held.

    Args:
        backtest: quantiles and outcomes, such as a `forecast.Backtest`.
        level: confidence level. Beyond 1 minus the lowest quantile level, and for ES always, the tail is an
            extrapolation, see `forecast_expected_shortfall`.
        model: name of the model; the tested one if None.
        side: "long" for losses if the price falls, "short" if it rises.

    Returns:
        One record per symbol and horizon that has an outcome; `pandas.DataFrame(records)` is the table.

    Raises:
        ValueError: synthetic prices, an unknown model or side, or a level outside (0, 1).

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")
        >>> week = evaluate_tails(forecast.backtest(wti, first_year=2016))[0]
        >>> week.symbol, week.horizon, week.forecasts, week.observations
        ('WTI', 5, 247, 50)
    """
    name = model_of(backtest, model)
    if side not in ("long", "short"):
        raise_invalid("evaluate_tails", "side must be 'long' or 'short'", side=side)
    returns = backtest.targets.expm1()
    quantiles, levels = simple_return_quantiles(backtest.quantiles[name], backtest.levels)
    if isinstance(backtest, PriceForecasts) and any(backtest.signed):
        columns = torch.tensor([symbol in backtest.signed for symbol in backtest.symbols])
        outcomes, changes = backtest.price_changes(name)
        returns = torch.where(columns, outcomes, returns)
        quantiles = torch.where(columns[:, None], extend_tails(changes, backtest.levels)[0], quantiles)
    if side == "short":
        returns, (quantiles, levels) = -returns, negate_quantiles(quantiles, levels)
    var = forecast_value_at_risk(quantiles, levels, level)  # (T, H, N)
    es = forecast_expected_shortfall(quantiles, levels, level)
    es = torch.where(es > 0, es, torch.nan)  # a gain even in the tail, before a roll to a much higher contract
    valid = has_outcome(backtest, name)
    records = []
    for n, symbol in enumerate(backtest.symbols):
        for i, horizon in enumerate(backtest.horizons):
            rows = valid[:, i, n]
            if rows.any():
                independent = independent_rows(backtest.origins, backtest.target_dates[:, i, n], rows)
                r, v, e = (x[:, i, n] for x in (returns, var, es))
                fz = fissler_ziegel_loss(r[rows], v[rows], e[rows], level).nanmean().item()
                tests = _tests(r[independent], v[independent], e[independent], level)
                records.append(TailEvaluation(name, symbol, horizon, side, level, int(rows.sum()), *tests, fz))
    return tuple(records)


def _tests(
    returns: Tensor, var: Tensor, es: Tensor, level: float
) -> tuple[int, int, float, float, float, float, float]:
    """Observations to p-value of Z2, as in `TailEvaluation`."""
    kupiec, z2, z2_p_value = kupiec_test(returns, var, level), math.nan, math.nan
    if es.isfinite().any():
        shortfall = acerbi_szekely_test(returns, var, es, level)
        z2, z2_p_value = shortfall.z2, shortfall.z2_p_value
    christoffersen = christoffersen_test(returns, var, level).p_value if len(returns) > 1 else math.nan
    return kupiec.observations, kupiec.exceedances, kupiec.expected, kupiec.p_value, christoffersen, z2, z2_p_value

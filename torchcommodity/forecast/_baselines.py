"""Baseline forecasts: fitted on the rows before `start`, for the rows from `start` on.

All but `unconditional` forecast a variance per horizon, on the rows after the model's warm-up, and multiply its square
root by empirical quantiles of past scaled targets, pooled over symbols. They differ in their variance only.
"""

import numpy as np
import torch
from torch import Tensor

from torchcommodity._extras import extra
from torchcommodity.data import targets
from torchcommodity.models import Frequency, Har, HarConfig, own_rows
from torchcommodity.ops import garch_variance, riskmetrics_variance
from torchcommodity.training import Baseline, ModelInputs, Prediction, fit_mix, pool_rows, standard_quantiles

RISKMETRICS = {"daily": 0.94, "weekly": 0.94, "monthly": 0.97}  # lambda: half-lives of 11.2 and 22.8 rows
QUARTER = {"daily": 63, "weekly": 13, "monthly": 3}  # rows
MIN_RETURNS = 100  # returns of a symbol for a GARCH fit


def unconditional(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
    """Empirical quantiles of each symbol's past cumulative log-returns, the same on every row."""
    prices = inputs.prices
    past = targets(prices[:start], config.horizons)
    rows = len(prices) - start
    quantiles = np.full((*past.shape[1:], len(config.levels)), np.nan)  # (H, N, Q)
    for h, n in np.ndindex(*past.shape[1:]):
        column = past[:, h, n]
        if len(outcomes := column[torch.isfinite(column)].numpy()):
            quantiles[h, n] = np.quantile(outcomes, config.levels)
    variance = past.square().nanmean(0)
    return Prediction(torch.from_numpy(quantiles).expand(rows, -1, -1, -1), variance.expand(rows, -1, -1))


def ewma(halflife: float) -> Baseline:
    """RiskMetrics: variance h v_t with v_t exponentially weighted."""

    def baseline(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
        v = riskmetrics_variance(_returns(inputs.prices, config), halflife)  # (T, N)
        return _scaled(inputs.prices, start, torch.tensor(config.horizons)[:, None] * v[:, None, :], config)

    return baseline


def garch(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
    """GARCH(1,1)-t of each symbol, fitted by `arch` on the past; the variance is updated on every later row.

    The fit to weekly and monthly prices leaves out returns of zero: a price that stands for weeks was set, not traded,
    and where many do, the t likelihood has its maximum at the bounds of omega, of alpha + beta and of the degrees of
    freedom, with a variance of nearly zero. That zeros are missing values is the proposal of Sucarrat and Escribano
    (2018), Estimation of log-GARCH models in the presence of zero returns, European Journal of Finance 24(10).
    """
    returns = _returns(inputs.prices, config)
    traded = returns[:start] if config.frequency == "daily" else returns[:start].where(returns[:start] != 0, torch.nan)
    parameters = torch.stack([_arch_parameters(column) for column in traded.T])
    fitted = torch.isfinite(parameters).all(-1)  # (N,)
    omega, alpha, beta = torch.where(fitted[:, None], parameters, 0.0).unbind(-1)
    initial = torch.where(fitted, returns[:start].square().nanmean(0), 0.0)
    own = own_rows(returns[None])
    variance = garch_variance(own.returns[0], omega, alpha, beta, initial=initial)
    step = torch.where(fitted, variance.gather(0, own.counts[0]), torch.nan)  # of the row after each row
    total, sums = torch.zeros_like(step), []
    for day in range(1, config.horizons[-1] + 1):
        total = total + step
        step = omega + (alpha + beta) * step
        if day in config.horizons:
            sums.append(total)
    return _scaled(inputs.prices, start, torch.stack(sums, 1), config)


def har(inputs: ModelInputs, start: int, config: HarConfig) -> Prediction:
    """HAR mix of EWMA variances and the long-run variance by non-negative least squares, without GARCH and rolls."""
    prices = inputs.prices
    model = Har(prices.shape[1], config)
    terms = model.variance_terms(model.adjust_rolls(ModelInputs(prices[None])))[0][
        ..., : len(config.halflives) + 1
    ].detach()
    past = targets(prices[:start], config.horizons)
    columns = []
    for i, h in enumerate(config.horizons):
        c = fit_mix(pool_rows(terms[:start, i], past[:, i], h, scale=len(config.halflives) - 1))
        columns.append(h * (terms[:, i] * c).sum(-1))
    return _scaled(prices, start, torch.stack(columns, 1), config)


def baselines(frequency: Frequency = "daily") -> dict[str, Baseline]:
    """Models that a backtest compares with, by name; the half-lives of the EWMA variances depend on the frequency.

    >>> list(baselines("monthly"))
    ['unconditional', 'ewma', 'ewma3', 'garch', 'har']
    """
    decay, quarter = RISKMETRICS[frequency], QUARTER[frequency]
    return {
        "unconditional": unconditional,
        "ewma": ewma(float(np.log(0.5) / np.log(decay))),
        f"ewma{quarter}": ewma(quarter),
        "garch": garch,
        "har": har,
    }


def _returns(prices: Tensor, config: HarConfig) -> Tensor:
    # capped like the returns of the model, so that a single extreme day does not decide a comparison
    return Har(prices.shape[1], config).returns(prices)


def _scaled(prices: Tensor, start: int, variance: Tensor, config: HarConfig) -> Prediction:
    """Quantiles of variances (T, H, N), on the rows after the warm-up, as the model has them."""
    warm = _returns(prices, config).isfinite().cumsum(0) >= config.warmup  # (T, N)
    variance = torch.where(warm.unsqueeze(1), variance.clamp(min=config.floor), torch.nan)
    scale = variance.sqrt()
    z = standard_quantiles(targets(prices[:start], config.horizons) / scale[:start], config.levels, symmetry=0.0)
    return Prediction(scale[start:, ..., None] * z[:, None, :], variance[start:])


def _arch_parameters(returns: Tensor) -> Tensor:  # (T,) -> omega, alpha, beta; NaN with too few returns
    r = returns[torch.isfinite(returns)].numpy()
    if len(r) < MIN_RETURNS:
        return torch.full((3,), torch.nan, dtype=returns.dtype)
    with extra("forecast"):
        from arch import arch_model

    model = arch_model(100 * r, mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False)
    omega, alpha, beta, _ = model.fit(disp="off", show_warning=False).params.to_numpy()
    return torch.tensor([omega / 1e4, alpha, beta], dtype=returns.dtype)

"""Portfolios without learned parameters, the baselines of the model. Row t uses returns up to row t."""

import warnings

import numpy as np
import torch
from torch import Tensor

from torchcommodity.ops import rolling_sum

TREND_ROWS = 252  # twelve months
REBALANCE_ROWS = 21  # rows between estimates of minimum variance
ESTIMATION_ROWS = 252  # rows per estimate


def equal_weight(
    investable: Tensor,  # (..., T, N) bool
) -> Tensor:  # (..., T, N)
    """Equal weights for all investable assets, with sum 1.

    Args:
        investable: assets that may be held.

    References:
        DeMiguel, Garlappi, Uppal (2009). Optimal versus naive diversification. Review of Financial Studies 22(5).
        doi:10.1093/rfs/hhm075.

    Example:
        >>> equal_weight(torch.tensor([[True, False], [True, True]]))
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000]])
    """
    return _normalize(investable.to(torch.get_default_dtype()))


def inverse_volatility(
    investable: Tensor,  # (..., T, N) bool
    volatility: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Weights proportional to 1 / volatility: equal risk contributions for uncorrelated assets.

    Args:
        investable: assets that may be held.
        volatility: volatility per row, > 0.

    References:
        Kirby, Ostdiek (2012). It's all in the timing. J. Financial and Quantitative Analysis 47(2).
        doi:10.1017/S0022109012000117.

    Example:
        >>> inverse_volatility(torch.tensor([[True, True]]), torch.tensor([[0.01, 0.03]]))
        tensor([[0.7500, 0.2500]])
    """
    return _normalize(torch.where(investable, 1 / volatility, 0.0))


def time_series_momentum(
    investable: Tensor,  # (..., T, N) bool
    volatility: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    *,
    long_short: bool = True,
    window: int = TREND_ROWS,
) -> Tensor:  # (..., T, N)
    """Long assets that rose over the last `window` rows, short those that fell, at inverse volatility.

    Args:
        investable: assets that may be held.
        volatility: volatility per row, > 0.
        returns: log-returns, roll-adjusted; NaN is ignored.
        long_short: if False, assets that fell have weight 0.
        window: rows of the trend.

    References:
        Moskowitz, Ooi, Pedersen (2012). Time series momentum. J. Financial Economics 104(2).
        doi:10.1016/j.jfineco.2011.11.003.

    Example:
        >>> returns = torch.tensor([[0.01, -0.02], [0.02, -0.01]])
        >>> time_series_momentum(torch.ones(2, 2).bool(), torch.full((2, 2), 0.02), returns, window=2)[-1]
        tensor([ 0.5000, -0.5000])
    """
    direction = rolling_sum(returns, window, min_periods=1).sign()
    direction = direction if long_short else direction.clamp(min=0)
    return _normalize(torch.where(investable & ~direction.isnan(), direction / volatility, 0.0))


def minimum_variance(
    investable: Tensor,  # (T, N) bool
    returns: Tensor,  # (T, N)
    *,
    first_row: int = 0,
    long_short: bool = False,
) -> Tensor:  # (T, N)
    """Weights of minimum variance that sum to 1, from the sample covariance of the last 252 rows, every 21 rows.

    Args:
        investable: assets that may be held.
        returns: simple returns, roll-adjusted. Estimates ignore rows on which an investable asset has no return.
        first_row: first row with weights; earlier rows are 0.
        long_short: weights in [-1, 1] instead of [0, 1].

    Raises:
        ModuleNotFoundError: skfolio, of the extra `portfolio`, is not installed.

    References:
        Markowitz (1952). Portfolio selection. J. Finance 7(1). doi:10.2307/2975974. Solved by skfolio
        (Nicolini, Manzi, Delatte 2025, arXiv:2507.04176).
    """
    from skfolio.optimization import MeanRisk

    min_weight, weights = -1.0 if long_short else 0.0, torch.zeros_like(returns)
    for row in range(first_row, len(returns), REBALANCE_ROWS):
        assets = investable[row]
        sample = returns[max(0, row + 1 - ESTIMATION_ROWS) : row + 1, assets]
        sample = sample[sample.isfinite().all(-1)]
        if not assets.any() or len(sample) <= assets.sum():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # from the solver
            estimator = MeanRisk(min_weights=min_weight).fit(sample.numpy().astype(np.float64))
        estimate = torch.zeros_like(returns[0])
        estimate[assets] = torch.as_tensor(estimator.weights_).to(estimate)
        weights[row : row + REBALANCE_ROWS] = estimate
    return torch.where(investable, weights, 0.0)


def _normalize(weights: Tensor) -> Tensor:
    """Scale absolute weights to sum 1; zero rows stay zero."""
    return weights / weights.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)

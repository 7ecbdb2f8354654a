"""Portfolios without learned parameters, the baselines of the model. Row t uses returns up to row t."""

import torch
from torch import Tensor

from torchcommodity.ops import rolling_sum

TREND_ROWS = 252  # twelve months


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


def _normalize(weights: Tensor) -> Tensor:
    """Scale absolute weights to sum 1; zero rows stay zero."""
    return weights / weights.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)

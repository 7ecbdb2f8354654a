"""Portfolios without parameters to learn: what any model must beat. Row t uses returns up to row t."""

import torch
from torch import Tensor

from torchcommodity.ops import rolling_sum

MONTHS = 252  # rows of the trend of time-series momentum: twelve months


def equal_weight(
    known: Tensor,  # (..., T, N) bool
) -> Tensor:  # (..., T, N)
    """The same weight for every asset that is known.

    References:
        DeMiguel, Garlappi, Uppal (2009). Optimal versus naive diversification. Review of Financial Studies 22(5).
        doi:10.1093/rfs/hhm075.

    Example:
        >>> equal_weight(torch.tensor([[True, False], [True, True]]))
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000]])
    """
    return _to_sum_one(known.to(torch.get_default_dtype()))


def inverse_volatility(
    known: Tensor,  # (..., T, N) bool
    volatility: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Weights that rise as the volatility falls: the same risk for every asset, were they uncorrelated.

    References:
        Kirby, Ostdiek (2012). It's all in the timing. J. Financial and Quantitative Analysis 47(2).
        doi:10.1017/S0022109012000117.

    Example:
        >>> inverse_volatility(torch.tensor([[True, True]]), torch.tensor([[0.01, 0.03]]))
        tensor([[0.7500, 0.2500]])
    """
    return _to_sum_one(torch.where(known, 1 / volatility, 0.0))


def time_series_momentum(
    known: Tensor,  # (..., T, N) bool
    volatility: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    *,
    long_short: bool = True,
    window: int = MONTHS,
) -> Tensor:  # (..., T, N)
    """Long what rose over the last twelve months, short what fell (or nothing of it), at inverse volatility.

    Args:
        known: which assets may be bought.
        volatility: per row.
        returns: log-returns, roll-adjusted; NaN takes no part.
        long_short: False holds nothing of what fell.
        window: rows over which the trend is taken.

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
    return _to_sum_one(torch.where(known & ~direction.isnan(), direction / volatility, 0.0))


def _to_sum_one(weights: Tensor) -> Tensor:
    """Absolute weights that sum to 1; nothing stays nothing."""
    return weights / weights.abs().sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)

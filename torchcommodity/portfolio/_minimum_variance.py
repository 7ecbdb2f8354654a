"""Minimum-variance portfolio by skfolio, re-estimated monthly."""

import warnings

import numpy as np
import torch
from torch import Tensor

REBALANCE_ROWS = 21  # rows between estimates
ESTIMATION_ROWS = 252  # rows per estimate


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

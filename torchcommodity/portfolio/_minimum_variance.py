"""Minimum variance by skfolio: the portfolio of the textbooks, estimated anew every month."""

import warnings

import numpy as np
import torch
from torch import Tensor

MONTH = 21  # rows from one estimate to the next
YEAR = 252  # rows of one estimate


def minimum_variance(
    known: Tensor,  # (T, N) bool
    returns: Tensor,  # (T, N)
    *,
    first: int = 0,
    long_short: bool = False,
) -> Tensor:  # (T, N)
    """Weights of least variance that sum to 1, from the sample covariance of the last 252 rows, every 21 rows.

    Args:
        known: which assets may be bought.
        returns: simple returns, roll-adjusted. A row in which a known asset has none is left out of its estimate.
        first: the row from which on weights are wanted; rows before it have none.
        long_short: weights in [-1, 1] instead of [0, 1].

    Raises:
        ModuleNotFoundError: skfolio is not installed; the extra `portfolio` has it.

    References:
        Markowitz (1952). Portfolio selection. J. Finance 7(1). doi:10.2307/2975974. Solved by skfolio
        (Nicolini, Manzi, Delatte 2025, arXiv:2507.04176).
    """
    from skfolio.optimization import MeanRisk

    least, found = -1.0 if long_short else 0.0, torch.zeros_like(returns)
    for row in range(first, len(returns), MONTH):
        chosen = known[row]
        past = returns[max(0, row + 1 - YEAR) : row + 1, chosen]
        past = past[past.isfinite().all(-1)]
        if not chosen.any() or len(past) <= chosen.sum():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the solver's own making
            fitted = MeanRisk(min_weights=least).fit(past.numpy().astype(np.float64))
        weights = torch.zeros_like(returns[0])
        weights[chosen] = torch.as_tensor(fitted.weights_).to(weights)
        found[row : row + MONTH] = weights
    return torch.where(known, found, 0.0)

"""Standardized residuals of a forecaster's GARCH variances, the joint shocks that a simulation resamples."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.models import Har, own_rows
from torchcommodity.ops import garch_variance


class Residuals(NamedTuple):
    """Joint residuals of the past, and the variance from which a simulation starts."""

    rows: Tensor  # (R, N) residuals with mean 0 and variance 1, of the rows on which every symbol has one
    variance: Tensor  # (N,) variance of the next return
    warm_rows: int  # rows of the panel after the warm-up of every symbol


def standardized_residuals(har: Har, returns: Tensor) -> Residuals:  # (T, N)
    """Divide the returns by the GARCH volatility that the rows before forecast, and keep the complete rows.

    A symbol's variance runs over its own returns, so that a holiday of one market changes nothing. The residuals of a
    day stay together, which keeps their dependence; hence a row on which a symbol has none is left out: before its
    warm-up is over, without a price, or with a contract roll.

    Args:
        har: fitted econometric part of a forecaster.
        returns: capped log-returns, NaN where missing or rolled.
    """
    own = own_rows(returns[None])
    variance = garch_variance(own.returns, *(x.to(returns) for x in har.garch_parameters()))[0]
    own_residuals, counts = own.returns[0] / variance.sqrt(), own.counts[0]
    # the variance at index k depends on the first k returns, and return k - 1 is that of the row with count k
    residuals = torch.where(returns.isfinite(), own_residuals.gather(0, (counts - 1).clamp(min=0)), torch.nan)
    warm = (counts > har.config.warmup).all(1)
    rows = residuals[warm & residuals.isfinite().all(1)]
    if len(rows) > 1:
        rows = (rows - rows.mean(0)) / rows.std(0, correction=0)
    return Residuals(rows, variance.gather(0, counts[-1:])[0], int(warm.sum()))

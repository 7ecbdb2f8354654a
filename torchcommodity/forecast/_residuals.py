"""Standardized residuals of a forecaster's GARCH variances, the joint shocks that a simulation resamples."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.models import Har, own_rows
from torchcommodity.ops import garch_variance


class Residuals(NamedTuple):
    """Residuals of the past, and the variance from which a simulation starts."""

    rows: Tensor  # (W, N) of the rows after the warm-up; NaN where a symbol has no return
    variance: Tensor  # (N,) variance of the next return

    @property
    def complete(self) -> Tensor:  # (W,) bool
        """Rows on which every symbol has a residual."""
        return self.rows.isfinite().all(1)


def standardized_residuals(har: Har, returns: Tensor) -> Residuals:  # (T, N)
    """Divide the returns by the GARCH volatility that the rows before forecast; mean 0 and variance 1 per symbol.

    A symbol's variance runs over its own returns, so that a holiday of one market changes nothing.

    Args:
        har: fitted econometric part of a forecaster.
        returns: capped log-returns, NaN where missing or rolled.
    """
    own = own_rows(returns[None])
    variance = garch_variance(own.returns, *(x.to(returns) for x in har.garch_parameters()))[0]
    own_residuals, counts = own.returns[0] / variance.sqrt(), own.counts[0]
    # the variance at index k depends on the first k returns, and return k - 1 is that of the row with count k
    residuals = torch.where(returns.isfinite(), own_residuals.gather(0, (counts - 1).clamp(min=0)), torch.nan)
    rows = residuals[(counts > har.config.warmup).all(1)]
    rows = rows - rows.nanmean(0)
    return Residuals(rows / rows.square().nanmean(0).sqrt(), variance.gather(0, counts[-1:])[0])

"""Fit the momentum of monthly prices in closed form: one ridge regression of each horizon, pooled over symbols."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchcommodity.models import Momentum

RIDGE = 10.0  # added to the sums of squares of the features
PRIOR = 2.0  # F at which half of the fitted change is expected
MIN_SYMBOLS = 20  # what few symbols have in common is no rule: nine metals gain before 2010 and lose after it
LARGEST = 4.0  # sigma: an outcome beyond it counts as much


def fit_momentum(momentum: Momentum, features: Sequence[Tensor], left: Tensor, variance: Tensor) -> Tensor:  # (T, H, N)
    """Fit in place on all rows.

    With u the outcome that is left over sigma_h = sqrt(h v), within +-4, and x the features over their root mean
    squares, each row weighs w = sum u^2 / sum_t (sum_n u)^2 / h: the symbols of a row move together, and outcomes of
    h rows overlap. Then beta = (w X'X + 10)^-1 w X'u, F = w beta'X'X beta / (f Var(u - X beta)) with f features, and
    beta F / (F + 2) are the coefficients. They are zero with fewer than 20 symbols.

    Args:
        momentum: the module; its buffers are overwritten.
        features: f of (T, H or 1, N), of `Momentum.features`.
        left: (T, H, N) outcomes less what else is expected; NaN is ignored.
        variance: (T, N) slow variance per row; NaN during warm-up.

    Returns:
        m, as `Momentum` gives it after the fit.
    """
    if left.shape[2] < MIN_SYMBOLS:
        momentum.coefficients.zero_()
        return torch.zeros_like(left)
    for i, h in enumerate(momentum.config.horizons):
        u = (left[:, i] / (h * variance).sqrt()).clamp(-LARGEST, LARGEST)
        valid = u.isfinite()
        u = torch.where(valid, u, 0.0)
        by_feature = torch.stack([x.expand_as(left)[:, i] for x in features], -1) * valid.unsqueeze(-1)  # (T, N, F)
        rows = valid.sum().clamp(min=1)
        rms = (by_feature.square().sum((0, 1)) / rows).sqrt()
        momentum.rms[i] = torch.where(rms > 0, rms, 1.0)
        x = momentum.bounded(by_feature, momentum.rms[i]).flatten(0, 1)
        weight = (u.square().sum() / u.sum(1).square().sum()).clamp(max=1.0).nan_to_num() / h
        squares, products = weight * (x.T @ x), weight * (x.T @ u.flatten())
        beta = torch.linalg.solve(squares + RIDGE * torch.eye(len(squares)).to(squares), products)
        error = (u - (x @ beta).view_as(u)).square().sum() / rows
        f = (beta @ squares @ beta) / (len(beta) * error)
        momentum.coefficients[i] = (beta * f / (f + PRIOR)).nan_to_num()
    return momentum.expected(tuple(x[None] for x in features), variance[None])[0]

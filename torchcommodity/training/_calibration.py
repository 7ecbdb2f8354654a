"""The econometric part of a forecaster, fitted on the past: GARCH parameters, the HAR mix, the standardized quantiles.

The past is always a prefix of the rows. A target that ends after the last row of the prefix is NaN and takes no part,
so that a prefix cut where a test block starts has its embargo of one horizon by construction.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from torchcommodity.losses import qlike
from torchcommodity.models import Har
from torchcommodity.ops import garch_variance, log_returns
from torchcommodity.training._inputs import ModelInputs


def targets(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N)
    """What a forecast at row t meets: ln of the last positive price at or before t + h over the positive price at t.

    NaN where row t has no positive price or row t + h lies beyond the last row.
    """
    returns = log_returns(prices)
    path = torch.where(torch.isfinite(returns), returns, 0.0).cumsum(0)
    known = torch.isfinite(prices) & (prices > 0)
    ahead = torch.full((len(prices), len(horizons), prices.shape[1]), torch.nan, dtype=prices.dtype)
    for i, h in enumerate(horizons):
        rows = max(len(prices) - h, 0)
        ahead[:rows, i] = torch.where(known[:rows], path[h:] - path[:rows], torch.nan)
    return ahead


def calibrate(har: Har, quotes: ModelInputs, symmetry: float) -> None:
    """Fit the econometric part in place on all rows of `quotes`: first GARCH, then the mix, the quantiles."""
    returns, shift, unsure = har.without_rolls(*quotes.batch())
    fit_garch(har, returns[0])
    with torch.no_grad():
        terms = har.terms(returns, unsure)
        ahead = targets(quotes.prices, har.config.horizons) - shift[0]
        for i, h in enumerate(har.config.horizons):
            har.mix[i] = fit_mix(terms[0, :, i], ahead[:, i], h, scale=len(har.config.halflives) - 1)
        standard = ahead / har.mixed(terms)[0].sqrt()
        har.z.copy_(standard_quantiles(standard, har.config.levels, symmetry))


def fit_garch(har: Har, returns: Tensor) -> None:  # (T, N)
    """Gaussian quasi-likelihood of GARCH(1,1) for all assets at once, the variance targeted at the mean squared return.

    An asset without returns so far gets the mean variance of the others and keeps its start parameters.
    """
    squared = returns.square()
    variance = squared.nanmean(0)
    har.long_run.copy_(torch.where(variance > 0, variance, variance.nanmean()))
    parameters = [har.persistence, har.reaction]
    optimizer = torch.optim.LBFGS(parameters, max_iter=40, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = qlike(garch_variance(returns, *har.garch()), squared)
        torch.autograd.backward(value, inputs=parameters)
        return value

    optimizer.step(loss)
    optimizer.zero_grad()


def fit_mix(
    terms: Tensor,  # (T, N, K)
    ahead: Tensor,  # (T, N)
    horizon: int,
    *,
    scale: int,
) -> Tensor:  # (K,)
    """Coefficients c >= 0 of ahead^2 / h = sum_k c_k v_k by least squares, pooled over assets.

    Both sides are divided by term `scale`, a slow variance, so that calm and wild times weigh alike.
    """
    use = torch.isfinite(ahead) & torch.isfinite(terms).all(-1)
    slow = terms[use][:, scale]
    right = ahead[use].square() / horizon / slow
    coefficients, _ = nnls((terms[use] / slow[:, None]).numpy(), right.numpy())
    return torch.from_numpy(coefficients)


def standard_quantiles(
    standard: Tensor,  # (T, H, N) targets over their scale
    levels: Sequence[float],
    symmetry: float,
) -> Tensor:  # (H, Q)
    """Empirical quantiles pooled over rows and assets, mixed with their mirror image by `symmetry`.

    Q(tau) = (1 - w) q(tau) + w (q(tau) - q(1 - tau)) / 2. At w = 1 no drift is left: that of the past is a poor guide.
    """
    rows = standard.transpose(0, 1).flatten(1).numpy()
    found = np.stack([np.quantile(row[np.isfinite(row)], [*levels, *(1 - np.array(levels))]) for row in rows])
    q, mirrored = np.split(found, 2, axis=1)
    return torch.from_numpy((1 - symmetry) * q + symmetry * (q - mirrored) / 2)

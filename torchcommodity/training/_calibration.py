"""Calibrate the econometric part of a forecaster: GARCH parameters, HAR coefficients, standardized quantiles.

Training rows are always the first rows of a panel. A target that ends after the last training row is NaN and ignored,
so training rows up to the first test row imply an embargo of one horizon.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchcommodity.losses import qlike
from torchcommodity.models import Har, own_rows
from torchcommodity.ops import garch_variance
from torchcommodity.training._inputs import ModelInputs
from torchcommodity.training._targets import targets


def calibrate(har: Har, inputs: ModelInputs, symmetry: float) -> None:
    """Fit the econometric part in place on all rows of `inputs`: GARCH, HAR coefficients, quantiles.

    Args:
        har: the module; its buffers and GARCH parameters are overwritten.
        inputs: training rows only.
        symmetry: weight of the mirrored quantiles in [0, 1], see `standard_quantiles`.

    Raises:
        ValueError: no price changes over one of the horizons.
    """
    returns, shift, unpriced_rolls = har.adjust_rolls(*inputs.batch())
    fit_garch(har, returns[0])
    with torch.no_grad():
        terms = har.variance_terms(returns, unpriced_rolls)
        target = targets(inputs.prices, har.config.horizons) - shift[0]
        for i, h in enumerate(har.config.horizons):
            har.mix[i] = fit_mix(terms[0, :, i], target[:, i], h, scale=len(har.config.halflives) - 1)
        standard = target / har.mix_variances(terms)[0].sqrt()
        empty = ~torch.isfinite(standard).any(2).any(0)  # (H,)
        if rows := [h for h, is_empty in zip(har.config.horizons, empty.tolist()) if is_empty]:
            raise ValueError(f"fit: prices must change over every horizon; got no change over {rows[0]} rows")
        har.z.copy_(standard_quantiles(standard, har.config.levels, symmetry))


def fit_garch(har: Har, returns: Tensor) -> None:  # (T, N)
    """Gaussian quasi-maximum likelihood of GARCH(1,1), all assets at once, with variance targeting.

    The long-run variance is the mean squared return. An asset without returns gets the mean variance of the others and
    keeps its initial parameters.
    """
    returns = own_rows(returns[None]).returns[0]  # a row on which only other symbols trade is none of a symbol's rows
    squared = returns.square()
    variance = squared.nanmean(0)
    har.long_run.copy_(torch.where(variance > 0, variance, variance.nanmean()))
    parameters = [har.persistence, har.reaction]
    optimizer = torch.optim.LBFGS(parameters, max_iter=40, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = qlike(garch_variance(returns, *har.garch_parameters()), squared)
        torch.autograd.backward(loss, inputs=parameters)
        return loss

    optimizer.step(closure)
    optimizer.zero_grad()


def fit_mix(
    terms: Tensor,  # (T, N, K)
    target: Tensor,  # (T, N)
    horizon: int,
    *,
    scale: int,
) -> Tensor:  # (K,)
    """Coefficients c >= 0 of target^2 / h = sum_k c_k v_k by non-negative least squares, pooled over assets.

    Both sides are divided by term `scale`, a slow variance, so that calm and volatile periods have equal weight.

    Args:
        terms: variances per row v_k; NaN during warm-up.
        target: cumulative log-returns over the horizon; NaN is ignored.
        horizon: h, rows.
        scale: index of the term that both sides are divided by.
    """
    from scipy.optimize import nnls

    valid = torch.isfinite(target) & torch.isfinite(terms).all(-1)
    slow = terms[valid][:, scale]
    realized = target[valid].square() / horizon / slow
    coefficients, _ = nnls((terms[valid] / slow[:, None]).numpy(), realized.numpy())
    return torch.from_numpy(coefficients)


def standard_quantiles(
    standard: Tensor,  # (T, H, N) targets over their scale
    levels: Sequence[float],
    symmetry: float,
) -> Tensor:  # (H, Q)
    """Empirical quantiles pooled over rows and assets, averaged with their mirror image with weight `symmetry`.

    Q(tau) = (1 - w) q(tau) + w (q(tau) - q(1 - tau)) / 2. w = 1 removes the past drift, which is a poor
    predictor. NaN targets are ignored.
    """
    samples = standard.transpose(0, 1).flatten(1).numpy()
    pairs = np.stack([np.quantile(x[np.isfinite(x)], [*levels, *(1 - np.array(levels))]) for x in samples])
    q, mirrored = np.split(pairs, 2, axis=1)
    return torch.from_numpy((1 - symmetry) * q + symmetry * (q - mirrored) / 2)

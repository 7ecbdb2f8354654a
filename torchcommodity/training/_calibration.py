"""Calibrate the econometric part of a forecaster: GARCH parameters, HAR coefficients, standardized quantiles.

Training rows are always the first rows of a panel. A target that ends after the last training row is NaN and ignored,
so training rows up to the first test row imply an embargo of one horizon.
"""

import inspect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import MIN_RANGE_SHARE, range_share, targets
from torchcommodity.losses import qlike
from torchcommodity.models import Har, HarConfig, ModelInputs, own_rows, scale_inputs
from torchcommodity.ops import garch_variance
from torchcommodity.training._location import fit_location

MIN_ROWS = 250  # rows of an asset above which the quantiles have a shape of its own
RHO = 0.25  # first autocorrelation of the averages of a random walk
RHO_PRIOR = 240.0  # returns that it counts for: twenty years of months
MAX_RHO = 0.45  # at 1/2 the moving average is not invertible


def calibrate(har: Har, inputs: ModelInputs, symmetry: float) -> None:
    """Fit the econometric part in place on all rows of `inputs`: GARCH, location, HAR coefficients, quantiles.

    Args:
        har: the module; its buffers and GARCH parameters are overwritten, but for its price scale.
        inputs: training rows only.
        symmetry: weight of the mirrored quantiles in [0, 1], see `standard_quantiles`.

    Raises:
        ValueError: no price changes over one of the horizons.
    """
    if inputs.bars is not None:
        har.has_ranges.copy_(range_share(inputs.prices, inputs.bars) >= MIN_RANGE_SHARE)
        if har.scale is not None:
            har.has_ranges.logical_and_(har.scale.isnan())
    inputs = scale_inputs(inputs, har.scale)
    batch = inputs.unsqueeze()
    adjusted = har.adjust_rolls(batch)
    if har.config.averages and inputs.averages is not None:
        har.theta.copy_(moving_average(adjusted.returns[0], inputs.averages))
        adjusted = har.adjust_rolls(batch)
    fit_garch(har, adjusted.shocks[0])
    with torch.no_grad():
        terms, config = har.variance_terms(adjusted), har.config
        target = targets(inputs.prices, config.horizons) - adjusted.shift[0]
        if har.location is not None:
            trends = har.trends(adjusted.returns, len(target))
            target -= fit_location(har.location, inputs, target, har.slow_variance(terms)[0], trends[0])
        for i, h in enumerate(config.horizons):
            pooled = pool_rows(terms[0, :, i], target[:, i], h, scale=len(config.halflives) - 1)
            weight, extra = 1 / (1 + config.mix_prior / h), len(config.extra_terms)
            har.mix[i] = shrink_mix(fit_mix(pooled), pooled, weight, extra)
        standard = target / har.mix_variances(terms)[0].sqrt()
        empty = ~torch.isfinite(standard).any(2).any(0)  # (H,)
        if rows := [h for h, is_empty in zip(config.horizons, empty.tolist()) if is_empty]:
            raise ValueError(f"fit: prices must change over every horizon; got no change over {rows[0]} rows")
        har.z.copy_(own_quantiles(standard, config, symmetry))


def moving_average(returns: Tensor, averages: Tensor) -> Tensor:  # (T, N), (N,) bool -> (N,)
    """Coefficient theta of r_t = e_t + theta e_{t-1} for each symbol; zero where prices are no averages.

    The first autocorrelation is the sample's, drawn toward that of the averages of a random walk:
    rho = (n rho_n + 240 / 4) / (n + 240), and theta solves rho = theta / (1 + theta^2). A price that stands for
    months or that is set in advance has another memory than a traded one, which its own returns tell.

    Args:
        returns: log-returns; NaN = missing.
        averages: whether the prices of a symbol are averages.

    References:
        Working (1960). Note on the correlation of first differences of averages in a random chain. Econometrica 28(4).
        doi:10.2307/1907574.

    >>> theta = moving_average(torch.full((3, 2), torch.nan), torch.tensor([True, False]))
    >>> theta.round(decimals=3)
    tensor([0.2680, 0.0000])
    """
    own = own_rows(returns[None]).returns[0]
    centered = own - own.nanmean(0)
    products = centered[1:] * centered[:-1]
    n, squares = products.isfinite().sum(0), centered.square().nansum(0)
    sample = torch.where(squares > 0, products.nansum(0) / squares.clamp(min=torch.finfo(squares.dtype).tiny), RHO)
    rho = ((n * sample + RHO_PRIOR * RHO) / (n + RHO_PRIOR)).clamp(-MAX_RHO, MAX_RHO)
    theta = 2 * rho / (1 + (1 - 4 * rho.square()).sqrt())
    return torch.where(averages, theta, 0.0)


def fit_garch(har: Har, shocks: Tensor) -> None:  # (T, N)
    """Gaussian quasi-maximum likelihood of GARCH(1,1), all assets at once, with variance targeting.

    The long-run variance is the mean squared shock. An asset without returns gets the mean variance of the others and
    keeps its initial parameters.
    """
    shocks = own_rows(shocks[None]).returns[0]  # a row on which only other symbols trade is none of a symbol's rows
    squared = shocks.square()
    variance = squared.nanmean(0)
    har.long_run.copy_(torch.where(variance > 0, variance, variance.nanmean()))
    parameters = [har.persistence, har.reaction]
    optimizer = EagerLBFGS(parameters, max_iter=40, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        har.persistence.grad = har.reaction.grad = None
        loss = qlike(garch_variance(shocks, *har.garch_parameters()), squared)
        torch.autograd.backward(loss, inputs=parameters)
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]  # torch
    har.persistence.grad = har.reaction.grad = None


class EagerLBFGS(torch.optim.LBFGS):
    """LBFGS for a loss in closed form: nothing of it is compiled, so that it does not import Dynamo, for a second."""

    add_param_group = inspect.unwrap(torch.optim.LBFGS.add_param_group)


class PooledRows(NamedTuple):
    """Rows of all assets with a target, relative to a slow variance, so that calm and volatile periods weigh alike."""

    terms: Tensor  # (R, K) v_k / v_slow
    realized: Tensor  # (R,) target^2 / (h v_slow)


def pool_rows(
    terms: Tensor,  # (T, N, K)
    target: Tensor,  # (T, N)
    horizon: int,
    *,
    scale: int,
) -> PooledRows:
    """Regressors and outcomes of the mix of one horizon, pooled over assets.

    Args:
        terms: variances per row v_k; NaN during warm-up.
        target: cumulative log-returns over the horizon; NaN is ignored.
        horizon: h, rows.
        scale: index of the slow term that both sides are divided by.
    """
    valid = torch.isfinite(target) & torch.isfinite(terms.sum(-1))
    terms = terms[valid]
    slow = terms[:, scale]
    return PooledRows(terms / slow[:, None], target[valid].square() / horizon / slow)


def fit_mix(rows: PooledRows) -> Tensor:  # (K,)
    """Coefficients c >= 0 of target^2 / h = sum_k c_k v_k by non-negative least squares."""
    from scipy.optimize import nnls

    coefficients, _ = nnls(rows.terms.numpy(), rows.realized.numpy())
    return torch.from_numpy(coefficients)


def shrink_mix(coefficients: Tensor, rows: PooledRows, weight: float, extra: int = 0) -> Tensor:  # (K,)
    """Draw the coefficients of the variance terms toward equal ones with the mean of the outcomes.

    c <- (1 - w) c + w kappa / K, kappa = mean outcome over mean of the K terms. The last term, the variance of contract
    rolls, keeps its coefficient. The terms are strongly correlated, so that least squares picks a few of them; over a
    long horizon its choice rests on few independent outcomes.

    The `extra` terms before the last one, such as those of covariates, are drawn toward zero, the model without them:
    drawn toward equal ones, a covariate without information would keep a weight that grows with the horizon.
    """
    K = len(coefficients) - 1 - extra
    if len(rows.realized) == 0:
        return coefficients
    equal = rows.realized.mean() / rows.terms[:, :K].mean() / K
    drawn = (1 - weight) * coefficients[:-1]
    drawn[:K] += weight * equal
    return torch.cat([drawn, coefficients[-1:]])


def own_quantiles(standard: Tensor, config: HarConfig, symmetry: float) -> Tensor:  # (T, H, N) -> (H, N, Q)
    """Quantiles of each asset, drawn toward those pooled over all assets.

    z_n = Q + n_e / (n_e + shape_prior) (Q_n - Q) with n_e = rows / h, the number of outcomes that do not overlap. An
    asset with no more than 250 rows has the pooled quantiles.
    """
    pooled = standard_quantiles(standard, config.levels, symmetry)
    rows = standard.isfinite().sum(0)  # (H, N)
    outcomes = rows / torch.tensor(config.horizons)[:, None]
    weight = torch.where(rows > MIN_ROWS, outcomes / (outcomes + config.shape_prior), 0.0)
    own = torch.stack([standard_quantiles(x[..., None], config.levels, symmetry) for x in standard.unbind(-1)], 1)
    return pooled[:, None] + torch.where(weight[..., None] > 0, weight[..., None] * (own - pooled[:, None]), 0.0)


def standard_quantiles(
    standard: Tensor,  # (T, H, N) targets over their scale
    levels: Sequence[float],
    symmetry: float,
) -> Tensor:  # (H, Q)
    """Empirical quantiles pooled over rows and assets, averaged with their mirror image with weight `symmetry`.

    Q(tau) = (1 - w) q(tau) + w (q(tau) - q(1 - tau)) / 2. w = 1 removes the past drift, which is a poor
    predictor. NaN targets are ignored; NaN without any target.
    """
    samples = standard.transpose(0, 1).flatten(1).numpy()
    both = [*levels, *(1 - np.array(levels))]
    finite = [x[np.isfinite(x)] for x in samples]
    pairs = np.stack([np.quantile(x, both) if len(x) else np.full(len(both), np.nan) for x in finite])
    q, mirrored = np.split(pairs, 2, axis=1)
    return torch.from_numpy((1 - symmetry) * q + symmetry * (q - mirrored) / 2)

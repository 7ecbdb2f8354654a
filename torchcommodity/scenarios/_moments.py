"""Initialization of the generator by the moments of ln|r|, as a stochastic-volatility model.

With r = sigma z and Gaussian z, ln|r| = ln sigma + ln|z|: beyond lag 0 its autocovariances are those of ln sigma, and a
sum of AR(1) has the autocovariance sum_k v_k phi_k^lag. The loadings across assets come from smoothed ln|r|.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity._extras import extra
from torchcommodity.models import ScenarioGenerator
from torchcommodity.ops import ewm_mean, riskmetrics_variance

LAGS = np.arange(1, 127)  # rows
YEAR, MONTH = 252, 21  # rows
FAST_PHI = 0.5 ** (1 / 63)  # of a half-life of a quarter
SMOOTHING, SMOOTHING_WARMUP = 21.0, 21  # half-life in rows, and rows before the result is used
FLOOR = 0.05  # of a standard deviation, so that ln|r| is finite for constant prices

Array = np.ndarray[Any, np.dtype[np.float64]]


@torch.no_grad()
def initialize_by_moments(generator: ScenarioGenerator, returns: Tensor) -> None:  # (R, N)
    """Set level, mean, loadings and correlation factor in place; the output of the network stays zero.

    References:
        Taylor (1986). Modeling Financial Time Series, chapter 3: the moments of ln|r|.
        Harvey, Ruiz, Shephard (1994). Multivariate stochastic variance models. Review of Economic Studies 61(2).
        doi:10.2307/2297980.
    """
    returns = returns.double()
    size = ((returns - returns.mean(0)).abs() / returns.std(0)).clamp(min=FLOOR).log()
    phi = generator.phi.double().numpy()
    variance = torch.from_numpy(_component_variances(size.numpy(), phi, _typical_kurtosis(returns)))  # (K, N)
    common = torch.linalg.cholesky(_correlation(ewm_mean(size - size.mean(0), halflife=SMOOTHING)))
    # standardized, so that volatile years do not dominate the correlation
    standardized = returns[1:] / riskmetrics_variance(returns, SMOOTHING)[:-1].sqrt()
    generator.level.copy_(returns.std(0).log() - variance.sum(0))  # E exp(2 h) = exp(2 var h) for Gaussian h
    generator.mean.copy_(returns.mean(0) / returns.std(0))
    generator.loadings.copy_(variance.sqrt().unsqueeze(-1) * common)
    generator.factor.copy_(torch.linalg.cholesky(_correlation(standardized[SMOOTHING_WARMUP:])))


def _component_variances(size: Array, phi: Array, kurtosis: Array) -> Array:  # (R, N), (K,), (N,) -> (K, N)
    """Variance of each component of ln sigma: slow components from autocovariances, white noise from the kurtosis."""
    with extra("forecast"):
        from scipy.optimize import nnls

    slow, x = phi > 0, size - size.mean(0)
    basis = phi[slow] ** LAGS[:, None]  # (lags, slow components)
    covariance = np.stack([(x[:-k] * x[k:]).mean(0) for k in LAGS])  # (lags, N)
    variance = np.zeros((len(phi), x.shape[1]))
    variance[slow] = np.stack([nnls(basis, column)[0] for column in covariance.T], 1)
    # r = e^h z has kurtosis 3 exp(4 var h); within a year, h varies by its fast components only
    noise = np.log(np.maximum(kurtosis / 3, 1.0)) / 4 - variance[phi < FAST_PHI].sum(0)
    variance[~slow] = np.maximum(noise, 0) / max((~slow).sum(), 1)
    return variance


def _typical_kurtosis(returns: Tensor) -> Array:  # (R, N) -> (N,)
    """Median kurtosis of one-year windows."""
    years = returns.unfold(0, YEAR, MONTH)  # (years, N, YEAR)
    centered = years - years.mean(-1, keepdim=True)
    median: Array = (centered.pow(4).mean(-1) / centered.square().mean(-1).square()).median(0).values.numpy()
    return median


def _correlation(x: Tensor) -> Tensor:  # (R, N) -> (N, N)
    return torch.corrcoef(x.mT).reshape(x.shape[1], -1)

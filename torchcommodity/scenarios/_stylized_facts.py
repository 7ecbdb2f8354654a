"""Stylized facts of windows of returns, and the distance between two sets of windows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity._extras import extra

TAIL_FRACTION = 0.05  # fraction of the largest |r| in the Hill estimator
LAG_BANDS = ((1, 5), (6, 21), (22, 63))  # rows: a week, a month, a quarter
LEVERAGE_LAGS = 10  # rows

Facts = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]


def stylized_facts(
    returns: Tensor,  # (P, T, N)
) -> Facts:  # each (P, K), or (P, N (N - 1) / 2) for pairs
    """Stylized facts of each window, by family; a column is one asset, pair or band of lags.

    | family | facts |
    |---|---|
    | `volatility` | ln of the standard deviation over that of all P windows: variation between windows, not level |
    | `tails` | excess kurtosis, through asinh; Hill's 1 / alpha of the largest 5 % of abs(r) |
    | `autocorrelation` | of r at lag 1, and its mean over lags 2 to 5 |
    | `clustering` | autocorrelation of abs(r) and of r^2, mean over lags 1-5, 6-21 and 22-63 |
    | `leverage` | corr(r_t, r_{t+k}^2), mean over k = 1 to 10 |
    | `cross-correlation` | of r and of abs(r), every pair |

    Args:
        returns: P windows of T > 63 log-returns of N assets, all finite; r is the return minus its window's mean.

    Raises:
        ValueError: another shape, too few rows, or a return that is not finite.

    References:
        Cont (2001). Empirical properties of asset returns: stylized facts and statistical issues. Quantitative
        Finance 1(2). doi:10.1080/713665670.
        Hill (1975). A simple general approach to inference about the tail of a distribution. Annals of Statistics 3(5).

    Example:
        >>> import torch
        >>> facts = stylized_facts(torch.randn(8, 252, 5, generator=torch.Generator().manual_seed(0)))
        >>> {name: fact.shape for name, fact in facts.items()}["cross-correlation"]
        (8, 20)
    """
    min_rows = LAG_BANDS[-1][1] + 1
    if returns.dim() != 3 or returns.shape[1] <= min_rows or not bool(torch.isfinite(returns).all()):
        got = f"{tuple(returns.shape)} with {int((~torch.isfinite(returns)).sum())} values that are not finite"
        raise ValueError(f"stylized_facts: returns must be finite (P, T, N) with T > {min_rows}; got {got}")
    r = returns.double()
    r = r - r.mean(1, keepdim=True)
    size, square = r.abs(), r.square()
    excess_kurtosis = r.pow(4).mean(1) / square.mean(1).square() - 3
    clustering = [_autocorrelation(x, *band) for x in (size, square) for band in LAG_BANDS]
    facts = {
        "volatility": (square.mean(1) / square.mean((0, 1))).log() / 2,
        "tails": torch.cat([excess_kurtosis.asinh(), _hill(size)], -1),
        "autocorrelation": torch.cat([_autocorrelation(r, 1, 1), _autocorrelation(r, 2, 5)], -1),
        "clustering": torch.cat(clustering, -1),
        "leverage": _mean_lagged(r, square, range(1, LEVERAGE_LAGS + 1)),
        "cross-correlation": torch.cat([_pairs(r), _pairs(size)], -1),
    }
    return {name: fact.numpy() for name, fact in facts.items()}


def fact_distances(real: Facts, other: Facts) -> dict[str, float]:
    """Distance between stylized facts of real and other windows: by family, and `total`, the mean over families.

    For each fact, the Wasserstein-1 distance between its distributions over the two sets of windows, in standard
    deviations over the real windows; then the mean over a family. Zero for the same windows; about 0.8 if every window
    of `other` equals the mean.

    Args:
        real, other: results of `stylized_facts`.

    Raises:
        ValueError: families or facts differ.

    Example:
        >>> import torch
        >>> r = torch.randn(8, 252, 5, generator=torch.Generator().manual_seed(0))
        >>> fact_distances(stylized_facts(r), stylized_facts(r))["total"]
        0.0
    """
    with extra("forecast"):
        from scipy.stats import wasserstein_distance

    if {k: v.shape[1] for k, v in real.items()} != {k: v.shape[1] for k, v in other.items()}:
        raise ValueError(f"fact_distances: real and other must have the same facts; got {list(real)} and {list(other)}")
    by_family = {
        name: float(np.mean([wasserstein_distance(a, b) / a.std() for a, b in zip(fact.T, other[name].T)]))
        for name, fact in real.items()
    }
    return by_family | {"total": float(np.mean(list(by_family.values())))}


def abs_autocorrelation(returns: Tensor) -> list[float]:  # (P, T, N)
    """Autocorrelation of abs(r) at lags 1 to 63, mean over windows and assets."""
    size = (returns - returns.mean(1, keepdim=True)).abs()
    return [float(_autocorrelation(size, lag, lag).mean()) for lag in range(1, LAG_BANDS[-1][1] + 1)]


def _hill(size: Tensor) -> Tensor:  # (P, T, N) -> (P, N)
    # mean of ln(x_i / x_k) over the k - 1 sizes above the k-th largest
    k = max(int(TAIL_FRACTION * size.shape[1]), 2)
    top = size.clamp(min=1e-12).topk(k, dim=1).values.log()
    return (top[:, :-1] - top[:, -1:]).mean(1)


def _autocorrelation(x: Tensor, first: int, last: int) -> Tensor:  # (P, T, N) -> (P, N)
    return _mean_lagged(x, x, range(first, last + 1))


def _mean_lagged(x: Tensor, y: Tensor, lags: Sequence[int]) -> Tensor:  # (P, T, N) -> (P, N)
    """Mean over the lags k of corr(x_t, y_{t+k}), with the moments of the whole window."""
    x, y = (z - z.mean(1, keepdim=True) for z in (x, y))
    T, scale = x.shape[1], (x.square().sum(1) * y.square().sum(1)).sqrt()
    return torch.stack([(x[:, : T - k] * y[:, k:]).sum(1) for k in lags]).mean(0) / scale


def _pairs(x: Tensor) -> Tensor:  # (P, T, N) -> (P, N (N - 1) / 2)
    z = x - x.mean(1, keepdim=True)
    z = z / z.square().sum(1, keepdim=True).sqrt()
    row, column = torch.triu_indices(x.shape[-1], x.shape[-1], offset=1)
    return (z.mT @ z)[:, row, column]

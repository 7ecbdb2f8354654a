"""Oracle of the variance recursions: the implementation of the arch package."""

import numpy as np
import torch
from torch import Tensor


def arch_variance(
    process: str,  # class name in arch.univariate
    returns: Tensor,  # (..., T, N)
    backcast: Tensor,  # (..., N), as all that follow
    omega: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
) -> Tensor:
    """Variances (..., T, N), one series at a time; arch accepts no missing returns and starts from a backcast."""
    from arch import univariate

    model = getattr(univariate, process)(1, 1, 1)
    parameters = torch.stack([omega, alpha, gamma, beta], -1).flatten(0, -2).numpy()
    series = returns.transpose(-1, -2).flatten(0, -2).numpy()
    variances = np.empty(series.shape)
    no_bounds = np.tile([0, np.inf], (series.shape[-1], 1))
    for values, r, variance, start in zip(parameters, series, variances, backcast.flatten().numpy()):
        model.compute_variance(values, r, variance, start, no_bounds)
    h: Tensor = torch.from_numpy(variances).unflatten(0, omega.shape)
    return h.transpose(-1, -2)

"""The recursive variances as the package arch computes them: an oracle."""

import numpy as np
import torch
from torch import Tensor


def arch_variance(
    process: str,  # of arch.univariate
    returns: Tensor,  # (..., T, N)
    backcast: Tensor,  # (..., N), and so are the rest
    omega: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
) -> Tensor:
    """arch knows one series at a time, no missing return, and starts from a backcast."""
    from arch import univariate

    model = getattr(univariate, process)(1, 1, 1)
    columns = torch.stack([omega, alpha, gamma, beta], -1).flatten(0, -2).numpy()
    rows = returns.transpose(-1, -2).flatten(0, -2).numpy()
    variances = np.empty(rows.shape)
    unbounded = np.tile([0, np.inf], (rows.shape[-1], 1))
    for column, row, variance, first in zip(columns, rows, variances, backcast.flatten().numpy()):
        model.compute_variance(column, row, variance, first, unbounded)
    h: Tensor = torch.from_numpy(variances).unflatten(0, omega.shape)
    return h.transpose(-1, -2)

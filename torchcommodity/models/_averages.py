"""Prices that are averages of their period, such as the monthly ones of the World Bank.

The averages of a random walk are no random walk: their returns follow a moving average, r_t = e_t + theta e_{t-1}. Of
the last innovation e_t, the share theta is still to come, whatever the horizon: E[ln P_{t+h} - ln P_t] = theta e_t.
Working (1960) has their first autocorrelation, 1/4 for many prices per period, so that theta = 2 - sqrt(3) = 0.268.
"""

import torch
from torch import Tensor

from torchcommodity.opkit import Past
from torchcommodity.ops import linear_recurrence


def last_innovations(returns: Tensor, theta: Tensor, past: Past) -> Tensor:  # (B, T, N), (N,) -> (B, T, N)
    """Innovation of the last return up to each row, e_t = r_t - theta e_{t-1}, from zero before the first return.

    A row without a return changes nothing.

    >>> import torch
    >>> returns = torch.tensor([[[0.1], [torch.nan], [0.1]]])
    >>> last_innovations(returns, torch.tensor([0.25]), Past()).flatten()
    tensor([0.1000, 0.1000, 0.0750])
    """
    valid = torch.isfinite(returns)
    decay, term = torch.where(valid, -theta.to(returns), 1.0), torch.where(valid, returns, 0.0)
    before = past.get("innovation")
    innovations: Tensor = linear_recurrence(decay, term, *([] if before is None else [before]))
    past.keep_last("innovation", innovations)
    return innovations

"""Memory in the returns of prices that are averages of their period."""

import torch
from torch import Tensor

from torchcommodity.models import own_rows

THEORY = 0.25  # first autocorrelation of the averages of a random walk
PRIOR = 240.0  # returns that the theory counts for: twenty years of months
LIMIT = 0.45  # of the autocorrelation: at 1/2 the moving average is not invertible


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
    sample = torch.where(squares > 0, products.nansum(0) / squares.clamp(min=torch.finfo(squares.dtype).tiny), THEORY)
    rho = ((n * sample + PRIOR * THEORY) / (n + PRIOR)).clamp(-LIMIT, LIMIT)
    theta = 2 * rho / (1 + (1 - 4 * rho.square()).sqrt())
    return torch.where(averages, theta, 0.0)

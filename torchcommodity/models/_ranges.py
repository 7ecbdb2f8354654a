"""Variance of a row from its bar: how far a price moved within a day says more than where it closed.

    v = ln(H / L)^2 / (4 ln 2)         H, L the highest and lowest of open, high, low, close and the close before
    u = (kappa v + r^2) / 2            kappa = sum r^2 / sum v: a range misses the nights, and trades between two prices

Legend: B batch, T time, N assets.
"""

from math import log

import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity.data import usable_ranges
from torchcommodity.ops import ewm_mean

MIN_RANGES = 60  # usable ranges of a symbol before the first one counts: a quarter, from which kappa is known
MIN_SCALE = 0.2  # of kappa, which is at most 4 ln 2: a range reaches from one close to the next
HALFLIFE = 63  # rows with a return, of the usual u
MAX_MULTIPLE = 6.0  # of the usual u: limits the weight of a day, and of a wrong high or low


def range_shocks(returns: Tensor, prices: Tensor, bars: Tensor, cap: float, past: Past) -> Tensor:  # (B, T, N)
    """Returns whose squares are the variance that bar and return say together: sqrt(u) with the sign of the return.

    v is at most cap^2, and u at most 6 times its EWMA up to the row before. The row of a contract roll has no return,
    and a range without the close before: u = kappa v. A row without a usable range, see `data.usable_ranges`, keeps its
    return, and so do all rows before the symbol's 60th usable range.

    Args:
        returns: (B, T, N) log-returns, clipped to +-cap; NaN where a price is missing or the contract rolled.
        prices: (B, T, N) closes.
        bars: (B, T, N, 3) open, high and low; NaN = missing.
        cap: largest size of a return.
        past: what was kept of the rows before.

    References:
        Parkinson (1980). The extreme value method for estimating the variance of the rate of return. J. Business 53(1).
    """
    valid = usable_ranges(prices, bars)
    has_both = valid & returns.isfinite()
    path = torch.where(valid.unsqueeze(-1), torch.cat([bars, prices.unsqueeze(-1)], -1), 1.0).log()
    steps = torch.where(has_both, returns, 0.0)
    before = path[..., 3] - steps  # without a return the close itself
    width = torch.maximum(path.amax(-1), before) - torch.minimum(path.amin(-1), before)
    variance, squares = (width.square() / (4 * log(2))).clamp(max=cap**2), steps.square()
    count, squares_total = past.cumsum("ranges", has_both), past.cumsum("range_squares", squares)
    total = past.cumsum("range_variances", torch.where(has_both, variance, 0.0))
    scaled = (squares_total / total.clamp(min=torch.finfo(total.dtype).tiny)).clamp(min=MIN_SCALE) * variance
    valid = valid & (count >= MIN_RANGES)
    blend = torch.where(has_both, (scaled + squares) / 2, scaled)
    blend = torch.where(valid, blend, returns.square())
    usual = past.call("range_mean", ewm_mean, blend, halflife=HALFLIFE, ignore_na=True)
    limit = MAX_MULTIPLE * past.lag("range_limit", usual, first=torch.inf)
    # the root of zero has no gradient
    size = torch.where(valid, torch.minimum(blend, limit), 1.0).sqrt()
    return torch.where(valid, torch.where(returns < 0, -size, size), returns)

"""Stationary bootstrap of rows: blocks of geometric length."""

from collections.abc import Iterator

import torch
from torch import Tensor


def block_length(residuals: Tensor) -> float:  # (R, N)
    """Mean block length for squared residuals by the rule of Politis and White (2004), averaged over the symbols.

    References:
        Patton, Politis, White (2009). Correction to "Automatic block-length selection for the dependent bootstrap".
        Econometric Reviews 28(4). doi:10.1080/07474930802459016.
    """
    from arch.bootstrap import optimal_block_length  # slow to import

    return max(float(optimal_block_length(residuals.square().numpy())["stationary"].mean()), 1.0)


def resampled_rows(count: int, paths: int, block: float, random: torch.Generator) -> Iterator[Tensor]:  # each (P,)
    """Row numbers of every path, one step after the other: the next row, or, with probability 1 / block, any row.

    The last row is followed by the first one. The steps of a short simulation are the first ones of a long one.

    References:
        Politis, Romano (1994). The stationary bootstrap. JASA 89. doi:10.1080/01621459.1994.10476870.
    """
    rows = torch.randint(count, (paths,), generator=random)
    while True:
        yield rows
        starts = torch.rand(paths, generator=random) < 1 / block
        rows = torch.where(starts, torch.randint(count, (paths,), generator=random), (rows + 1) % count)

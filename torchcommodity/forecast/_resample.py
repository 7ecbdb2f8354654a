"""Stationary bootstrap of rows: blocks of geometric length."""

from collections.abc import Iterator

import torch
from torch import Tensor

BLOCK = {"daily": 63.0, "weekly": 13.0, "monthly": 3.0}
"""Mean rows of a block, a quarter; chosen on 2010 to 2016, see docs/results/scenarios.md. The rule of Politis and White
sees one series at a time, nearly without dependence once the volatility is taken out; but markets that are priced at
different hours follow one another on later days, and a spread reverts over weeks."""


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

"""What a spread is expected to return of its deviation from its average of a quarter.

Legend: B batch, T time, L last rows, N symbols, M symbols with a price scale, H horizons.

    e      ln y less its exponentially weighted mean, over own rows
    m_h    b_h e, b_h <= 0, within +-sigma_h / 2
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit import Past
from torchcommodity.models._har_config import Frequency
from torchcommodity.models._returns import carry_forward
from torchcommodity.ops import ewm_mean


class ReversionRule(NamedTuple):
    """What makes a reversion, in rows of a frequency."""

    halflife: int  # of the mean: a quarter
    min_values: int  # before the first deviation
    min_rows: int  # of training, with an outcome
    independent: int  # rows of an outcome that counts as one of its own: half a year, in which a deviation is past


REVERSION_RULES: dict[Frequency, ReversionRule] = {
    "daily": ReversionRule(63, 252, 500, 126),
    "weekly": ReversionRule(13, 104, 260, 26),
    "monthly": ReversionRule(3, 24, 120, 6),
}


class Reversion(nn.Module):
    """Expected change of spreads: zero until it is calibrated.

    Args:
        scale: (N,) price scale; the symbols where it is not NaN revert.
        horizons: H, the number of horizons.
        frequency: of the prices.
    """

    coefficients: Tensor  # (H, M) b, <= 0
    rows: Tensor  # (M,) int64, largest number of training rows over the horizons
    columns: Tensor  # (M,) int64: number of each symbol
    places: Tensor  # (N,) int64: of each symbol among the N, then M: its own, or that of its reversion

    def __init__(self, scale: Tensor, horizons: int, frequency: Frequency) -> None:
        super().__init__()
        self.rule = REVERSION_RULES[frequency]
        columns = (~scale.isnan()).nonzero()[:, 0]
        places = torch.arange(len(scale), device=scale.device)
        places[columns] = len(scale) + torch.arange(len(columns), device=scale.device)
        self.register_buffer("coefficients", scale.new_zeros(horizons, len(columns)))
        self.register_buffer("rows", torch.zeros_like(columns))
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("places", places, persistent=False)

    def deviations(self, prices: Tensor, past: Past, L: int) -> Tensor:  # (B, T, N) -> (B, L, M)
        """e on the last own row of each symbol up to each of the last L rows, zero where it is not known."""
        y = prices.index_select(-1, self.columns)
        own = (y > 0) & (y < torch.inf)
        log = torch.where(own, y, torch.nan).log()
        settings = {"halflife": self.rule.halflife, "min_periods": self.rule.min_values, "ignore_na": True}
        deviation = log - past.call("reversion_mean", ewm_mean, log, **settings)
        known = torch.where(deviation.isfinite(), deviation, 0.0)
        return carry_forward(known, own, past, "reversion")[:, -L:]

    def add_to(self, expected: Tensor, changes: Tensor) -> Tensor:  # (..., H, N), (..., H, M) -> (..., H, N)
        """Expected changes of all symbols plus those of the spreads."""
        own = expected.index_select(-1, self.columns) + changes
        return torch.cat([expected, own], -1).index_select(-1, self.places)

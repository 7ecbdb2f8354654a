"""What a futures curve says of a spot price: the slope of the curve, and a basis that returns to its mean.

Legend: B batch, T time, L last rows, N symbols, M symbols with a curve, H horizons, C contracts, D days.

    F(x)   price of the x-th nearby contract, log-linear between contracts, constant beyond the last
    B      ln F(1) - ln S, the basis
    D      B less its exponentially weighted mean: by how much the spot price is cheap against its futures
    m_h    ln F(1 + max(0, h - tau) / 21) - ln F(1)  +  s_h D  +  b_h D

A good that is sold beside its front contract has tau = 0 and s_h = 1 - 2^(-h/40). A good that is delivered through the
month of its contract, as gas is, reaches the price of the front contract in the middle of that month, tau rows ahead:
s_h = min(1, h / tau).
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from torch_opkit import Past
from torchcommodity.data import business_calendar, get_contract, roll_days
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._returns import carry_forward, own_age
from torchcommodity.models._rolls import log_curve, tail
from torchcommodity.ops import ewm_mean

BASIS_HALFLIFE = 252  # own rows, of the mean basis
MIN_VALUES = 60  # before the first deviation of a basis
CURVE_AGE = 3  # own rows of a symbol for which the last curve stands
ROWS_PER_CONTRACT = 21
REVERSION = 40  # rows in which a deviation of the basis is expected to halve
DELIVERY = 14  # rows from the roll of a contract to the middle of its delivery month
FIRST_DAY, LAST_DAY = np.datetime64("1970-01-01"), np.datetime64("2099-12-31")


class BasisState(NamedTuple):
    """The curve of each symbol as it is known on its last own row."""

    known: Tensor  # (B, L, M) bool: at most three own rows old, with a deviation
    deviation: Tensor  # (B, L, M) D, zero where it is not known
    slope: Tensor  # (B, L, H, M) change of the log price along the curve
    share: Tensor  # (B, L, H, M) s_h

    @property
    def expected(self) -> Tensor:  # (B, L, H, M)
        """m_h without the fitted reversion."""
        return self.slope + self.share * self.deviation.unsqueeze(2)


class Basis(nn.Module):
    """Expected change of log spot prices from the futures curves of their products.

    Args:
        assets: N, the number of symbols.
        config: settings of `Har`; `curve_of` names the product of each symbol with a curve.
    """

    coefficients: Tensor  # (H, M) b, fitted
    rows: Tensor  # (M,) int64, largest number of training rows over the horizons
    columns: Tensor  # (M,) int64: number of each symbol with a curve
    places: Tensor  # (N,) int64: of each symbol among the N, then M: its own, or that of its curve
    through_month: Tensor  # (M,) bool, whether the good is delivered through the month of its contract
    delivery_rows: Tensor  # (M, D) int16, rows from each day to the middle of the delivery month; zero beside it

    def __init__(self, assets: int, config: HarConfig) -> None:
        super().__init__()
        if len(config.curve_of) != assets:
            rule = f"curve_of must have a product, or an empty text, for each of {assets} symbols"
            raise ValueError(f"HarConfig: {rule}; got {config.curve_of}")
        self.horizons = config.horizons
        # contracts from the front to the one that the longest horizon reaches
        self.contracts = 2 + (config.horizons[-1] - 1) // ROWS_PER_CONTRACT
        columns = [n for n, code in enumerate(config.curve_of) if code]
        codes = [config.curve_of[n] for n in columns]
        self.products = tuple(dict.fromkeys(codes))
        places = torch.arange(assets)
        places[columns] = assets + torch.arange(len(columns))
        through_month = [get_contract(code).through_month for code in codes]
        self.register_buffer("coefficients", torch.zeros(len(self.horizons), len(columns), dtype=torch.double))
        self.register_buffer("rows", torch.zeros(len(columns), dtype=torch.long))
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("places", places, persistent=False)
        self.register_buffer("through_month", torch.tensor(through_month), persistent=False)
        self.register_buffer("delivery_rows", delivery_table(codes, through_month), persistent=False)

    @property
    def closes(self) -> tuple[str, ...]:
        """Names of the closes that it reads: `CL 1` to `CL 7`, then those of the next product."""
        return tuple(f"{code} {nth}" for code in self.products for nth in range(1, self.contracts + 1))

    def forward(
        self, expected: Tensor, prices: Tensor, curve: Tensor, days: Tensor, past: Past
    ) -> Tensor:  # (B, L, H, N), (B, T, N), (B, T, N, C), (B, T) -> (B, L, H, N)
        """`expected`, with what the curves say in place of it where they are known."""
        return self.replace_known(expected, self.state(prices, curve, days, past, expected.shape[1]))

    def replace_known(self, expected: Tensor, state: BasisState) -> Tensor:  # (B, L, H, N)
        """`expected`, with what a state of the curves says in place of it where it is known."""
        m = state.expected + self.coefficients.to(expected) * state.deviation.unsqueeze(2)
        others = expected.index_select(-1, self.columns)
        m = torch.where(state.known.unsqueeze(2), m, others)
        return torch.cat([expected, m], -1).index_select(-1, self.places)

    def state(self, prices: Tensor, curve: Tensor, days: Tensor, past: Past, L: int) -> BasisState:
        """What the curves say on the last own row of each symbol up to each of the last L rows."""
        spot = prices.index_select(-1, self.columns)
        own = (spot > 0) & (spot < torch.inf)
        log = self.log_contracts(curve.index_select(2, self.columns).to(spot))  # (B, T, M, K)
        # a close on a row on which no symbol has a price is not used: panels leave out such a row
        own_row = ((prices > 0) & (prices < torch.inf)).any(-1, keepdim=True)
        fresh = log[..., 0].isfinite() & own_row
        latest = self._carry(torch.where(fresh.unsqueeze(-1), log, 0.0), fresh, past, "curve")
        usable = own & (own_age(own, fresh, CURVE_AGE, past, "curve_age") <= CURVE_AGE)
        basis = torch.where(usable, latest[..., 0] - torch.where(own, spot, 1.0).log(), torch.nan)
        settings = {"halflife": BASIS_HALFLIFE, "min_periods": MIN_VALUES, "ignore_na": True}
        deviation = basis - past.call("basis", ewm_mean, basis, **settings)
        known = deviation.isfinite()
        values = [known.to(spot), torch.where(known, deviation, 0.0), self.rows_to_delivery(days).to(spot)]
        carried = tail(self._carry(torch.cat([torch.stack(values, -1), latest], -1), own, past, "basis_state"), L)
        known, deviation, tau, contracts = carried[..., 0] > 0, carried[..., 1], carried[..., 2:3], carried[..., 3:]
        h = tau.new_tensor(self.horizons)
        position = (h - tau).clamp(min=0) / ROWS_PER_CONTRACT  # (B, L, M, H)
        nearer = position.floor().clamp(max=self.contracts - 2)
        low, high = (contracts.gather(-1, nearer.long() + k) for k in (0, 1))
        slope = low + (position - nearer) * (high - low) - contracts[..., :1]
        share = torch.where(self.through_month.unsqueeze(-1), (h / tau).clamp(max=1), 1 - 2 ** (-h / REVERSION))
        return BasisState(known, deviation, slope.transpose(2, 3), share.transpose(2, 3))

    def log_contracts(self, curve: Tensor) -> Tensor:  # (B, T, M, C) -> (B, T, M, K)
        """Log prices of the first K contracts, the last one for those beyond it; NaN with fewer than two contracts."""
        curve = curve[..., : self.contracts]
        known = (curve > 0) & (curve < torch.inf)
        log = torch.where((known.sum(-1, keepdim=True) > 1), log_curve(curve), torch.nan)
        return torch.cat([log, log[..., -1:].expand(*log.shape[:-1], self.contracts - log.shape[-1])], -1)

    def rows_to_delivery(self, days: Tensor) -> Tensor:  # (B, T) -> (B, T, M)
        """tau of each symbol; that of the first or last day of the table for days beyond it."""
        places = days.clamp(0, self.delivery_rows.shape[1] - 1)
        return torch.stack([table[places] for table in self.delivery_rows], -1)

    def _carry(self, x: Tensor, known: Tensor, past: Past, name: str) -> Tensor:  # (B, T, M, V), (B, T, M)
        flat = carry_forward(x.flatten(2), known.unsqueeze(-1).expand_as(x).flatten(2), past, name)
        carried: Tensor = flat.unflatten(2, x.shape[2:])
        return carried


def delivery_table(codes: Sequence[str], through_month: Sequence[bool]) -> Tensor:  # (M, D) int16
    """`rows_to_delivery` of products by day since 1970-01-01; one column of zeros if none is delivered through a month.

    >>> table = delivery_table(["NG", "CL"], [True, False])
    >>> table[:, 18372].tolist()  # 2020-04-20, seven trading days before the roll of 2020-04-29
    [21, 0]
    """
    if not any(through_month):
        return torch.zeros(len(codes), 1, dtype=torch.int16)
    zeros = torch.zeros(int((LAST_DAY - FIRST_DAY).astype(int)) + 1, dtype=torch.int16)
    return torch.stack([rows_to_delivery(code) if through else zeros for code, through in zip(codes, through_month)])


@cache
def rows_to_delivery(code: str) -> Tensor:  # (D,) int16
    """Trading days from each day to the next roll of a product's front contract, and 14 more."""
    days = np.arange(FIRST_DAY, LAST_DAY + np.timedelta64(1, "D"))
    rolls = roll_days(code, FIRST_DAY, LAST_DAY + np.timedelta64(93, "D"))
    following = rolls[np.searchsorted(rolls, days, side="right")]
    rows = np.busday_count(days, following, busdaycal=business_calendar(get_contract(code).market))
    return torch.from_numpy((rows + DELIVERY).astype(np.int16))

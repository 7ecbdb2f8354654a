"""What is known of where a price goes: prices of related goods revert toward each other, and seasons recur.

Legend: B batch, T time, L last rows, N symbols, R references, H horizons, M pairs, K pairs of one symbol.

    x_nj    ln P_n - ln P_j less its exponentially weighted mean: by how much n is dear against j
    g       sine and cosine of the time of the year, and of twice it
    m_h     sum_j c_hj x_nj + beta_h g, within +-sigma_h / 2
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torch_opkit import Past
from torchcommodity.models._basis import Basis
from torchcommodity.models._har_config import Frequency, HarConfig
from torchcommodity.models._momentum import Momentum
from torchcommodity.models._returns import carry_forward, own_age
from torchcommodity.models._reversion import Reversion
from torchcommodity.ops import ewm_mean

LIMIT = 0.5  # of sigma: an expectation beyond it says more of the fit than of the price
WAVES = 4  # columns of `seasonal_waves`
PAIRS_AT_ONCE = 256  # of which all rows are in memory


class RelationRule(NamedTuple):
    """What makes a relation of two prices, in rows of a frequency."""

    halflife: int  # of the mean of their log ratio
    min_values: int  # before its first deviation
    min_rows: int  # of training, with an outcome
    comovement: float  # smallest correlation of their changes over the horizon
    max_age: int = 5  # own rows of a symbol for which the last price of another good stands


RELATION_RULES: dict[Frequency, RelationRule] = {
    "daily": RelationRule(504, 126, 500, 0.4),
    "weekly": RelationRule(104, 26, 260, 0.4),
    "monthly": RelationRule(24, 12, 120, 0.3),
}


class Location(nn.Module):
    """Expected change of log prices from related prices and the season: zero until it is calibrated.

    Args:
        assets: N, the number of symbols.
        config: settings of `Har`.

    Each symbol has pairs with other symbols and with references, prices that are not forecast. A deviation counts the
    symbol's own rows: on a row on which only other symbols trade it stays as it is. The last price of the other good
    stands for at most 5 of them; after that, and before enough values, the pair adds nothing.

    Of monthly prices, `Momentum` adds what trends say. Where the futures curve of a spot price is known, `Basis` stands
    in place of all of this. To a symbol with a price scale, a spread, its `Reversion` is added. Prices are those of
    `scale_inputs`.
    """

    season: Tensor  # (H, N, 4)
    # None without pairs: torch 2.13 does not read a graph with empty tensors
    pairs: Tensor | None  # (M, 2) int64: symbol, and the other good among the N symbols and R references; in order
    coefficients: Tensor  # (H, M), <= 0
    rows: Tensor  # (M,) int64, largest number of training rows over the horizons
    cells: Tensor  # (N, K) int64: the pairs of each symbol, M where it has fewer

    def __init__(self, assets: int, config: HarConfig) -> None:
        super().__init__()
        self.assets, self.config, self.rule = assets, config, RELATION_RULES[config.frequency]
        horizons = len(config.horizons)
        self.register_buffer("season", torch.zeros(horizons, assets, WAVES, dtype=torch.double))
        self.set_pairs(*(torch.zeros(0, 2, dtype=torch.long) for _ in range(3)))
        self.momentum = Momentum(config) if config.momentum else None
        self.basis = Basis(assets, config) if any(config.curve_of) else None
        self.reversion: Reversion | None = None

    def set_price_scale(self, scale: Tensor | None) -> None:  # (N,), NaN = log
        """Give the symbols with a price scale a reversion, zero until it is calibrated."""
        reversion = None if scale is None else Reversion(scale, len(self.config.horizons), self.config.frequency)
        self.reversion = reversion

    def set_pairs(self, pairs: Tensor, coefficients: Tensor, rows: Tensor) -> None:
        """Replace the pairs, sorted by symbol."""
        if not len(pairs):
            for name in ("pairs", "coefficients", "rows", "cells"):
                self.register_buffer(name, None)
            return
        for name, x in (("pairs", pairs), ("coefficients", coefficients), ("rows", rows)):
            self.register_buffer(name, x)
        counts = torch.bincount(pairs[:, 0], minlength=self.assets)
        first, k = counts.cumsum(0) - counts, torch.arange(int(counts.max()), device=pairs.device)
        cells = torch.where(k < counts[:, None], first[:, None] + k, len(pairs))
        self.register_buffer("cells", cells, persistent=False)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """The number of pairs is that of the file, which may have none."""
        names = [f"{prefix}{name}" for name in ("pairs", "coefficients", "rows")]
        if all(name in state_dict for name in names):
            self.set_pairs(*(state_dict[name] for name in names))
        elif f"{prefix}season" in state_dict and not any(name in state_dict for name in names):
            self.set_pairs(*(torch.zeros(0, 2, dtype=torch.long) for _ in range(3)))
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def forward(
        self,
        prices: Tensor,  # (B, T, N)
        references: Tensor | None,  # (B, T, R)
        days: Tensor | None,  # (B, T) int64, since 1970-01-01; None = the season adds nothing
        variance: Tensor,  # (B, L, N) slow variance per row
        past: Past | None = None,
        curve: Tensor | None = None,  # (B, T, N, C); None, or days None = no curve is known
        trends: Tensor | None = None,  # (B, L, N, K) of `Har.trends`, for `Momentum`
    ) -> Tensor:  # (B, L, H, N)
        """Expected change of the log price over each horizon, zero during warm-up unless a curve is known."""
        past, L = past or Past(), variance.shape[1]
        deviations, waves = self.deviations(prices, references, past, L), self.waves(prices, days, past, L)
        related = self.related(deviations, variance)
        expected = self.limit(reduce(torch.add, self.parts(None, waves), related), variance)
        if self.momentum is not None and trends is not None:
            expected = expected + self.momentum(self.limit(related, variance), prices, trends, variance, past)
        if self.basis is not None and curve is not None and days is not None:
            expected = self.basis(expected, prices, curve, days, past)
        if self.reversion is None:
            return expected
        return self.reversion.add_to(expected, self.reversion_changes(self.reversion, prices, variance, past))

    def reversion_changes(self, reversion: Reversion, prices: Tensor, variance: Tensor, past: Past) -> Tensor:
        """Expected changes (B, L, H, M) of the spreads, within the limit of their own."""
        e = reversion.deviations(prices, past, variance.shape[1]).unsqueeze(2)
        return self.limit(reversion.coefficients.to(e) * e, variance.index_select(-1, reversion.columns))

    def limit(self, expected: Tensor, variance: Tensor) -> Tensor:  # (..., H, N), (..., N) -> (..., H, N)
        """Expected changes within +-sigma_h / 2, zero during warm-up."""
        horizons = variance.new_tensor(self.config.horizons)[:, None]
        limit = LIMIT * (horizons * variance.unsqueeze(-2)).sqrt()
        return torch.where(limit.isfinite(), expected.clamp(-limit, limit), 0.0)

    def related(self, deviations: Tensor | None, variance: Tensor) -> Tensor:  # (B, L, M), (B, L, N) -> (B, L, H, N)
        """Contribution of related prices to m_h, before the limit; (B, L, 1, N) without any."""
        return reduce(torch.add, self.parts(deviations, None), torch.zeros_like(variance).unsqueeze(2))

    def parts(self, deviations: Tensor | None, waves: Tensor | None) -> Iterator[Tensor]:  # (B, L, H, N) each
        """Contributions to m_h at the last rows, before the limit: of each symbol's k-th pair, and of each wave.

        They are added one by one: in `sum` or a matrix product the order depends on the number of rows.
        """
        if deviations is not None:
            cells = self.cells.mT  # (K, N)
            x, c = (F.pad(v, (0, 1))[..., cells] for v in (deviations.unsqueeze(2), self.coefficients.to(deviations)))
            yield from map(torch.mul, x.unbind(-2), c.unbind(-2))
        if waves is not None:
            yield from (waves.unsqueeze(2) * self.season.to(waves)).unbind(-1)

    def deviations(self, prices: Tensor, references: Tensor | None, past: Past, L: int) -> Tensor | None:  # (B, L, M)
        """x of every pair on the last own row of its symbol up to each row, zero where it is not known; or no pair."""
        if self.pairs is None:
            return None
        log, known = known_log_prices(prices, references)
        last = carry_forward(log, known, past, "last_log_price")
        blocks = enumerate(self.pairs.split(PAIRS_AT_ONCE))
        return torch.cat([self._deviations(log, known, last, pairs, past, f"{k}")[:, -L:] for k, pairs in blocks], -1)

    def _deviations(
        self, log: Tensor, known: Tensor, last: Tensor, pairs: Tensor, past: Past, name: str
    ) -> Tensor:  # (B, T, N + R) each, (M', 2) -> (B, T, M')
        symbol, other = pairs.unbind(1)
        own, fresh = known.index_select(-1, symbol), known.index_select(-1, other)
        usable = own & (own_age(own, fresh, self.rule.max_age, past, f"price_age{name}") <= self.rule.max_age)
        ratio = torch.where(usable, log.index_select(-1, symbol) - last.index_select(-1, other), torch.nan)
        settings = {"halflife": self.rule.halflife, "min_periods": self.rule.min_values, "ignore_na": True}
        deviation = ratio - past.call(f"log_ratio{name}", ewm_mean, ratio, **settings)
        return carry_forward(deviation.nan_to_num(0.0, 0.0, 0.0), own, past, f"deviation{name}")

    def waves(self, prices: Tensor, days: Tensor | None, past: Past, L: int) -> Tensor | None:  # (B, L, N, 4)
        """`seasonal_waves` of the last own row of each symbol up to each of the last L rows."""
        if days is None:
            return None
        known = (prices > 0) & (prices < torch.inf)
        own_days = carry_forward(days.unsqueeze(-1).to(prices).expand_as(prices), known, past, "day")
        return seasonal_waves(own_days[:, -L:])


def known_log_prices(prices: Tensor, references: Tensor | None) -> tuple[Tensor, Tensor]:  # (..., T, N + R) each
    """Log prices of symbols and references, zero where not known, and whether they are known.

    The price of a reference on a row on which no symbol has one is not used: forecasts of such a row do not exist, and
    panels leave it out.
    """
    known = (prices > 0) & (prices < torch.inf)
    if references is not None:
        own_row = known.any(-1, keepdim=True)
        prices = torch.cat([prices, references], -1)
        known = torch.cat([known, (references > 0) & (references < torch.inf) & own_row], -1)
    return torch.where(known, prices, 1.0).log(), known


def seasonal_waves(days: Tensor) -> Tensor:  # (...) -> (..., 4)
    """Sine and cosine of the time of the year, and of twice it, of days since 1970-01-01.

    A year is 365.25 days: from 1901 to 2099 the time of the year is then right within a day.

    >>> seasonal_waves(torch.tensor([0.0, 365.25])).round().tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    """
    angle = (4 * days).remainder(1461.0) * (2 * torch.pi / 1461)
    return torch.stack([angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos()], -1)

"""The econometric part of every forecaster: raw prices to a term structure of volatility, and to quantiles.

Legend: B batch, T time, A rows ahead, N assets, H horizons, Q quantiles, K variance terms, F features, C contracts.

    m_h = what the coming contract rolls will do to the price                    0 for a spot price
    v_k = EWMA variances, long-run mean, GARCH(1,1), each over days without a roll
    sigma_h^2 = h sum_k c_hk v_k,  c >= 0                     the HAR mix (Corsi 2009), fitted on the past
    quantiles = m_h + sigma_h exp(bend) z_h(tau)              z empirical and sorted: quantiles cannot cross
"""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.models._rolls import count_rolls, curve_shift, gap_shift, rolls_ahead, tail
from torchcommodity.nn import PERSISTENCE
from torchcommodity.ops import garch_variance, log_returns, riskmetrics_variance

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))


@dataclass(frozen=True)
class HarConfig:
    """Everything that shapes a `Har`; the defaults are those of the published table."""

    horizons: tuple[int, ...] = (5, 21, 63, 126)  # rows: a week, a month, a quarter, half a year
    levels: tuple[float, ...] = LEVELS
    halflives: tuple[int, ...] = (8, 21, 63, 252)  # rows with a return
    trends: tuple[int, ...] = (21, 63, 252)  # rows
    cap: float = 0.25  # a larger |log-return| counts as this in variances and features: one bad day is no regime
    floor: float = 1e-10  # least variance per row, 0.001 % a day: a price that stands still has a scale to divide by
    warmup: int = 252  # returns a symbol must have before its first forecast
    gap: float = 0.5  # of its own past roll gaps, this much is expected again where no curve is known
    bound: float = 0.3  # a network moves log sigma by less than shrink * bound
    shrink: float = 0.5  # of what it learned, this much is used: half loses least when what it learned was noise

    def __post_init__(self) -> None:
        rising = {"horizons": self.horizons, "levels": self.levels, "halflives": self.halflives, "trends": self.trends}
        for name, values in rising.items():
            if not values or list(values) != sorted(set(values)) or values[0] <= 0:
                raise ValueError(f"HarConfig: {name} must be positive and strictly rising; got {values}")
        if self.levels[-1] >= 1:
            raise ValueError(f"HarConfig: levels must lie strictly between 0 and 1; got {self.levels}")
        if not (min(self.cap, self.floor, self.bound) > 0 and self.gap >= 0 and 0 <= self.shrink <= 1):
            must = "cap, floor and bound > 0, gap >= 0, shrink in [0, 1]"
            raise ValueError(f"HarConfig: {must}; got {self}")
        if self.warmup < 1:
            raise ValueError(f"HarConfig: warmup must be at least 1; got {self.warmup}")

    @property
    def terms(self) -> tuple[str, ...]:
        """The K variance terms of the mix, in the order of its coefficients."""
        return (*(f"ewm{halflife}" for halflife in self.halflives), "long-run", "garch", "rolls")

    @property
    def features(self) -> int:
        """F: the ratios of neighboring variance terms, the size of the last return and of each trend."""
        return len(self.terms) - 1 + len(self.trends)


class HarOutput(NamedTuple):
    """What is known at every row, for a network to read; time is axis 1 of each."""

    prices: Tensor  # (B, T, N)
    returns: Tensor  # (B, T, N) capped log-returns; NaN where a price is missing or the contract rolled
    features: Tensor  # (B, T, N, F) without unit; zero during warm-up
    shift: Tensor  # (B, T, H, N) m
    log_scale: Tensor  # (B, T, H, N) log sigma; NaN during warm-up


class Har(nn.Module):
    """Raw prices (B, T, N) to the term structure of volatility that a forecaster starts from.

    Args:
        assets: N, the number of symbols; each has its own GARCH parameters, everything else is shared.
        config: the settings.

    Prices are in any unit; a price that is NaN, zero or negative is missing: variances carry on over it. A symbol with
    fewer than `config.warmup` returns is NaN. Horizons count rows. Row t depends on rows <= t, and on the calendar of
    rolls, which is known ahead. Everything is computed in the dtype of the prices.

    Before it is fitted the coefficients are a plain start: the mix all on the longest EWMA, normal quantiles.

    References:
        Corsi (2009). A simple approximate long-memory model of realized volatility. J. Financial Econometrics 7(2).
        doi:10.1093/jjfinec/nbp001.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> har = Har(1)
        >>> har.quantiles(har(prices[None])).shape
        torch.Size([1, 600, 4, 1, 19])
    """

    mix: Tensor  # (H, K), >= 0
    z: Tensor  # (H, Q), rising along Q
    shrink: Tensor  # (H,)
    long_run: Tensor  # (N,) variance per row that GARCH returns to

    def __init__(self, assets: int, config: HarConfig = HarConfig()) -> None:
        super().__init__()
        self.assets, self.config = assets, config
        horizons, levels = len(config.horizons), torch.tensor(config.levels, dtype=torch.double)
        mix = torch.zeros(horizons, len(config.terms), dtype=torch.double)
        mix[:, len(config.halflives) - 1] = 1.0
        self.register_buffer("mix", mix)
        self.register_buffer("z", torch.special.ndtri(levels).repeat(horizons, 1))
        self.register_buffer("shrink", torch.full((horizons,), config.shrink, dtype=torch.double))
        self.register_buffer("long_run", torch.full((assets,), 2e-4, dtype=torch.double))
        self.persistence = nn.Parameter(
            torch.full((assets,), 4.0, dtype=torch.double)
        )  # logit of (alpha + beta) / PERSISTENCE
        self.reaction = nn.Parameter(torch.full((assets,), -2.5, dtype=torch.double))  # logit of alpha / (alpha + beta)

    def forward(
        self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None, *, last: int | None = None
    ) -> HarOutput:
        """What is known at every row.

        Args:
            prices: (B, T, N) floating point.
            rolls: (B, T + A, N) int64, A at least the longest horizon: 0, or the calendar month of a contract roll on
                that row; the last A rows are the coming trading days. None: no symbol rolls.
            curve: (B, T, N, C) prices of the nearby contracts, front first; NaN = unknown. Needs `rolls`.
            last: give only so many last rows, in the same bits: the recursions run over all rows, the rest does not.
        """
        self._check(prices, rolls, curve)
        returns, shift, unsure = self.without_rolls(prices, rolls, curve, last)
        terms = self.terms(returns, unsure)
        features, log_scale = self.features(returns, terms), self.mixed(terms).log() / 2
        return HarOutput(tail(prices, last), tail(returns, last), features, shift, log_scale)

    def quantiles(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:  # (B, T, H, N, Q)
        """Quantiles of the cumulative log-return from every row on, for `raw_correction` see `corrected_log_scale`."""
        scale = self.corrected_log_scale(har_output, raw_correction).exp().unsqueeze(-1)
        return har_output.shift.unsqueeze(-1) + scale * self.z[:, None, :].to(scale)

    def last_quantiles(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:  # (B, H, N, Q)
        """The quantiles of the last row alone."""
        last = HarOutput(*(x[:, -1:] for x in har_output))
        return self.quantiles(last, None if raw_correction is None else raw_correction[:, -1:])[:, 0]

    def corrected_log_scale(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:
        """log sigma as a network's output (B, T, H, N) bends it; without, the one that training starts from."""
        warm = torch.isfinite(har_output.log_scale)
        log_scale = torch.where(warm, har_output.log_scale, 0.0)  # no NaN of the warm-up takes part in a backward pass
        if raw_correction is not None:
            correction = self.scale_correction(raw_correction)
            log_scale = log_scale + (correction * self.shrink[:, None].to(correction)).to(log_scale)
        return torch.where(warm, log_scale, torch.nan)

    def scale_correction(self, raw_correction: Tensor) -> Tensor:
        """What a network's output adds to log sigma before it is shrunk, within +-bound."""
        return self.config.bound * torch.tanh(raw_correction)

    def returns(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, N)
        """Log-returns; one larger than the cap counts as the cap, in variances and features only."""
        return log_returns(prices).clamp(-self.config.cap, self.config.cap)

    def without_rolls(
        self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None, last: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:  # (B, T, N), (B, L, H, N), (B, L, H, N)
        """Returns of days without a roll, NaN on the others; m_h; the number of coming rolls that no curve tells.

        The latter two for the L last rows, all of them by default.
        """
        returns, (B, _, N) = self.returns(prices), prices.shape
        if rolls is None:
            none = prices.new_zeros(()).expand(B, tail(prices, last).shape[1], len(self.config.horizons), N)
            return returns, none, none
        placed = count_rolls(rolls, torch.isfinite(prices) & (prices > 0))
        count = rolls_ahead(placed, self.config.horizons, last)
        shift = self.config.gap * gap_shift(returns, placed, self.config.horizons, last)
        unsure = count.to(shift)
        if curve is not None:
            told = curve_shift(tail(curve, last).to(shift), count)
            shift, unsure = torch.where(told.isfinite(), told, shift), torch.where(told.isfinite(), 0.0, unsure)
        return torch.where(placed.spanned.any(-1), torch.nan, returns), shift, unsure

    def terms(self, returns: Tensor, unsure: Tensor) -> Tensor:  # (B, T, N), (B, L, H, N) -> (B, L, H, N, K)
        """The K variances per row that the mix weighs; NaN during warm-up. GARCH and rolls depend on the horizon."""
        last = unsure.shape[1]
        known = torch.isfinite(returns)
        count = known.cumsum(-2)
        squared = torch.where(known, returns, 0.0).square()
        shared = [riskmetrics_variance(returns, halflife) for halflife in self.config.halflives]
        shared.append(squared.cumsum(-2) / count.clamp(min=1))
        garch = self._garch_term(returns, last)
        plain = torch.stack([*(tail(v, last).unsqueeze(-2).expand_as(garch) for v in shared), garch], -1)
        plain = plain.clamp(min=self.config.floor)
        horizons = returns.new_tensor(self.config.horizons)[:, None]
        rolls = unsure / horizons * plain[..., len(self.config.halflives)]
        warm = tail(count >= self.config.warmup, last)[..., None, :, None]
        return torch.where(warm, torch.cat([plain, rolls.unsqueeze(-1)], -1), torch.nan)

    def garch(self) -> tuple[Tensor, Tensor, Tensor]:  # (N,) each
        """omega, alpha, beta of every asset: stationary, with the variance targeted at `long_run`."""
        persistence, reaction = PERSISTENCE * torch.sigmoid(self.persistence), torch.sigmoid(self.reaction)
        return self.long_run * (1 - persistence), persistence * reaction, persistence * (1 - reaction)

    def mixed(self, terms: Tensor) -> Tensor:  # (B, T, H, N, K) -> (B, T, H, N)
        """sigma_h^2 = h sum_k c_hk v_k, the variance of the cumulative log-return."""
        horizons = terms.new_tensor(self.config.horizons)[:, None]
        # one addition after the other: the order of `sum` or of a matrix product depends on the number of rows
        parts = [self.mix[:, k, None].to(terms) * terms[..., k] for k in range(terms.shape[-1])]
        return horizons * reduce(torch.add, parts)

    def features(self, returns: Tensor, terms: Tensor) -> Tensor:  # (B, T, N), (B, L, H, N, K) -> (B, L, N, F)
        """What is known of a symbol itself, without unit; zero during warm-up, where there is no forecast."""
        last, terms = terms.shape[1], terms[..., 0, :, :-1]  # (B, L, N, K - 1); GARCH's of the first horizon, no rolls
        ratios = terms.log().diff(dim=-1)
        move = torch.where(torch.isfinite(returns), returns, 0.0)
        path = move.cumsum(-2)
        sizes = [tail(move, last) / terms[..., 1].sqrt()]
        for k in self.config.trends:
            past = F.pad(path, (0, 0, k, 0))[..., : path.shape[-2], :]
            sizes.append(tail(path - past, last) / (k * terms[..., len(self.config.halflives)]).sqrt())
        found = torch.cat([ratios, torch.stack(sizes, -1).abs().log1p()], -1)
        return torch.where(torch.isfinite(found), found, 0.0)

    def _garch_term(self, returns: Tensor, last: int) -> Tensor:  # (B, T, N) -> (B, L, H, N)
        omega, alpha, beta = (x.to(returns) for x in self.garch())
        # one missing row more: garch_variance's row t uses r_{t-1}, and the forecast at t may use r_t
        after = garch_variance(F.pad(returns, (0, 0, 0, 1), value=torch.nan), omega, alpha, beta)[..., 1:, :]
        long_run, persistence = self.long_run.to(returns), alpha + beta
        steps = returns.new_tensor(self.config.horizons)[:, None]
        # mean over k < h of E h_{t+1+k} = long_run + persistence^k (h_{t+1} - long_run)
        share = (1 - persistence**steps) / ((1 - persistence) * steps)
        return long_run + share * (tail(after, last) - long_run).unsqueeze(-2)

    def _check(self, prices: Tensor, rolls: Tensor | None, curve: Tensor | None) -> None:
        if prices.dim() != 3 or prices.shape[-1] != self.assets or not prices.is_floating_point():
            got = f"{tuple(prices.shape)} of {prices.dtype}"
            raise ValueError(f"Har: prices must be floating point (B, T, N) with N={self.assets}; got {got}")
        if curve is not None and (rolls is None or curve.shape[:-1] != prices.shape):
            got = f"{tuple(curve.shape)} with prices {tuple(prices.shape)} and {'no ' if rolls is None else ''}rolls"
            raise ValueError(f"Har: a curve must be (B, T, N, C) beside prices (B, T, N) and rolls; got {got}")
        if rolls is None:
            return
        B, T, N = prices.shape
        least = T + self.config.horizons[-1]
        if rolls.dtype != torch.int64 or rolls.dim() != 3 or rolls.shape[0] != B or rolls.shape[2] != N:
            raise ValueError(f"Har: rolls must be int64 (B, T + A, N); got {tuple(rolls.shape)} of {rolls.dtype}")
        if rolls.shape[1] < least:
            raise ValueError(f"Har: rolls must reach the longest horizon, {least} rows; got {rolls.shape[1]}")

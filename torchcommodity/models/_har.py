"""Econometric part of every forecaster: from raw prices to a volatility term structure and quantiles.

Legend: B batch, T time, A rows ahead, N assets, H horizons, Q quantiles, K variance terms, F features, C contracts.

    ln P        the log price, or asinh(P / S) of a price that may be zero or negative, see `_price_scale`
    m_h         expected change of the log price: related prices, season, momentum of months, coming rolls, averaging
    v_k         EWMA variances, long-run mean, GARCH(1,1), each over days without a roll, of returns or of bars; extra
                terms of the caller
    sigma_h^2 = h sum_k c_hk v_k,  c >= 0                     HAR mix (Corsi 2009), calibrated on past rows
    quantiles = m_h + sigma_h exp(correction) z_h(tau)        z empirical and sorted: quantiles cannot cross
"""

from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit import Past
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._inputs import ModelInputs, check_inputs
from torchcommodity.models._location import Location
from torchcommodity.models._price_scale import LARGEST_CHANGE, scale_inputs
from torchcommodity.models._ranges import range_shocks
from torchcommodity.models._returns import OwnRows, last_innovations, own_rows, return_paths
from torchcommodity.models._rolls import GapPriors, curve_shift, find_rolls, tail, weigh_gaps
from torchcommodity.nn import PERSISTENCE
from torchcommodity.ops import ewm_mean, garch_variance, log_returns


class AdjustedReturns(NamedTuple):
    """Returns without the gaps of contract rolls, what is expected of the coming gaps, and extra terms; L last rows."""

    returns: Tensor  # (B, T, N) capped log-returns; NaN where a price is missing or the contract rolled
    shocks: Tensor  # (B, T, N) the returns, or what a bar says of their size: their squares make the variances
    observations: Tensor  # (B, T, N) number of returns up to each row
    long_run: Tensor  # (B, T, N) mean square of the shocks
    shift: Tensor  # (B, L, H, N) m of rolls and averaging
    gap_variance: Tensor  # (B, L, H, N) variance of the sum of the coming gaps that no curve gives
    extra_variances: Tensor | None = None  # (B, L, H, N, X) of `HarConfig.extra_terms`, as provided


class HarOutput(NamedTuple):
    """Econometric state at every row, the input of the networks; time is axis 1 of each."""

    prices: Tensor  # (B, T, N)
    returns: Tensor  # (B, T, N) capped log-returns; NaN where a price is missing or the contract rolled
    features: Tensor  # (B, T, N, F) dimensionless; zero during warm-up
    shift: Tensor  # (B, T, H, N) m
    log_scale: Tensor  # (B, T, H, N) log sigma; NaN during warm-up


class Har(nn.Module):
    """Volatility term structure of raw prices (B, T, N): EWMA, long-run and GARCH variances in a HAR mix.

    Args:
        assets: N, the number of symbols; each has its own GARCH parameters, the rest is shared.
        config: settings.

    Prices are in any unit. A price that is NaN, zero or negative is missing and leaves the variances unchanged; one of
    zero or below counts where a symbol has a price scale, see `set_price_scale`. A symbol with fewer than
    `config.warmup` returns is NaN. Horizons, half-lives and trends count its rows with a price: other rows change
    nothing. Row t depends on rows <= t and on the roll calendar, known in advance. Computed in the dtype of the prices.

    Before calibration all weight is on the longest EWMA and the quantiles are Gaussian.

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
    z: Tensor  # (H, N, Q), increasing along Q
    shrink: Tensor  # (H,)
    long_run: Tensor  # (N,) variance per row, the mean of GARCH
    theta: Tensor  # (N,) memory of averages, if config.averages
    has_ranges: Tensor  # (N,) bool, whether the bars of a symbol are used, if config.bars
    scale: Tensor | None  # (N,) S of prices that may be zero or negative, NaN = log; None: all are logs

    def __init__(self, assets: int, config: HarConfig = HarConfig()) -> None:
        super().__init__()
        self.assets, self.config = assets, config
        horizons, levels = len(config.horizons), torch.tensor(config.levels, dtype=torch.double)
        mix = torch.zeros(horizons, len(config.terms), dtype=torch.double)
        mix[:, len(config.halflives) - 1] = 1.0
        self.register_buffer("mix", mix)
        self.register_buffer("z", torch.special.ndtri(levels).repeat(horizons, assets, 1))
        self.register_buffer("shrink", torch.full((horizons,), config.shrink, dtype=torch.double))
        self.location = Location(assets, config) if config.location else None
        self.register_buffer("long_run", torch.full((assets,), 2e-4, dtype=torch.double))
        if config.averages:
            self.register_buffer("theta", torch.zeros(assets, dtype=torch.double))
        if config.bars:
            self.register_buffer("has_ranges", torch.ones(assets, dtype=torch.bool))
        self.register_buffer("scale", None)
        # logits of (alpha + beta) / PERSISTENCE and of alpha / (alpha + beta)
        self.persistence = nn.Parameter(torch.full((assets,), 4.0, dtype=torch.double))
        self.reaction = nn.Parameter(torch.full((assets,), -2.5, dtype=torch.double))

    def set_price_scale(self, scale: Tensor | None) -> None:  # (N,)
        """Take asinh(P / S) in place of ln P for the symbols whose scale S is not NaN; None: no symbol.

        Their prices may be zero or negative, their nearby contracts are spreads of any sign, their bars are not used,
        and they revert to their mean, see `Location`. Everything but `forward` takes prices of `scale_inputs`.

        Raises:
            ValueError: another shape, or a scale that is infinite or not positive.

        Example:
            >>> har = Har(2)
            >>> har.set_price_scale(torch.tensor([8.0, torch.nan]))  # a spread and a price
        """
        if scale is not None:
            valid = scale.isnan() | ((scale > 0) & (scale < torch.inf))
            if scale.shape != (self.assets,) or not scale.is_floating_point() or not valid.all():
                rule = f"scale must be {self.assets} positive numbers, or NaN for a symbol in logs"
                raise ValueError(f"Har: {rule}; got {scale.tolist()}")
            scale = None if scale.isnan().all() else scale.clone().to(self.mix)
        self.register_buffer("scale", scale)
        if self.location is not None:
            self.location.set_price_scale(scale)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """The price scale is that of the file, which may have none."""
        if {f"{prefix}mix", f"{prefix}scale"} & state_dict.keys():
            self.set_price_scale(state_dict.get(f"{prefix}scale"))
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def forward(
        self,
        prices: Tensor,
        rolls: Tensor | None = None,
        curve: Tensor | None = None,
        extra_variances: Tensor | None = None,
        references: Tensor | None = None,
        days: Tensor | None = None,
        bars: Tensor | None = None,
        *,
        last_rows: int | None = None,
        past: Past | None = None,
    ) -> HarOutput:
        """Econometric state at every row.

        Args:
            prices: (B, T, N) floating point.
            rolls: (B, T + A, N) int64, A at least the longest horizon: the calendar month of a contract roll on that
                row, 0 without one, -1 on a row on which the symbol's market is closed, which no horizon counts; the
                last A rows are the next trading days. None: no symbol rolls.
            curve: (B, T, N, C) prices of the nearby contracts, front first; NaN = unknown. It counts where `rolls`
                has rolls, and for the spot prices of `config.curve_of`.
            extra_variances: (B, T, H, N, X) variance per row of each of `config.extra_terms`, known at the row, or
                multiple of the slow variance; NaN = the slow variance, that of the longest half-life.
            references: (B, T, R) prices of `config.references`, which help to forecast the symbols.
            days: (B, T) int64, days since 1970-01-01, for the season; None: no season is expected.
            bars: (B, T, N, 3) open, high and low if `config.bars`; a row without a usable range has its squared return,
                see `range_shocks`.
            last_rows: return only this number of last rows, with the same bits. The recurrences still run over all
                rows.
            past: what was kept of the rows before these; see `opkit.Past`.

        Raises:
            ValueError: a shape or dtype is wrong, or `rolls` ends before the longest horizon.
        """
        past = past or Past()
        inputs = ModelInputs(prices, rolls, curve, extra_variances, references, days, bars)
        if self.scale is not None:
            check_inputs(inputs, self.assets, self.config)
            inputs = scale_inputs(inputs, self.scale)
            prices, curve = inputs.prices, inputs.curve
        adjusted = self.adjust_rolls(inputs, last_rows=last_rows, past=past)
        own = own_rows(adjusted.returns)
        terms = self.variance_terms(adjusted, past, own if adjusted.shocks is adjusted.returns else None)
        trends = self.trends(adjusted.returns, terms.shape[1], past, own)
        features, log_scale = self.features(adjusted.returns, terms, trends), self.mix_variances(terms).log() / 2
        shift = adjusted.shift
        if self.location is not None:
            shift = shift + self.location(prices, references, days, self.slow_variance(terms), past, curve, trends)
        return HarOutput(tail(prices, last_rows), tail(adjusted.returns, last_rows), features, shift, log_scale)

    def quantiles(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:  # (B, T, H, N, Q)
        """Quantiles of the cumulative log-return after every row; see `corrected_log_scale`."""
        scale = self.corrected_log_scale(har_output, raw_correction).exp().unsqueeze(-1)
        return har_output.shift.unsqueeze(-1) + scale * self.z.to(scale)

    def last_quantiles(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:  # (B, H, N, Q)
        """`quantiles` of the last row."""
        last = HarOutput(*(x[:, -1:] for x in har_output))
        return self.quantiles(last, None if raw_correction is None else raw_correction[:, -1:])[:, 0]

    def corrected_log_scale(self, har_output: HarOutput, raw_correction: Tensor | None = None) -> Tensor:
        """log sigma (B, T, H, N) plus the bounded and shrunk output of a network; without one, log sigma itself."""
        warm = torch.isfinite(har_output.log_scale)
        log_scale = torch.where(warm, har_output.log_scale, 0.0)  # keeps the NaNs of the warm-up out of the gradient
        if raw_correction is not None:
            correction = self.scale_correction(raw_correction)
            log_scale = log_scale + (correction * self.shrink[:, None].to(correction)).to(log_scale)
        return torch.where(warm, log_scale, torch.nan)

    def scale_correction(self, raw_correction: Tensor) -> Tensor:
        """A network's output as a change of log sigma within +-bound, before shrinking."""
        return self.config.bound * torch.tanh(raw_correction)

    def returns(self, prices: Tensor, past: Past | None = None) -> Tensor:  # (B, T, N) -> (B, T, N)
        """Log-returns, clipped to +-cap; for variances and features only."""
        returns: Tensor = (past or Past()).call("returns", log_returns, prices)
        return self.clip(returns)

    def clip(self, returns: Tensor) -> Tensor:  # (..., N)
        """Returns within +-cap, or within 0.25 for symbols with a price scale, whose returns are in units of it."""
        if self.scale is None:
            return returns.clamp(-self.config.cap, self.config.cap)
        largest = torch.full_like(self.scale, LARGEST_CHANGE)
        cap = torch.where(self.scale.isnan(), self.config.cap, largest).to(returns)
        return returns.clamp(-cap, cap)

    def adjust_rolls(
        self, inputs: ModelInputs, *, last_rows: int | None = None, past: Past | None = None
    ) -> AdjustedReturns:
        """Returns without the gaps of contract rolls, and the effect of the upcoming rolls at the last rows.

        The curve gives the gaps that it prices. Any other gap is expected to be the mean of the symbol's past gaps of
        that month, shrunk to zero unless they differ by month, see `weigh_gaps`, and adds its own variance. The inputs
        are those of `forward`, with their batch axis.
        """
        check_inputs(inputs, self.assets, self.config)
        prices, rolls, curve, extra, *_, bars, _ = inputs
        extra = None if extra is None else tail(extra, last_rows)
        past = past or Past()
        returns, (B, T, N) = self.returns(prices, past), prices.shape
        if rolls is None:
            zeros = prices.new_zeros(()).expand(B, tail(prices, last_rows).shape[1], len(self.config.horizons), N)
            shift = self._add_averaging(zeros, returns, past)
            shocks = self._shocks(returns, prices, bars, past)
            return AdjustedReturns(returns, shocks, *self._mean_square(shocks, past), shift, zeros, extra)
        has_price = (prices > 0) & (prices < torch.inf)
        horizons = self.config.horizons
        rolls_ahead = find_rolls(rolls[:, : T + horizons[-1]], has_price, returns, horizons, last_rows, past)
        clean = torch.where(rolls_ahead.passed, torch.nan, returns)
        shocks = self._shocks(clean, prices, bars, past)
        count, long_run = self._mean_square(shocks, past)
        priors = GapPriors(self.config.gap_prior, self.config.gap_variance_prior)
        ahead = weigh_gaps(rolls_ahead, tail(long_run, last_rows), priors)
        shift, variance = ahead.shift, ahead.counts * ahead.gap_variance.unsqueeze(2)
        if curve is not None:
            priced = curve_shift(tail(curve, last_rows).to(shift), ahead.counts)
            shift = torch.where(priced.isfinite(), priced, shift)
            variance = torch.where(priced.isfinite(), 0.0, variance)
        shift = self._add_averaging(shift, clean, past)
        return AdjustedReturns(clean, shocks, count, long_run, shift, variance, extra)

    def _shocks(self, returns: Tensor, prices: Tensor, bars: Tensor | None, past: Past) -> Tensor:  # (B, T, N)
        """The returns, in size what the bar of a row says where the symbol has ranges."""
        if bars is None:
            return returns
        bars = torch.where(self.has_ranges[:, None], bars.to(prices), torch.nan)
        return range_shocks(returns, prices, bars, self.config.cap, past)

    def variance_terms(
        self, adjusted: AdjustedReturns, past: Past | None = None, own: OwnRows | None = None
    ) -> Tensor:  # (B, L, H, N, K)
        """The K variances per row of the mix; NaN during warm-up. `own`: `own_rows(adjusted.shocks)`, if known."""
        past, shocks, rows = past or Past(), adjusted.shocks, adjusted.gap_variance.shape[1]
        # as `riskmetrics_variance`, which would square the shocks for each half-life
        valid = torch.isfinite(shocks)
        observed = torch.where(valid, shocks, 0.0).square().where(valid, torch.nan)
        shared = [
            past.call(f"ewm{halflife}", ewm_mean, observed, halflife=halflife, ignore_na=True)
            for halflife in self.config.halflives
        ]
        shared.append(adjusted.long_run)
        garch = self._garch_term(own or own_rows(shocks), rows, past)
        of_all_horizons = torch.stack([tail(v, rows) for v in shared], -1).unsqueeze(2)  # (B, L, 1, N, K - 2)
        terms = torch.cat([of_all_horizons.expand(-1, -1, garch.shape[2], -1, -1), garch.unsqueeze(-1)], -1)
        if adjusted.extra_variances is not None:
            slow = terms[..., len(self.config.halflives) - 1]
            terms = torch.cat([terms, self._extra_terms(adjusted.extra_variances, slow)], -1)
        horizons = shocks.new_tensor(self.config.horizons)[:, None]
        gaps = (adjusted.gap_variance / horizons).unsqueeze(-1)
        warm = tail(adjusted.observations >= self.config.warmup, rows)[..., None, :, None]
        return torch.where(warm, torch.cat([terms.clamp(min=self.config.floor), gaps], -1), torch.nan)

    def slow_variance(self, terms: Tensor) -> Tensor:  # (B, L, H, N, K) -> (B, L, N)
        """Variance per row of the longest half-life; NaN during warm-up."""
        return terms[:, :, 0, :, len(self.config.halflives) - 1]

    def _add_averaging(self, shift: Tensor, returns: Tensor, past: Past) -> Tensor:  # (B, L, H, N), (B, T, N)
        """The expected gaps, and what of the last return averages are still to follow."""
        if not self.config.averages:
            return shift
        theta = self.theta.to(returns)
        return shift + tail(theta * last_innovations(returns, theta, past), shift.shape[1]).unsqueeze(2)

    def _mean_square(self, shocks: Tensor, past: Past) -> tuple[Tensor, Tensor]:  # (B, T, N) each
        """Number and mean square of the shocks up to each row."""
        valid = torch.isfinite(shocks)
        count = past.cumsum("count", valid)
        squares = past.cumsum("squares", torch.where(valid, shocks, 0.0).square())
        return count, (squares / count.clamp(min=1)).clamp(min=self.config.floor)

    def garch_parameters(self) -> tuple[Tensor, Tensor, Tensor]:  # (N,) each
        """omega, alpha, beta of every asset: stationary, with the variance targeted at `long_run`."""
        persistence, reaction = PERSISTENCE * torch.sigmoid(self.persistence), torch.sigmoid(self.reaction)
        return self.long_run * (1 - persistence), persistence * reaction, persistence * (1 - reaction)

    def mix_variances(self, terms: Tensor) -> Tensor:  # (B, T, H, N, K) -> (B, T, H, N)
        """sigma_h^2 = h sum_k c_hk v_k, the variance of the cumulative log-return."""
        horizons = terms.new_tensor(self.config.horizons)[:, None]
        # sequential additions: in `sum` or a matrix product their order depends on the number of rows
        parts = self.mix.unsqueeze(1).to(terms) * terms
        return horizons * reduce(torch.add, parts.unbind(-1))

    def trends(
        self, returns: Tensor, rows: int, past: Past | None = None, own: OwnRows | None = None
    ) -> Tensor:  # (B, T, N) -> (B, L, N, K)
        """Sums of the last k returns of each symbol, k of `config.trends`, at the last rows."""
        path, count = return_paths(own or own_rows(returns), self.config.trends[-1], past or Past())
        count = tail(count, rows)
        last = path.gather(1, count)
        return torch.stack([last - path.gather(1, (count - k).clamp(min=0)) for k in self.config.trends], -1)

    def features(
        self, returns: Tensor, terms: Tensor, trends: Tensor
    ) -> Tensor:  # (B, T, N), (B, L, H, N, K), (B, L, N, K') -> (B, L, N, F)
        """Dimensionless features of each symbol's past; zero during warm-up."""
        # terms at the first horizon, without the roll term: (B, L, N, K - 1)
        rows, terms = terms.shape[1], terms[..., 0, :, :-1]
        ratios = terms.log().diff(dim=-1)
        steps = tail(returns, rows)
        sizes = [torch.where(torch.isfinite(steps), steps, 0.0) / terms[..., 1].sqrt()]
        for k, trend in zip(self.config.trends, trends.unbind(-1)):
            sizes.append(trend / (k * terms[..., len(self.config.halflives)]).sqrt())
        features = torch.cat([ratios, torch.stack(sizes, -1).abs().log1p()], -1)
        return torch.where(torch.isfinite(features), features, 0.0)

    def _garch_term(self, own: OwnRows, rows: int, past: Past) -> Tensor:  # (B, L, H, N)
        omega, alpha, beta = (x.to(own.returns) for x in self.garch_parameters())
        # row k of garch_variance uses the first k returns, and so does the forecast at a row with k returns up to it
        variance = garch_variance(own.returns, omega, alpha, beta, initial=past.get("garch"))
        past.keep("garch", variance.gather(1, own.counts[:, -1:]).squeeze(1))
        next_variance = variance.gather(1, tail(own.counts, rows))
        long_run, persistence = self.long_run.to(variance), alpha + beta
        steps = variance.new_tensor(self.config.horizons)[:, None]
        # mean over k < h of E h_{t+1+k} = long_run + persistence^k (h_{t+1} - long_run)
        share = (1 - persistence**steps) / ((1 - persistence) * steps)
        return long_run + share * (next_variance - long_run).unsqueeze(-2)

    def _extra_terms(self, extra: Tensor, slow: Tensor) -> Tensor:  # (B, L, H, N, X), (B, L, H, N) -> (B, L, H, N, X)
        """Variances per row: `extra_ratios` are multiples of the slow variance, which also stands for NaN."""
        ratios = [name in self.config.extra_ratios for name in self.config.extra_terms]
        slow = slow.unsqueeze(-1)
        terms = extra.to(slow) * torch.where(torch.tensor(ratios, device=extra.device), slow, 1.0)
        return torch.where(terms.isfinite(), terms, slow)

"""HAR-LSTM: raw prices to quantiles of log-returns, an econometric term structure of volatility bent by an LSTM.

Legend: B batch, T time, N assets, H horizons, Q quantiles, K variance terms, F features.

    returns -> EWMA variances, long-run mean, GARCH(1,1)     (B, T, N) each
    sigma_h^2 = h sum_k c_hk v_k,  c >= 0                     the HAR mix (Corsi 2009), fitted on the past
    log sigma_h += shrink_h bound tanh(LSTM(features))        zero before training: the untrained model is the mix, bit
    for bit quantiles = sigma_h z_h(tau)                              z empirical and sorted: quantiles cannot cross
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.ops import ewm_variance, garch_variance, log_returns

PERSISTENCE = 0.9995  # most that alpha + beta may be: shocks fade by half within 1400 rows
LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))


@dataclass(frozen=True)
class HarLstmConfig:
    """Everything that shapes a HarLstm; the defaults are those of the published table."""

    horizons: tuple[int, ...] = (5, 21, 63, 126)  # rows: a week, a month, a quarter, half a year
    levels: tuple[float, ...] = LEVELS
    halflives: tuple[int, ...] = (8, 21, 63, 252)  # rows with a return
    trends: tuple[int, ...] = (21, 63, 252)  # rows
    cap: float = 0.25  # a larger |log-return| counts as this in variances and features: one bad day is no regime
    floor: float = 1e-10  # least variance per row, 0.001 % a day: a price that stands still has a scale to divide by
    warmup: int = 252  # returns a symbol must have before its first forecast
    hidden: int = 8
    bound: float = 0.3  # the network moves log sigma by less than shrink * bound
    shrink: float = 0.5  # of what it learnt, this much is used: half loses least when what it learnt was noise

    def __post_init__(self) -> None:
        rising = {"horizons": self.horizons, "levels": self.levels, "halflives": self.halflives, "trends": self.trends}
        for name, values in rising.items():
            if not values or list(values) != sorted(set(values)) or values[0] <= 0:
                raise ValueError(f"HarLstmConfig: {name} must be positive and strictly rising; got {values}")
        if self.levels[-1] >= 1:
            raise ValueError(f"HarLstmConfig: levels must lie strictly between 0 and 1; got {self.levels}")

    @property
    def terms(self) -> tuple[str, ...]:
        """The K variance terms of the mix, in the order of its coefficients."""
        return (*(f"ewm{halflife}" for halflife in self.halflives), "long-run", "garch")

    @property
    def features(self) -> int:
        """F: the ratios of neighbouring variance terms, the size of the last return and of each trend."""
        return len(self.terms) + len(self.trends)


class HarLstm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Args:
        assets: N, the number of symbols; each has its own GARCH parameters, everything else is shared.
        config: the settings.

    Prices are in any unit; a price that is NaN, zero or negative is missing: variances carry on over it, and the
    forecast starts from the last positive price. A row of a symbol with fewer than `config.warmup` returns is NaN.
    Horizons count rows. Row t depends on rows <= t only. The econometric part computes in the dtype of the prices, the
    network in its own.

    Before `forecast.fit` the coefficients are a plain start: the mix all on the longest EWMA, normal quantiles.

    References:
        Corsi (2009). A simple approximate long-memory model of realized volatility. J. Financial Econometrics 7(2).
        doi:10.1093/jjfinec/nbp001.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    mix: Tensor  # (H, K), >= 0
    z: Tensor  # (H, Q), rising along Q
    shrink: Tensor  # (H,)
    long_run: Tensor  # (N,) variance per row that GARCH returns to

    def __init__(self, assets: int, config: HarLstmConfig = HarLstmConfig()) -> None:
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
        self.lstm = nn.LSTM(config.features, config.hidden, batch_first=True)
        self.head = nn.Linear(config.hidden, horizons)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, H, N, Q)
        """Quantiles of the cumulative log-return from the last positive price on, for the last row."""
        return self._quantiles(self.log_scale(prices)[:, -1])

    def all_rows(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
        """The same at every row in one pass; row t equals `forward(prices[:, : t + 1])`."""
        return self._quantiles(self.log_scale(prices))

    def baseline(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
        """Every row's quantiles without the network: the econometric forecast that training starts from."""
        self._check(prices)
        return self._quantiles(self.mixed(self.terms(self.returns(prices))).log() / 2)

    def log_scale(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N)
        """log sigma_h of the cumulative log-return at every row: the mix, corrected by the network."""
        self._check(prices)
        returns = self.returns(prices)
        terms = self.terms(returns)
        correction = self.correction(self.features(returns, terms)) * self.shrink[:, None].to(terms)
        return self.mixed(terms).log() / 2 + correction.to(terms)

    def returns(self, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, N)
        """Log-returns; one larger than the cap counts as the cap, in variances and features only."""
        return log_returns(prices).clamp(-self.config.cap, self.config.cap)

    def terms(self, returns: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, K)
        """The K variances per row that the mix weighs; NaN during warm-up. Only GARCH depends on the horizon."""
        known = torch.isfinite(returns)
        count = known.cumsum(-2)
        squared = torch.where(known, returns, 0.0).square()
        shared = [ewm_variance(returns, halflife) for halflife in self.config.halflives]
        shared.append(squared.cumsum(-2) / count.clamp(min=1))
        garch = self._garch_term(returns)
        stacked = torch.stack([*(v.unsqueeze(-2).expand_as(garch) for v in shared), garch], -1)
        warm = (count >= self.config.warmup)[..., None, :, None]
        return torch.where(warm, stacked.clamp(min=self.config.floor), torch.nan)

    def garch(self) -> tuple[Tensor, Tensor, Tensor]:  # (N,) each
        """omega, alpha, beta of every asset: stationary, with the variance targeted at `long_run`."""
        persistence, reaction = PERSISTENCE * torch.sigmoid(self.persistence), torch.sigmoid(self.reaction)
        return self.long_run * (1 - persistence), persistence * reaction, persistence * (1 - reaction)

    def mixed(self, terms: Tensor) -> Tensor:  # (B, T, H, N, K) -> (B, T, H, N)
        """sigma_h^2 = h sum_k c_hk v_k, the variance of the cumulative log-return."""
        horizons = terms.new_tensor(self.config.horizons)[:, None]
        # an explicit sum, not a matrix product: its bits do not depend on the number of rows
        parts = [self.mix[:, k, None].to(terms) * terms[..., k] for k in range(terms.shape[-1])]
        return horizons * torch.stack(parts).sum(0)

    def features(self, returns: Tensor, terms: Tensor) -> Tensor:  # (B, T, N), (B, T, H, N, K) -> (B, T, N, F)
        """What the network sees, without unit; zero during warm-up, where there is no forecast."""
        terms = terms[..., 0, :, :]  # (B, T, N, K); the GARCH term of the first horizon
        ratios = terms.log().diff(dim=-1)
        move = torch.where(torch.isfinite(returns), returns, 0.0)
        path = move.cumsum(-2)
        sizes = [move / terms[..., 1].sqrt()]
        for k in self.config.trends:
            past = F.pad(path, (0, 0, k, 0))[..., : path.shape[-2], :]
            sizes.append((path - past) / (k * terms[..., len(self.config.halflives)]).sqrt())
        found = torch.cat([ratios, torch.stack(sizes, -1).abs().log1p()], -1)
        return torch.where(torch.isfinite(found), found, 0.0)

    def correction(self, features: Tensor) -> Tensor:  # (B, T, N, F) -> (B, T, H, N)
        """What the network adds to log sigma before it is shrunk, within +-bound; every asset by the same network."""
        B, T, N, width = features.shape
        rows = features.to(self.head.weight.dtype).transpose(1, 2).reshape(B * N, T, width)
        out = self.config.bound * torch.tanh(self.head(self.lstm(rows)[0]))  # (B N, T, H)
        return out.reshape(B, N, T, -1).permute(0, 2, 3, 1)

    def _garch_term(self, returns: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N)
        omega, alpha, beta = (x.to(returns) for x in self.garch())
        # one missing row more: garch_variance's row t uses r_{t-1}, and the forecast at t may use r_t
        after = garch_variance(F.pad(returns, (0, 0, 0, 1), value=torch.nan), omega, alpha, beta)[..., 1:, :]
        long_run, persistence = self.long_run.to(returns), alpha + beta
        steps = returns.new_tensor(self.config.horizons)[:, None]
        # mean over k < h of E h_{t+1+k} = long_run + persistence^k (h_{t+1} - long_run)
        share = (1 - persistence**steps) / ((1 - persistence) * steps)
        return long_run + share * (after - long_run).unsqueeze(-2)

    def _quantiles(self, log_scale: Tensor) -> Tensor:  # (..., H, N) -> (..., H, N, Q)
        return log_scale.exp().unsqueeze(-1) * self.z[:, None, :].to(log_scale)

    def _check(self, prices: Tensor) -> None:
        if prices.dim() != 3 or prices.shape[-1] != self.assets or not prices.is_floating_point():
            got = f"{tuple(prices.shape)} of {prices.dtype}"
            raise ValueError(f"HarLstm: prices must be floating point (B, T, N) with N={self.assets}; got {got}")

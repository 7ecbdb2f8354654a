"""Scenario GAN: noise to returns through stochastic volatility, and the critic that tells them from real windows.

Legend: B batch, T time, N assets, K speeds of volatility, M channels of noise.

    y_t = phi_k y_{t-1} + sqrt(1 - phi_k^2) w_t              states of ln sigma, K speeds: `linear_recurrence`
    ln sigma_t = level + sum_k S_k y_k,t + network           S_k lower triangular: assets are shaken together
    w_t hears L z of the row before                          leverage: what falls may shake
    r_t = sigma_t (L_t z_t + mean)                           rows of L_t at length one; below its diagonal it wanders

The critic reads returns in their own unit of volatility, their size, `riskmetrics_variance` at several half-lives,
the spread of exponentially weighted products of pairs, and statistics of the whole window. The gradient penalty of
WGAN-GP differentiates it twice, through these operators.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.nn import ConvBN1d
from torchcommodity.ops import ewm_mean, linear_recurrence, riskmetrics_variance

NEAR = 4  # of the lags, the first ones, at which the critic looks for leverage
EPSILON = 1e-3  # of a unit of volatility: |x| and ln v are smooth, so that they have a second derivative


@dataclass(frozen=True)
class ScenarioConfig:
    """Everything that shapes the generator and its critic."""

    window: int = 252  # rows
    halflives: tuple[float, ...] = (0.0, 5.0, 40.0, 252.0)  # rows, of log-volatility; 0 is fresh in every row
    channels: int = 16  # of the generator's network
    bound: float = 0.5  # most that the network adds to ln sigma
    drifts: float = 252.0  # half-life, rows, of what correlations wander by
    spans: tuple[float, ...] = (3.0, 10.0, 40.0)  # half-lives, rows, of the variances that the critic reads
    correlation: float = 40.0  # half-life, rows, of the covariances that the critic reads
    lags: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 60)  # rows, of the critic's autocorrelations
    critic: int = 32  # its channels

    def __post_init__(self) -> None:
        if self.window <= max(self.lags) or min(self.halflives) < 0 or not self.spans:
            raise ValueError(f"ScenarioConfig: window must exceed every lag, half-lives be >= 0; got {self}")


class ScenarioGenerator(nn.Module):
    """Noise (B, T, M) to log-returns (B, T, N).

    Args:
        assets: N.
        config: the settings.

    Before training the network is silent: returns are those of a stochastic-volatility model whose parameters
    `forecast.fit_scenarios` finds by moments.

    Example:
        >>> import torch
        >>> generator = ScenarioGenerator(5).eval()
        >>> generator(torch.randn(2, 252, generator.noise)).shape
        torch.Size([2, 252, 5])
    """

    phi: Tensor  # (K,)

    def __init__(self, assets: int, config: ScenarioConfig = ScenarioConfig()) -> None:
        super().__init__()
        self.assets, self.config = assets, config
        speeds = len(config.halflives)
        self.register_buffer("phi", torch.tensor([_phi(h) for h in config.halflives]))
        self.level = nn.Parameter(torch.full((assets,), -4.0))  # ln sigma, log-return per row
        self.mean = nn.Parameter(torch.zeros(assets))  # in units of sigma
        self.shake = nn.Parameter(0.2 * torch.eye(assets).repeat(speeds, 1, 1))  # (K, N, N), lower: of ln sigma
        self.leverage = nn.Parameter(torch.zeros(speeds, assets))  # atanh of the share that hears the last return
        self.factor = nn.Parameter(torch.eye(assets))  # lower: its rows, at length one, correlate the returns
        self.drift = nn.Parameter(torch.full((assets * (assets - 1) // 2,), 0.1))  # of the factor below its diagonal
        self.mixing = ConvBN1d(self.noise, config.channels, 5, padding="causal")
        self.memory = ConvBN1d(config.channels, config.channels, 5, padding="causal", dilation=4)
        self.head = nn.Conv1d(config.channels, assets, 1)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    @property
    def noise(self) -> int:
        """M: a channel for each asset, each of its speeds of volatility, and each pair."""
        return sum(self._channels())

    def forward(self, noise: Tensor) -> Tensor:  # (B, T, M) -> (B, T, N)
        """Log-returns per row; the first row's state is drawn from its stationary distribution."""
        if noise.dim() != 3 or noise.shape[-1] != self.noise:
            got = tuple(noise.shape)
            raise ValueError(f"ScenarioGenerator: noise must be (B, T, M) with M={self.noise}; got {got}")
        z, fresh, pairs = noise.split(self._channels(), -1)
        shocks = self.innovations(z, pairs)
        sigma = (self.log_volatility(fresh, shocks) + self.correction(noise)).exp()
        return sigma * (shocks + self.mean)

    def innovations(self, z: Tensor, pairs: Tensor) -> Tensor:  # (B, T, N), (B, T, N (N - 1) / 2) -> (B, T, N)
        """Unit variance, correlated; the correlation wanders slowly."""
        row, column = torch.tril_indices(self.assets, self.assets, offset=-1)
        slow = _stationary(pairs, z.new_tensor(_phi(self.config.drifts)).expand(pairs.shape[-1]))
        below = self.factor[row, column] + self.drift * slow
        factor = torch.diag_embed(self.factor.diagonal()).expand(*z.shape, -1).clone()
        factor[..., row, column] = below
        length: Tensor = torch.linalg.vector_norm(factor, dim=-1)
        return (factor @ z.unsqueeze(-1)).squeeze(-1) / length

    def log_volatility(self, fresh: Tensor, shocks: Tensor) -> Tensor:  # (B, T, K N), (B, T, N) -> (B, T, N)
        """ln sigma: the level, and at each speed what the assets' shocks do together; they hear the last return."""
        K, N = len(self.phi), self.assets
        last = F.pad(shocks, (0, 0, 1, 0))[..., :-1, :].unsqueeze(-2)
        share = self.leverage.tanh()
        heard = share * last + (1 - share.square()).sqrt() * fresh.unflatten(-1, (K, N))
        state = _stationary(heard.flatten(-2), self.phi.repeat_interleave(N)).unflatten(-1, (K, N))
        shaken: Tensor = self.shake.tril() @ state.unsqueeze(-1)
        return self.level + shaken.squeeze(-1).sum(-2)

    def correction(self, noise: Tensor) -> Tensor:  # (B, T, M) -> (B, T, N)
        """What the network adds to ln sigma, bounded. It adds nothing to the mean: direction is not to be learned."""
        hidden = F.silu(self.memory(F.silu(self.mixing(noise.mT))))
        return self.config.bound * torch.tanh(self.head(hidden).mT)

    def _channels(self) -> list[int]:
        return [self.assets, len(self.config.halflives) * self.assets, self.assets * (self.assets - 1) // 2]


def _phi(halflife: float) -> float:
    return 0.5 ** (1 / halflife) if halflife else 0.0


def _stationary(noise: Tensor, phi: Tensor) -> Tensor:  # (B, T, C), (C,) -> (B, T, C)
    """AR(1) of variance one: y_0 = w_0, y_t = phi y_{t-1} + sqrt(1 - phi^2) w_t."""
    scale = (1 - phi.square()).sqrt().expand_as(noise).clone()
    scale[..., 0, :] = 1.0
    return linear_recurrence(phi.expand_as(noise), scale * noise)


class ScenarioCritic(nn.Module):
    """Returns (B, T, N) to one number a window, the higher the more real.

    Args:
        scale: (N,) the standard deviation of the real returns, which makes all of them comparable.
        config: the settings.

    Every feature is smooth, so that the gradient penalty can be differentiated. No batch norm: a penalty on each
    window's own gradient allows none.

    Example:
        >>> import torch
        >>> ScenarioCritic(torch.full((5,), 0.02))(0.02 * torch.randn(2, 252, 5)).shape
        torch.Size([2])
    """

    scale: Tensor  # (N,)

    def __init__(self, scale: Tensor, config: ScenarioConfig = ScenarioConfig()) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("scale", scale)
        assets, width = len(scale), config.critic
        self.near = nn.Conv1d((2 + len(config.spans)) * assets, width, 5, stride=2)
        self.far = nn.Conv1d(width, width, 5, stride=3)
        self.whole = nn.Linear(self._statistics(assets), 2 * width)
        self.verdict = nn.Sequential(nn.Linear(4 * width + assets * assets, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, returns: Tensor) -> Tensor:  # (B, T, N) -> (B,)
        """How real each window looks."""
        x = returns / self.scale
        size = (x.square() + EPSILON).sqrt()
        variances = [(riskmetrics_variance(x, span) + EPSILON).log() for span in self.config.spans]
        rows = torch.cat([x, size, *variances], -1).mT
        hidden = F.silu(self.far(F.silu(self.near(rows))))
        products = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
        together = ewm_mean(products, halflife=self.config.correlation).std(1)
        whole = F.silu(self.whole(self.statistics(x, size, variances)))
        seen = torch.cat([hidden.mean(-1), hidden.square().mean(-1), whole, together], -1)
        verdict: Tensor = self.verdict(seen)
        return verdict.squeeze(-1)

    def statistics(self, x: Tensor, size: Tensor, variances: list[Tensor]) -> Tensor:  # (B, T, N) -> (B, S)
        """Moments of the whole window: level, spread and tails, what the past says of size, who moves with whom."""
        level = (x.square().mean(1) + EPSILON).log()
        centered = size - size.mean(1, keepdim=True)
        lagged = [self._lagged(centered, centered, k) for k in self.config.lags]
        lagged += [self._lagged(x, centered, k) for k in self.config.lags[:NEAR]] + [self._lagged(x, x, 1)]
        spread = [v.std(1) for v in variances]
        tails = (x.pow(4).mean(1) + EPSILON).log()
        return torch.cat([level, tails, x.mean(1), *spread, *lagged, self._pairs(x), self._pairs(centered)], -1)

    def _statistics(self, assets: int) -> int:
        lagged = len(self.config.lags) + len(self.config.lags[:NEAR]) + 1
        return (3 + len(self.config.spans) + lagged) * assets + assets * (assets - 1)

    @staticmethod
    def _lagged(x: Tensor, y: Tensor, k: int) -> Tensor:  # (B, T, N) -> (B, N)
        both = (x.square().mean(1) * y.square().mean(1) + EPSILON).sqrt()
        return (x[:, :-k] * y[:, k:]).mean(1) / both

    @staticmethod
    def _pairs(x: Tensor) -> Tensor:  # (B, T, N) -> (B, N (N - 1) / 2)
        z = x / (x.square().mean(1, keepdim=True) + EPSILON).sqrt()
        row, column = torch.triu_indices(x.shape[-1], x.shape[-1], offset=1)
        return (z.mT @ z / x.shape[1])[:, row, column]

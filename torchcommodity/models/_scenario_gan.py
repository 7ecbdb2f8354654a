"""Scenario GAN: a stochastic-volatility generator of joint returns, and its critic.

Legend: B batch, T time, N assets, K volatility components, M channels of noise.

    y_t = phi_k y_{t-1} + sqrt(1 - phi_k^2) w_t              components of ln sigma, K half-lives: `linear_recurrence`
    ln sigma_t = level + sum_k S_k y_k,t + network           S_k lower triangular: loadings shared by the assets
    w_t is correlated with L z of the row before             leverage effect
    r_t = sigma_t (L_t z_t + mean)                           rows of L_t have length one; below the diagonal L_t varies

The inputs of the critic are returns in units of their volatility, their absolute values, `riskmetrics_variance` at
several half-lives, the variation of exponentially weighted products of pairs, and moments of the window. The gradient
penalty of WGAN-GP differentiates it twice, through these operators.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.models._config_fields import PositiveFloat, PositiveFloats, PositiveInt, PositiveInts, check_fields
from torchcommodity.nn import ConvBN1d
from torchcommodity.ops import ewm_mean, linear_recurrence, riskmetrics_variance

LEVERAGE_LAGS = 4  # number of the first critic lags that also enter the leverage moments
EPSILON = 1e-3  # in units of volatility: smooths |x| and ln v, so that they have second derivatives


@dataclass(frozen=True)
class ScenarioGanConfig:
    """Settings of the generator and its critic; the defaults are those of the published results."""

    window: PositiveInt = 252  # rows
    halflives: tuple[float, ...] = (0.0, 5.0, 40.0, 252.0)  # rows, of the components of ln sigma; 0 is white noise
    channels: PositiveInt = 16  # of the generator's network
    bound: PositiveFloat = 0.5  # the network changes ln sigma by less than this
    correlation_halflife: PositiveFloat = 252.0  # rows, of the variation of correlations
    critic_halflives: PositiveFloats = (3.0, 10.0, 40.0)  # rows, of the critic's variances
    critic_correlation_halflife: PositiveFloat = 40.0  # rows, of the critic's products of pairs
    critic_lags: PositiveInts = (1, 2, 4, 8, 16, 32, 60)  # rows, of the critic's autocorrelations
    critic_channels: PositiveInt = 32

    def __post_init__(self) -> None:
        check_fields(self)
        if self.window <= max(self.critic_lags) or min(self.halflives) < 0 or not self.critic_halflives:
            rule = "window must exceed every critic lag, half-lives must be >= 0, critic_halflives must not be empty"
            raise ValueError(f"ScenarioGanConfig: {rule}; got {self}")


class ScenarioGenerator(nn.Module):
    """Noise (B, T, M) to log-returns (B, T, N).

    Args:
        assets: N, the number of symbols.
        config: settings.

    The output of the untrained network is zero: returns then follow a stochastic-volatility model, whose parameters
    `scenarios.fit_scenarios` estimates by moments.

    Raises:
        ValueError: the noise is not (B, T, M).

    Example:
        >>> import torch
        >>> generator = ScenarioGenerator(5).eval()
        >>> generator(torch.randn(2, 252, generator.noise_channels)).shape
        torch.Size([2, 252, 5])
    """

    phi: Tensor  # (K,)

    def __init__(self, assets: int, config: ScenarioGanConfig = ScenarioGanConfig()) -> None:
        super().__init__()
        self.assets, self.config = assets, config
        components = len(config.halflives)
        self.register_buffer("phi", torch.tensor([_phi(h) for h in config.halflives]))
        self.level = nn.Parameter(torch.full((assets,), -4.0))  # ln sigma, log-return per row
        self.mean = nn.Parameter(torch.zeros(assets))  # in units of sigma
        self.loadings = nn.Parameter(0.2 * torch.eye(assets).repeat(components, 1, 1))  # (K, N, N), lower triangular
        self.leverage = nn.Parameter(torch.zeros(components, assets))  # atanh of the correlation with the last return
        self.factor = nn.Parameter(torch.eye(assets))  # lower triangular; its normalized rows correlate the returns
        self.factor_scale = nn.Parameter(torch.full((assets * (assets - 1) // 2,), 0.1))  # of its variation
        self.conv1 = ConvBN1d(self.noise_channels, config.channels, 5, padding="causal")
        self.conv2 = ConvBN1d(config.channels, config.channels, 5, padding="causal", dilation=4)
        self.head = nn.Conv1d(config.channels, assets, 1)
        for parameter in self.head.parameters():
            nn.init.zeros_(parameter)

    @property
    def noise_channels(self) -> int:
        """M: one channel for each asset, each of its volatility components, and each pair."""
        return sum(self._channels())

    def forward(self, noise: Tensor) -> Tensor:  # (B, T, M) -> (B, T, N)
        """Log-returns per row; the state of the first row has its stationary distribution."""
        if noise.dim() != 3 or noise.shape[-1] != self.noise_channels:
            got = tuple(noise.shape)
            raise ValueError(f"ScenarioGenerator: noise must be (B, T, M) with M={self.noise_channels}; got {got}")
        z, w, pairs = noise.split(self._channels(), -1)
        shocks = self.shocks(z, pairs)
        sigma = (self.log_volatility(w, shocks) + self.scale_correction(noise)).exp()
        return sigma * (shocks + self.mean)

    def shocks(self, z: Tensor, pairs: Tensor) -> Tensor:  # (B, T, N), (B, T, N (N - 1) / 2) -> (B, T, N)
        """Correlated shocks of unit variance; the correlation varies slowly."""
        row, column = torch.tril_indices(self.assets, self.assets, offset=-1)
        slow = _stationary_ar1(pairs, z.new_tensor(_phi(self.config.correlation_halflife)).expand(pairs.shape[-1]))
        below = self.factor[row, column] + self.factor_scale * slow
        factor = torch.diag_embed(self.factor.diagonal()).expand(*z.shape, -1).clone()
        factor[..., row, column] = below
        length: Tensor = torch.linalg.vector_norm(factor, dim=-1)
        return (factor @ z.unsqueeze(-1)).squeeze(-1) / length

    def log_volatility(self, w: Tensor, shocks: Tensor) -> Tensor:  # (B, T, K N), (B, T, N) -> (B, T, N)
        """ln sigma: level plus the loaded components, whose innovations are correlated with the last shocks."""
        K, N = len(self.phi), self.assets
        last = F.pad(shocks, (0, 0, 1, 0))[..., :-1, :].unsqueeze(-2)
        rho = self.leverage.tanh()
        innovations = rho * last + (1 - rho.square()).sqrt() * w.unflatten(-1, (K, N))
        state = _stationary_ar1(innovations.flatten(-2), self.phi.repeat_interleave(N)).unflatten(-1, (K, N))
        loaded: Tensor = self.loadings.tril() @ state.unsqueeze(-1)
        return self.level + loaded.squeeze(-1).sum(-2)

    def scale_correction(self, noise: Tensor) -> Tensor:  # (B, T, M) -> (B, T, N)
        """Correction of ln sigma by the network, within +-bound."""
        hidden = F.silu(self.conv2(F.silu(self.conv1(noise.mT))))
        return self.config.bound * torch.tanh(self.head(hidden).mT)

    def _channels(self) -> list[int]:
        return [self.assets, len(self.config.halflives) * self.assets, self.assets * (self.assets - 1) // 2]


class ScenarioCritic(nn.Module):
    """Returns (B, T, N) to one score per window, higher for real ones.

    Args:
        scale: (N,) standard deviation of the real returns, the unit of each asset.
        config: settings.

    Every feature is smooth, so that the gradient penalty can be differentiated. There is no batch norm, because the
    penalty applies to the gradient of each window separately.

    Example:
        >>> import torch
        >>> ScenarioCritic(torch.full((5,), 0.02))(0.02 * torch.randn(2, 252, 5)).shape
        torch.Size([2])
    """

    scale: Tensor  # (N,)

    def __init__(self, scale: Tensor, config: ScenarioGanConfig = ScenarioGanConfig()) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("scale", scale)
        assets, width = len(scale), config.critic_channels
        self.conv1 = nn.Conv1d((2 + len(config.critic_halflives)) * assets, width, 5, stride=2)
        self.conv2 = nn.Conv1d(width, width, 5, stride=3)
        lagged = len(config.critic_lags) + len(config.critic_lags[:LEVERAGE_LAGS]) + 1
        moments = (3 + len(config.critic_halflives) + lagged) * assets + assets * (assets - 1)  # S, see `moments`
        self.moments_layer = nn.Linear(moments, 2 * width)
        self.head = nn.Sequential(nn.Linear(4 * width + assets * assets, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, returns: Tensor) -> Tensor:  # (B, T, N) -> (B,)
        """Score of each window."""
        x = returns / self.scale
        size = (x.square() + EPSILON).sqrt()
        variances = [(riskmetrics_variance(x, span) + EPSILON).log() for span in self.config.critic_halflives]
        rows = torch.cat([x, size, *variances], -1).mT
        hidden = F.silu(self.conv2(F.silu(self.conv1(rows))))
        products = (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)
        comovement = ewm_mean(products, halflife=self.config.critic_correlation_halflife).std(1)
        moments = F.silu(self.moments_layer(self.moments(x, size, variances)))
        features = torch.cat([hidden.mean(-1), hidden.square().mean(-1), moments, comovement], -1)
        score: Tensor = self.head(features)
        return score.squeeze(-1)

    def moments(self, x: Tensor, size: Tensor, variances: list[Tensor]) -> Tensor:  # (B, T, N) -> (B, S)
        """Moments of each window: level, tails, mean, variation, autocorrelation, leverage, cross-correlation."""
        lags = self.config.critic_lags
        level = (x.square().mean(1) + EPSILON).log()
        centered = size - size.mean(1, keepdim=True)
        lagged = [self._lagged(centered, centered, k) for k in lags]
        lagged += [self._lagged(x, centered, k) for k in lags[:LEVERAGE_LAGS]] + [self._lagged(x, x, 1)]
        variation = [v.std(1) for v in variances]
        tails = (x.pow(4).mean(1) + EPSILON).log()
        return torch.cat([level, tails, x.mean(1), *variation, *lagged, self._pairs(x), self._pairs(centered)], -1)

    @staticmethod
    def _lagged(x: Tensor, y: Tensor, k: int) -> Tensor:  # (B, T, N) -> (B, N)
        norm = (x.square().mean(1) * y.square().mean(1) + EPSILON).sqrt()
        return (x[:, :-k] * y[:, k:]).mean(1) / norm

    @staticmethod
    def _pairs(x: Tensor) -> Tensor:  # (B, T, N) -> (B, N (N - 1) / 2)
        z = x / (x.square().mean(1, keepdim=True) + EPSILON).sqrt()
        row, column = torch.triu_indices(x.shape[-1], x.shape[-1], offset=1)
        return (z.mT @ z / x.shape[1])[:, row, column]


def _phi(halflife: float) -> float:
    return 0.5 ** (1 / halflife) if halflife else 0.0


def _stationary_ar1(noise: Tensor, phi: Tensor) -> Tensor:  # (B, T, C), (C,) -> (B, T, C)
    """AR(1) of variance one: y_0 = w_0, y_t = phi y_{t-1} + sqrt(1 - phi^2) w_t."""
    scale = (1 - phi.square()).sqrt().expand_as(noise).clone()
    scale[..., 0, :] = 1.0
    return linear_recurrence(phi.expand_as(noise), scale * noise)

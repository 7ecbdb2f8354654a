"""Volatility models with learned parameters: exponential averages and GARCH."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization
from torch.types import Device

from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.nn._parametrizations import Interval, Positive
from torchcommodity.ops import ewm_mean, garch_variance

PERSISTENCE = 0.9995  # upper bound of alpha + beta: the half-life of a shock is at most 1400 rows


class EwmVolatility(nn.Module):
    """Exponentially weighted volatility at several learned, positive half-lives.

    v_t = (1 - a) v_{t-1} + a r_t^2 with a = 1 - 2^(-1 / halflife), and the weights adjusted as in
    `ops.riskmetrics_variance`; the volatility is the root of v.

    Args:
        halflives: K initial half-lives, in rows with a return, > 0.
        assets: N for half-lives per asset; None shares them.

    Shape:
        returns (..., T, N), log-returns per row; NaN where missing -> volatility per row (..., T, N, K). Causal; row t
        includes r_t. Missing returns leave the volatility unchanged; NaN before the first return. Where the
        volatility is zero, so is its gradient.

    The parameter is `halflife` (K, 1) or (K, N).

    Raises:
        ValueError, TypeError: a half-life is not positive, or returns are not a floating-point panel.

    References:
        J.P. Morgan, Reuters (1996). RiskMetrics Technical Document, 4th edition, section 5.2.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.EwmVolatility([1.0, 8.0])
        >>> layer(torch.tensor([[1.0], [torch.nan], [3.0]])).squeeze(1)
        tensor([[1.0000, 1.0000],
                [1.0000, 1.0000],
                [2.5166, 2.2745]], grad_fn=<SqueezeBackward1>)
    """

    def __init__(
        self,
        halflives: Sequence[float],
        assets: int | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("EwmVolatility", 1, assets=1 if assets is None else assets)
        if not halflives or min(halflives) <= 0:
            raise_invalid("EwmVolatility", "halflives must be positive", halflives=halflives)
        start = torch.tensor(halflives, device=device, dtype=dtype or torch.get_default_dtype()).unsqueeze(-1)
        self.halflife = nn.Parameter(start.repeat(1, assets or 1))
        register_parametrization(self, "halflife", Positive(unit=start))

    def forward(self, returns: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N, K)
        """Volatility per row at each half-life."""
        check_panel("EwmVolatility", returns=returns)
        valid = returns.isfinite()
        squared = returns.where(valid, 0.0).square().where(valid, torch.nan).unsqueeze(-3)  # (..., 1, T, N)
        squared = squared.expand(*squared.shape[:-3], len(self.halflife), -1, -1)
        variance = ewm_mean(squared, halflife=self.halflife, ignore_na=True).movedim(-3, -1)
        positive = variance > 0
        return torch.where(positive, variance.where(positive, 1.0).sqrt(), variance.detach())

    def learned_parameters(self) -> dict[str, Tensor]:
        """Half-lives in rows."""
        return {"halflife": self.halflife.detach()}


class GarchVariance(nn.Module):
    """GARCH(1,1) with learned parameters, always stationary.

    h_t = omega + alpha r_{t-1}^2 + beta h_{t-1}, starting from the long-run variance, with alpha + beta = `persistence`
    < 0.9995, alpha = `reaction` x `persistence` and omega = `long_run` (1 - `persistence`).

    Args:
        assets: N for parameters per asset; 1 shares them.
        long_run: initial long-run variance per row, > 0: a number, or a Tensor (N,).
        persistence: initial alpha + beta, in (0, 0.9995).
        reaction: initial alpha / (alpha + beta), in (0, 1).

    Shape:
        returns (..., T, N), log-returns per row; NaN where missing -> h (..., T, N), a variance per row that is known
        before r_t. Causal, no warm-up; a missing r_{t-1}^2 is replaced by its expectation h_{t-1}.

    Raises:
        ValueError, TypeError: an initial value is out of range, or returns are not a floating-point panel of N assets.

    References:
        Bollerslev (1986). Generalized autoregressive conditional heteroskedasticity. J. Econometrics 31(3).
        doi:10.1016/0304-4076(86)90063-1.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> layer = nn.GarchVariance(long_run=1.0, persistence=0.9, reaction=0.1)
        >>> layer(torch.tensor([[1.0], [-2.0], [torch.nan]])).squeeze(-1)
        tensor([1.0000, 1.0000, 1.2700], grad_fn=<SqueezeBackward1>)
        >>> {name: round(value.item(), 3) for name, value in layer.learned_parameters().items()}
        {'omega': 0.1, 'alpha': 0.09, 'beta': 0.81}
    """

    def __init__(
        self,
        assets: int = 1,
        long_run: float | Tensor = 2e-4,
        persistence: float = 0.97,
        reaction: float = 0.08,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_integer("GarchVariance", 1, assets=assets)
        ones = torch.ones(assets, device=device, dtype=dtype)
        self.long_run = nn.Parameter(ones * torch.as_tensor(long_run).to(ones))
        self.persistence = nn.Parameter(ones * persistence)
        self.reaction = nn.Parameter(ones * reaction)
        register_parametrization(self, "long_run", Positive(unit=torch.as_tensor(long_run)))
        register_parametrization(self, "persistence", Interval(0, PERSISTENCE))
        register_parametrization(self, "reaction", Interval(0, 1))

    def forward(self, returns: Tensor) -> Tensor:  # (..., T, N)
        """h_t, from the returns before row t."""
        return garch_variance(returns, *self.coefficients())

    def next_variance(self, returns: Tensor) -> Tensor:  # (..., T, N)
        """h_{t+1}, from the returns up to row t."""
        padded = F.pad(returns, (0, 0, 0, 1), value=torch.nan)
        return garch_variance(padded, *self.coefficients())[..., 1:, :]

    def coefficients(self) -> tuple[Tensor, Tensor, Tensor]:  # (N,) each
        """omega, alpha and beta."""
        persistence, reaction = self.persistence, self.reaction
        return self.long_run * (1 - persistence), persistence * reaction, persistence * (1 - reaction)

    def learned_parameters(self) -> dict[str, Tensor]:
        """omega (a variance per row), alpha and beta."""
        return dict(zip(("omega", "alpha", "beta"), (x.detach() for x in self.coefficients())))

"""The term structure of GARCH variance: what each day ahead is expected to add, and what the days add up to."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._volatility.garch_variance import garch_variance
from torchcommodity.ops._volatility.parameters import parameter, preceding


class GarchForecast(NamedTuple):
    variance: Tensor  # (..., T, H, N)
    cumulative: Tensor  # (..., T, H, N)


def garch_forecast(
    returns: Tensor,  # (..., T, N)
    omega: Tensor | float,  # (..., N)
    alpha: Tensor | float,  # (..., N)
    beta: Tensor | float,  # (..., N)
    gamma: Tensor | float | None = None,  # (..., N)
    initial: Tensor | float | None = None,  # (..., N)
    *,
    horizon: int | Sequence[int] = 1,
) -> GarchForecast:
    """Expected GARCH and GJR-GARCH variances of the days to come, at every row t from returns up to r_t.

    v_1 = h_{t+1} = omega + (alpha + gamma 1[r_t < 0]) r_t^2 + beta h_t, and v_k = omega + (alpha + gamma/2 + beta)
    v_{k-1} for each further step: E_t r_{t+k}^2 where the signs of returns are even. A persistence alpha + gamma/2 +
    beta of one and above has a forecast too; it grows with k.

    Args:
        returns, omega, alpha, beta, gamma, initial: as in `garch_variance`, with its units, NaN rule and errors.
        horizon: H, for the steps 1 to H, or the steps themselves, such as (5, 21, 63, 126) for 1w, 1m, 3m, 6m.

    Returns:
        variance, v_k of each step k alone, and cumulative, v_1 + ... + v_k, the variance of the return over k steps;
        both (..., T, H, N) in the unit of `returns` squared, of H steps. Causal, no warm-up.

    Raises:
        ValueError, TypeError: as `garch_variance`; `horizon` is no int >= 1, and no sequence of such.

    Devices: as `garch_variance`. Differentiable in all tensors, to any order, in both modes.

    References:
        Baillie, Bollerslev (1992). Prediction in dynamic models with time-dependent conditional variances. Journal of
        Econometrics 52(1-2). doi:10.1016/0304-4076(92)90066-Z

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[1.0], [-2.0]])  # percent
        >>> forecast = ops.garch_forecast(returns, omega=0.1, alpha=0.1, beta=0.8, horizon=3)
        >>> forecast.variance[-1].squeeze(-1)  # percent squared, of each of the three days after the last
        tensor([1.3000, 1.2700, 1.2430])
        >>> forecast.cumulative[-1].squeeze(-1)
        tensor([1.3000, 2.5700, 3.8130])
    """
    check_panel("garch_forecast", returns=returns)
    steps = _steps(horizon)
    first = garch_variance(pad(returns, (0, 0, 0, 1)), omega, alpha, beta, gamma, initial)[..., 1:, :].unsqueeze(-2)
    given = {"omega": omega, "alpha": alpha, "beta": beta, "gamma": 0.0 if gamma is None else gamma}
    base, rise, keep, fall = (parameter("garch_forecast", returns, name, x) for name, x in given.items())
    factors = _factors(rise + fall / 2 + keep, max(steps))
    weight, add, weights, adds = (x[..., [k - 1 for k in steps], :].unsqueeze(-3) for x in factors)
    unknown, base = first.isnan(), base[..., None, None, :]
    known = torch.where(unknown, 0, first)  # NaN times a factor would reach every parameter's gradient
    rows = [weight * known + add * base, weights * known + adds * base]
    return GarchForecast(*(x.masked_fill(unknown, torch.nan).to(returns.dtype) for x in rows))


def _factors(persistence: Tensor, longest: int) -> tuple[Tensor, ...]:
    """How v_k, k = 1 to `longest`, and its sum depend on v_1 and omega: each (..., H, N).

    v_k = p^(k-1) v_1 + (1 + p + ... + p^(k-2)) omega: recurrences are right for every p, where a closed
    form divides by 1 - p.
    """
    p = persistence.unsqueeze(-2).expand(*persistence.shape[:-1], longest, persistence.shape[-1])
    one, zero = torch.ones_like(persistence), torch.zeros_like(persistence)
    power = preceding(recur(p, torch.zeros_like(p), one), one)
    total = recur(torch.ones_like(p), power, None)  # 1, 1 + p, ...
    later = preceding(total, zero)
    return power, later, total, recur(torch.ones_like(p), later, None)


def _steps(horizon: int | Sequence[int]) -> list[int]:
    words = "horizon must be an int >= 1, or a sequence of such"
    if not isinstance(horizon, (int, Sequence)):
        raise_invalid("garch_forecast", words, TypeError, horizon=horizon)
    steps = list(range(1, horizon + 1)) if isinstance(horizon, int) else list(horizon)
    if not steps:
        raise_invalid("garch_forecast", words, horizon=horizon)
    check_integer("garch_forecast", 1, **{f"horizon[{i}]": step for i, step in enumerate(steps)})
    return steps

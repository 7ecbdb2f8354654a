"""Term structure of GARCH variance: forecasts of each step ahead and of their sum."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._scan.linear_recurrence_backward import previous_rows
from torchcommodity.ops._volatility.garch_variance import garch_variance
from torchcommodity.ops._volatility.parameters import broadcast_parameter


class GarchForecast(NamedTuple):
    """Variance forecasts of `garch_forecast` at every row, in squared units of the returns."""

    variance: Tensor  # (..., T, H, N), of the single step k
    cumulative: Tensor  # (..., T, H, N), of the return over steps 1 to k


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
    """GARCH and GJR-GARCH variance forecasts, made at every row t from returns up to r_t.

    v_1 = h_{t+1} = omega + (alpha + gamma 1[r_t < 0]) r_t^2 + beta h_t, then v_k = omega + (alpha + gamma/2 + beta)
    v_{k-1}. This is E_t[r_{t+k}^2] if positive and negative returns are equally likely. With a persistence alpha +
    gamma/2 + beta >= 1 the forecast grows without bound in k.

    Args:
        returns, omega, alpha, beta, gamma, initial: As in `garch_variance`, with its units, NaN rule and errors.
        horizon: An int H for steps 1 to H, or a sequence of steps, such as (5, 21, 63, 126) for 1w, 1m, 3m, 6m.

    Returns:
        `GarchForecast(variance, cumulative)`: v_k of each step k, and v_1 + ... + v_k, the variance of the return over
        k steps; both (..., T, H, N) for H steps, in squared units of `returns`. Causal, no warm-up.

    Raises:
        ValueError, TypeError: As for `garch_variance`, or if `horizon` is neither an int >= 1 nor a sequence of them.

    Devices: as `garch_variance`. Differentiable in all tensors, to any order, in reverse and forward mode.

    References:
        Baillie, Bollerslev (1992). Prediction in dynamic models with time-dependent conditional variances. Journal of
        Econometrics 52(1-2). doi:10.1016/0304-4076(92)90066-Z

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[1.0], [-2.0]])  # percent
        >>> forecast = ops.garch_forecast(returns, omega=0.1, alpha=0.1, beta=0.8, horizon=3)
        >>> forecast.variance[-1].squeeze(-1)  # percent squared, for the next three days
        tensor([1.3000, 1.2700, 1.2430])
        >>> forecast.cumulative[-1].squeeze(-1)
        tensor([1.3000, 2.5700, 3.8130])
    """
    check_panel("garch_forecast", returns=returns)
    expected = "horizon must be an int >= 1 or a sequence of them"
    if not isinstance(horizon, (int, Sequence)):
        raise_invalid("garch_forecast", expected, TypeError, horizon=horizon)
    steps = list(range(1, horizon + 1)) if isinstance(horizon, int) else list(horizon)
    if not steps:
        raise_invalid("garch_forecast", expected, horizon=horizon)
    check_integer("garch_forecast", 1, **{f"horizon[{i}]": step for i, step in enumerate(steps)})
    next_h = garch_variance(pad(returns, (0, 0, 0, 1)), omega, alpha, beta, gamma, initial)[..., 1:, :].unsqueeze(-2)
    arguments = {"omega": omega, "alpha": alpha, "beta": beta, "gamma": 0.0 if gamma is None else gamma}
    shape = (*returns.shape[:-2], returns.shape[-1])
    omega, alpha, beta, gamma = (
        broadcast_parameter("garch_forecast", name, x, "(..., N)", shape, returns=returns)
        for name, x in arguments.items()
    )
    factors = _factors(alpha + gamma / 2 + beta, max(steps))
    power, geometric, power_sum, geometric_sum = (x[..., [k - 1 for k in steps], :].unsqueeze(-3) for x in factors)
    missing, omega = next_h.isnan(), omega[..., None, None, :]
    next_h = torch.where(missing, 0, next_h)  # NaN x factor would make every parameter's gradient NaN
    forecasts = [power * next_h + geometric * omega, power_sum * next_h + geometric_sum * omega]
    return GarchForecast(*(x.masked_fill(missing, torch.nan).to(returns.dtype) for x in forecasts))


def _factors(persistence: Tensor, max_step: int) -> tuple[Tensor, ...]:
    """Factors of v_1 and omega in v_k and in v_1 + ... + v_k, for k = 1 to `max_step`: each (..., H, N).

    v_k = p^(k-1) v_1 + (1 + p + ... + p^(k-2)) omega. By recurrences, since the closed form divides by 1 - p.
    """
    p = persistence.unsqueeze(-2).expand(*persistence.shape[:-1], max_step, persistence.shape[-1])
    one, zero = torch.ones_like(persistence), torch.zeros_like(persistence)
    power = previous_rows(recur(p, torch.zeros_like(p), one), one)
    power_sum = recur(torch.ones_like(p), power, None)  # 1, 1 + p, ...
    geometric = previous_rows(power_sum, zero)
    return power, geometric, power_sum, recur(torch.ones_like(p), geometric, None)

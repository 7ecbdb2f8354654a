"""EGARCH(1,1) variance: ln h_t = omega + alpha (|z_{t-1}| - sqrt(2/pi)) + gamma z_{t-1} + beta ln h_{t-1}."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, has_kernel, live
from torchcommodity.ops._volatility.arch_oracle import arch_variance
from torchcommodity.ops._volatility.egarch_variance_backward import MEAN_ABSOLUTE
from torchcommodity.ops._volatility.egarch_variance_backward import operator as backward
from torchcommodity.ops._volatility.parameters import Parameter, check_parameters, float64_constant


def _update(past: Past, returns: Tensor, **arguments: Parameter) -> Tensor:
    native = has_kernel("commodity::egarch_variance_step", returns.device)
    parameters, log_variance = past.get("parameters"), past.get("log_variance")
    if parameters is None or log_variance is None:
        *values, start = check_parameters("egarch_variance", _initial_log_variance, returns, **arguments)
        parameters, log_variance = torch.stack(values), start.double() if native else start
        past.keep("parameters", parameters)
    step: Callable[..., Any] = torch.ops.commodity.egarch_variance_step if native else _step
    h, log_variance = step(returns.to(parameters), *parameters.unbind(0), log_variance)
    past.keep("log_variance", log_variance)
    result: Tensor = h.to(returns.dtype)
    return result


@live(_update)
def egarch_variance(
    returns: Tensor,  # (..., T, N)
    omega: Tensor | float,  # (..., N)
    alpha: Tensor | float,  # (..., N)
    beta: Tensor | float,  # (..., N)
    gamma: Tensor | float | None = None,  # (..., N)
    initial: Tensor | float | None = None,  # (..., N)
) -> Tensor:  # (..., T, N)
    """EGARCH(1,1) variance of each return given the returns before it; positive for all parameter values.

    ln h_t = omega + alpha (|z_{t-1}| - sqrt(2/pi)) + gamma z_{t-1} + beta ln h_{t-1} with z_t = r_t / sqrt(h_t) and
    h_0 = `initial`. h_t depends on returns up to r_{t-1}.

    Args:
        returns: Log-returns per step with mean zero; NaN is a missing return.
        omega: Constant of ln h, for h in squared units of `returns`.
        alpha: Effect of the size of the last standardized return (dimensionless).
        beta: Persistence, the weight of the last ln h (dimensionless).
        gamma: Leverage, the effect of the signed last standardized return (dimensionless). None means 0.
        initial: h_0, a variance in squared units of `returns`, > 0. None means exp(omega / (1 - beta)).
            The arch package starts at exp(omega + beta ln backcast).

    Returns:
        h, a variance (not a volatility) in squared units of `returns` and their dtype. Causal, no warm-up. At a missing
        return the recursion takes its expectation, ln h_{t+1} = omega + beta ln h_t; the gradient of that return is 0.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel, a parameter does not broadcast to (..., N),
            `initial` is not positive, or `initial` is None and |beta| >= 1.
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), invalid series are NaN instead.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Nelson (1991). Conditional heteroskedasticity in asset returns: a new approach. Econometrica 59(2).
        doi:10.2307/2938260

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[1.0], [-2.0], [float("nan")], [0.5]])  # percent
        >>> ops.egarch_variance(returns, omega=0.0, alpha=0.1, beta=0.9, gamma=-0.1).squeeze(-1)  # percent squared
        tensor([1.0000, 0.9233, 1.3030, 1.2690])
    """
    parameters = check_parameters("egarch_variance", _initial_log_variance, returns, omega, alpha, beta, gamma, initial)
    h: Tensor = operator(returns, *parameters)
    return h.to(returns.dtype)


def _initial_log_variance(
    omega: Tensor, beta: Tensor, initial: Tensor | None = None, **others: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """ln h_0, and for each rule the series (..., N) that satisfy it."""
    if initial is not None:
        positive = initial > 0
        return torch.where(positive, initial, 1).log(), {"initial must be > 0": positive}
    stationary = beta.abs() < 1
    start = omega / (1 - torch.where(stationary, beta, 0))  # a division by zero would make every gradient NaN
    return start, {"beta must be in (-1, 1) if initial is None": stationary}


def _reference(
    returns: Tensor,  # (..., T, N)
    omega: Tensor,  # (..., N), as all that follow
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    initial: Tensor,  # ln h_0
) -> Tensor:
    return _step(returns, omega, alpha, beta, gamma, initial)[0]


def _step(
    returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, log_h: Tensor
) -> tuple[Tensor, Tensor]:
    """h in each row, and ln h of the row after the last."""
    rows, mean_absolute = [], float64_constant(log_h, MEAN_ABSOLUTE)
    for r in returns.unbind(-2):
        rows.append(log_h.exp())
        z = r / (log_h / 2).exp()
        shock = alpha * (z.abs() - mean_absolute) + gamma * z
        log_h = omega + beta * log_h + torch.where(r.isnan(), 0, shock)
    return (torch.stack(rows, dim=-2) if rows else returns.new_empty(returns.shape)), log_h


def _backward(
    grad: Tensor,
    *,
    returns: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    output0: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    needs_returns = needs_input_grad[0]  # data as a rule
    y = backward(grad, returns, alpha, beta, gamma, output0, needs_returns)
    d_returns = y[..., : returns.shape[-2], :] if needs_returns else None
    return d_returns, *y[..., -5:, :].unbind(-2)


def _oracle(returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor) -> Tensor:
    backcast = (initial.log() - omega) / beta  # arch: ln h_0 = omega + beta x backcast, a log-variance
    return arch_variance("EGARCH", returns, backcast, omega, alpha, beta, gamma)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    uniform = torch.rand(5, 2, 3, dtype=torch.double, generator=generator)
    lower, width = torch.tensor([[-0.1, 0.1, 0.5, -0.2, 0.3], [0.2, 0.2, 0.4, 0.4, 2.0]]).double().view(2, 5, 1, 1)
    omega, alpha, beta, gamma, initial = uniform * width + lower
    arguments = (returns, omega, alpha, beta, gamma, initial)
    gaps = returns.clone()
    gaps[0, 0, 0] = gaps[0, 4:6, 1] = gaps[1, -1, 2] = torch.nan
    return Cases(
        function=egarch_variance,
        samples=(
            Sample(*arguments),
            Sample(gaps, *arguments[1:]),
            Sample(gaps, omega, alpha, beta),
            Sample(gaps, omega[:, :1], alpha[:1], beta, gamma[:1]),
            Sample(returns, omega=0.1, alpha=0.1, beta=0.8),
        ),
        bad=(
            Bad(Sample(returns[0, 0], *arguments[1:]), r"egarch_variance: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, omega=0.1, alpha=0.1, beta=1.0), r"beta must be in \(-1, 1\) if initial is None"),
            Bad(Sample(*arguments[:5], -initial), r"initial must be > 0; got initial=-1.\d+, series=\(0, 0\) with"),
            Bad(Sample(returns, omega[:, :2], alpha, beta), r"omega must broadcast to .*; got omega \(2, 2\), returns"),
            Bad(Sample(returns, omega="a", alpha=0.1, beta=0.8), "omega must be a number", TypeError),
        ),
        golden=(
            Golden(
                Sample(torch.tensor([[0.0], [0.0]]).double(), omega=0.1, alpha=0.2, beta=0.5),
                torch.tensor([[0.2], [0.2 - 0.2 * MEAN_ABSOLUTE]], dtype=torch.double).exp(),
                "by hand: ln h_0 = 0.1 / 0.5, and a return of zero subtracts 0.2 sqrt(2/pi)",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(*arguments),),  # arch accepts no missing returns; the reference covers them
    )


operator = Op(
    "commodity::egarch_variance",
    reference=_reference,
    backward=_backward,
    mask_nan_grad=False,  # egarch_variance_backward masks them
    cases=_cases,
)

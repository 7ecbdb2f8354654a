"""ln h_t = omega + alpha (|z_{t-1}| - sqrt(2/pi)) + gamma z_{t-1} + beta ln h_{t-1}: a variance without bounds."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, check_values
from torchcommodity.ops._volatility.arch_oracle import arch_variance
from torchcommodity.ops._volatility.egarch_variance_backward import MEAN_ABSOLUTE
from torchcommodity.ops._volatility.egarch_variance_backward import operator as adjoint
from torchcommodity.ops._volatility.parameters import in_full, parameter


def egarch_variance(
    returns: Tensor,  # (..., T, N)
    omega: Tensor | float,  # (..., N)
    alpha: Tensor | float,  # (..., N)
    beta: Tensor | float,  # (..., N)
    gamma: Tensor | float | None = None,  # (..., N)
    initial: Tensor | float | None = None,  # (..., N)
) -> Tensor:  # (..., T, N)
    """EGARCH(1,1) variance: h_t is known before r_t, from returns up to r_{t-1}; no parameter can make it negative.

    ln h_t = omega + alpha (|z_{t-1}| - sqrt(2/pi)) + gamma z_{t-1} + beta ln h_{t-1} with z_t = r_t / sqrt(h_t), and
    h_0 = `initial`.

    Args:
        returns: log-returns per step, of mean zero; NaN is a missing return.
        omega: the constant, in ln of the unit of `returns` squared.
        alpha: the weight of the size of the last standardized return, without unit.
        beta: the weight of the last ln h, without unit.
        gamma: the weight of the sign and size of the last standardized return, without unit. None is 0.
        initial: h_0, a variance in the unit of `returns` squared, > 0; None is exp(omega / (1 - beta)).
            arch starts at exp(omega + beta ln backcast).

    Returns:
        h, a variance (no volatility) in the unit of `returns` squared, in the dtype of `returns`. Causal, no warm-up. A
        missing return counts as its expectation, ln h_t = omega + beta ln h_{t-1}; its gradient is zero.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, a parameter does not broadcast to (..., N),
            `initial` is not positive, or there is nothing to start from (|beta| >= 1).
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), such a column is NaN instead.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable in all tensors, to any order, in both modes.

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
    check_panel("egarch_variance", returns=returns)
    given = {"omega": omega, "alpha": alpha, "beta": beta, "gamma": 0.0 if gamma is None else gamma, "initial": initial}
    tensors = {name: parameter("egarch_variance", returns, name, x) for name, x in given.items() if x is not None}
    first, rules = _first(tensors["omega"], tensors["beta"], tensors.get("initial"))
    valid = check_values("egarch_variance", rules, **given, returns=returns)
    h: Tensor = operator(returns, *list(tensors.values())[:4], torch.where(valid, first, torch.nan))
    return h.to(returns.dtype)


def _first(omega: Tensor, beta: Tensor, initial: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """ln h_0, and the rules that the values of a column must keep."""
    if initial is not None:
        positive = initial > 0
        return torch.where(positive, initial, 1).log(), {"initial must be > 0": positive}
    stationary = beta.abs() < 1
    first = omega / (1 - torch.where(stationary, beta, 0))  # divided by zero, it would send NaN to the parameters
    return first, {"beta must be in (-1, 1) without initial": stationary}


def _reference(
    returns: Tensor,  # (..., T, N)
    omega: Tensor,  # (..., N), and so are the rest
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    initial: Tensor,  # ln h_0
) -> Tensor:
    x, rows, mean = initial, [], in_full(initial, MEAN_ABSOLUTE)
    for r in returns.unbind(-2):
        rows.append(x.exp())
        z = r / (x / 2).exp()
        shock = alpha * (z.abs() - mean) + gamma * z
        x = omega + beta * x + torch.where(r.isnan(), 0, shock)
    return torch.stack(rows, dim=-2) if rows else returns.new_empty(returns.shape)


def _backward(
    grad: Tensor, *, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, output0: Tensor
) -> tuple[Tensor, ...]:
    y = adjoint(grad, returns, alpha, beta, gamma, output0)
    return y[..., : returns.shape[-2], :], *y[..., returns.shape[-2] :, :].unbind(-2)


def _oracle(returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor) -> Tensor:
    backcast = (initial.log() - omega) / beta  # of which ln h_0 comes: arch has the logarithm of a variance here
    return arch_variance("EGARCH", returns, backcast, omega, alpha, beta, gamma)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    shares = torch.rand(5, 2, 3, dtype=torch.double, generator=generator)
    lower, width = torch.tensor([[-0.1, 0.1, 0.5, -0.2, 0.3], [0.2, 0.2, 0.4, 0.4, 2.0]]).double().view(2, 5, 1, 1)
    omega, alpha, beta, gamma, initial = shares * width + lower
    full = (returns, omega, alpha, beta, gamma, initial)
    holes = returns.clone()
    holes[0, 0, 0] = holes[0, 4:6, 1] = holes[1, -1, 2] = torch.nan
    return Cases(
        function=egarch_variance,
        samples=(
            Sample(*full),
            Sample(holes, *full[1:]),
            Sample(holes, omega, alpha, beta),
            Sample(holes, omega[:, :1], alpha[:1], beta, gamma[:1]),
            Sample(returns, omega=0.1, alpha=0.1, beta=0.8),
        ),
        bad=(
            Bad(Sample(returns[0, 0], *full[1:]), r"egarch_variance: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, omega=0.1, alpha=0.1, beta=1.0), r"beta must be in \(-1, 1\) without initial"),
            Bad(Sample(*full[:5], -initial), r"initial must be > 0; got initial=-1.\d+, series=\(0, 0\) with"),
            Bad(Sample(returns, omega[:, :2], alpha, beta), r"omega must broadcast to .*; got omega \(2, 2\), returns"),
            Bad(Sample(returns, omega="a", alpha=0.1, beta=0.8), "omega must be a number", TypeError),
        ),
        golden=(
            Golden(
                Sample(torch.tensor([[0.0], [0.0]]).double(), omega=0.1, alpha=0.2, beta=0.5),
                torch.tensor([[0.2], [0.2 - 0.2 * MEAN_ABSOLUTE]], dtype=torch.double).exp(),
                "by hand: ln h_0 = 0.1 / 0.5, and a return of zero takes 0.2 sqrt(2/pi) away",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(*full),),  # arch knows no missing return: there the loop is the oracle
    )


operator = Op(
    "egarch_variance",
    reference=_reference,
    backward=_backward,
    mask_nan_grad=False,  # `egarch_variance_backward` does it
    cases=_cases,
)

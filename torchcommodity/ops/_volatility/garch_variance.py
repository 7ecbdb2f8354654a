"""GARCH(1,1) and GJR-GARCH variance: h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, live
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._scan.linear_recurrence_backward import previous_rows
from torchcommodity.ops._volatility.arch_oracle import arch_variance
from torchcommodity.ops._volatility.garch_variance_backward import operator as backward
from torchcommodity.ops._volatility.garch_variance_backward import row_terms
from torchcommodity.ops._volatility.parameters import Parameter, check_parameters, non_negative


def _update(past: Past, returns: Tensor, **arguments: Parameter) -> Tensor:
    if (parameters := past.get("parameters")) is None:
        parameters = torch.stack(check_parameters("garch_variance", _initial_variance, returns, **arguments))
        past.keep("parameters", parameters[:4].clone())
    start = parameters[-1] if (variance := past.get("variance")) is None else variance
    # h of the row after the last follows from one more row, whatever it holds
    rows = pad(returns, (0, 0, 0, 1)).to(start)
    h: Tensor = operator(rows, *parameters[:4].unbind(0), start)
    past.keep_last("variance", h)
    return h[..., :-1, :].to(returns.dtype)


@live(_update)
def garch_variance(
    returns: Tensor,  # (..., T, N)
    omega: Tensor | float,  # (..., N)
    alpha: Tensor | float,  # (..., N)
    beta: Tensor | float,  # (..., N)
    gamma: Tensor | float | None = None,  # (..., N)
    initial: Tensor | float | None = None,  # (..., N)
) -> Tensor:  # (..., T, N)
    """GARCH(1,1) variance (GJR-GARCH with `gamma`) of each return given the returns before it.

    h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1} with h_0 = `initial`. h_t depends on returns
    up to r_{t-1}.

    Args:
        returns: Log-returns per step with mean zero; NaN is a missing return.
        omega: Constant, in squared units of `returns`, >= 0.
        alpha: Weight of the last squared return (dimensionless), >= 0.
        beta: Weight of the last variance (dimensionless), >= 0.
        gamma: Extra weight of a negative last return (dimensionless), with alpha + gamma >= 0. None means 0.
        initial: h_0, in squared units of `returns`, >= 0. None means the stationary variance
            omega / (1 - alpha - gamma/2 - beta). The arch package starts at
            omega + (alpha + gamma/2 + beta) x backcast.

    Returns:
        h, a variance (not a volatility) in squared units of `returns` and their dtype. Causal, no warm-up. At a missing
        return the recursion takes its expectation, h_{t+1} = omega + (alpha + gamma/2 + beta) h_t; the gradient of that
        return is 0.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel, a parameter does not broadcast to (..., N) or
            is out of range, or `initial` is None and there is no stationary variance (alpha + gamma/2 + beta >= 1).
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), invalid series are NaN instead.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in all tensors, to any order, in
    reverse and forward mode.

    References:
        Glosten, Jagannathan, Runkle (1993). On the relation between the expected value and the volatility of the
        nominal excess return on stocks. Journal of Finance 48(5). doi:10.1111/j.1540-6261.1993.tb05128.x

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> returns = torch.tensor([[1.0], [-2.0], [float("nan")], [0.5]])  # percent
        >>> ops.garch_variance(returns, omega=0.1, alpha=0.1, beta=0.8).squeeze(-1)  # percent squared
        tensor([1.0000, 1.0000, 1.3000, 1.2700])
    """
    parameters = check_parameters("garch_variance", _initial_variance, returns, omega, alpha, beta, gamma, initial)
    h: Tensor = operator(returns, *parameters)
    return h.to(returns.dtype)


def _initial_variance(
    omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """h_0, and for each rule the series (..., N) that satisfy it."""
    quantities = {"omega": omega, "alpha": alpha, "beta": beta, "alpha + gamma": alpha + gamma}
    if initial is not None:
        return initial, non_negative(**quantities, initial=initial)
    slack = 1 - alpha - gamma / 2 - beta
    stationary = slack > 0
    rules = non_negative(**quantities) | {"alpha + gamma/2 + beta must be < 1 if initial is None": stationary}
    return omega / torch.where(stationary, slack, 1), rules  # a division by zero would make every gradient NaN


def _reference(
    returns: Tensor,  # (..., T, N)
    omega: Tensor,  # (..., N), as all that follow
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    initial: Tensor,
) -> Tensor:
    h, rows = initial, []
    for r in returns.unbind(-2):
        rows.append(h)
        square = torch.where(r.isnan(), h, r * r)
        negative = torch.where(r.isnan(), 0.5, (r < 0).to(r))
        h = omega + (alpha + gamma * negative) * square + beta * h
    return torch.stack(rows, dim=-2) if rows else returns.new_empty(returns.shape)


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


def _jvp(
    d_returns: Tensor,
    d_omega: Tensor,
    d_alpha: Tensor,
    d_beta: Tensor,
    d_gamma: Tensor,
    d_initial: Tensor,
    *,
    returns: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    output: Tensor,
) -> Tensor:
    # dh_t = (dh_t / dh_{t-1}) dh_{t-1} + the differentials of the parameters and of r_{t-1}
    missing, r, negative, weight = row_terms(returns, alpha, gamma)
    output = output.masked_fill(output.isnan(), 0)
    d_next = (d_alpha.unsqueeze(-2) + d_gamma.unsqueeze(-2) * negative) * (r * r + missing * output)
    d_next = d_next + d_omega.unsqueeze(-2) + d_beta.unsqueeze(-2) * output
    d_next = d_next + 2 * weight * r * d_returns.masked_fill(returns.isnan(), 0)
    slope = beta.unsqueeze(-2) + weight * missing
    d_h: Tensor = recur(previous_rows(slope, torch.zeros_like(beta)), previous_rows(d_next, d_initial), None)
    return d_h


def _decomposition(
    returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor
) -> Tensor:
    missing, r, _, weight = row_terms(returns, alpha, gamma)
    slope, intercept = beta.unsqueeze(-2) + weight * missing, omega.unsqueeze(-2) + weight * r * r
    h: Tensor = recur(previous_rows(slope, torch.zeros_like(beta)), previous_rows(intercept, initial), None)
    return h


def _oracle(returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor) -> Tensor:
    backcast = (initial - omega) / (alpha + gamma / 2 + beta)  # arch: h_0 = omega + (alpha + gamma/2 + beta) x backcast
    return arch_variance("GARCH", returns, backcast, omega, alpha, beta, gamma)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    uniform = torch.rand(5, 2, 3, dtype=torch.double, generator=generator)
    omega, alpha, beta, gamma, initial = uniform * torch.tensor([0.2, 0.2, 0.5, 0.2, 2.0]).double().view(5, 1, 1) + 0.05
    arguments = (returns, omega, alpha, beta, gamma, initial)
    gaps = returns.clone()
    gaps[0, 0, 0] = gaps[0, 4:6, 1] = gaps[1, -1, 2] = torch.nan
    golden = torch.tensor([[1.0], [-2.0], [torch.nan], [0.5]]).double()
    return Cases(
        function=garch_variance,
        samples=(
            Sample(*arguments),
            Sample(gaps, *arguments[1:]),
            Sample(gaps, omega, alpha, beta),
            Sample(gaps, omega[:, :1], alpha[:1], beta, gamma[:1]),
            Sample(returns, omega=0.1, alpha=0.1, beta=0.8),
        ),
        bad=(
            Bad(Sample(returns[0, 0], *arguments[1:]), r"garch_variance: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, omega=-0.1, alpha=0.1, beta=0.8), "omega must be >= 0; got omega=-0.1"),
            Bad(
                Sample(returns, omega, alpha, -beta),
                r"beta must be >= 0; got beta=-0.\d+, series=\(0, 0\) with returns \(2, 9, 3\)",
            ),
            Bad(
                Sample(returns, omega=0.1, alpha=0.1, beta=0.9),
                r"alpha \+ gamma/2 \+ beta must be < 1 if initial is None",
            ),
            Bad(Sample(returns, omega=0.1, alpha=0.1, beta=0.5, gamma=-0.2), r"alpha \+ gamma must be >= 0"),
            Bad(Sample(*arguments[:5], -initial), "initial must be >= 0"),
            Bad(Sample(returns, omega[:, :2], alpha, beta), r"omega must broadcast to .*; got omega \(2, 2\), returns"),
            Bad(Sample(returns, omega="a", alpha=0.1, beta=0.8), "omega must be a number", TypeError),
        ),
        golden=(
            Golden(
                Sample(golden, omega=0.1, alpha=0.1, beta=0.8),
                torch.tensor([[1.0], [1.0], [1.3], [1.27]], dtype=torch.double),
                "by hand: 1 = 0.1 / 0.1; 1.3 = 0.1 + 0.4 + 0.8; 1.27 = 0.1 + 0.9 x 1.3",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(*arguments),),  # arch accepts no missing returns; the reference covers them
    )


operator = Op(
    "commodity::garch_variance",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    decomposition=_decomposition,
    mask_nan_grad=False,  # garch_variance_backward masks them
    cases=_cases,
)

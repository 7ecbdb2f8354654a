"""h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}: the variance that yesterday knew of."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, check_values
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._volatility.arch_oracle import arch_variance
from torchcommodity.ops._volatility.garch_variance_backward import operator as adjoint
from torchcommodity.ops._volatility.garch_variance_backward import parts
from torchcommodity.ops._volatility.parameters import parameter, preceding


def garch_variance(
    returns: Tensor,  # (..., T, N)
    omega: Tensor | float,  # (..., N)
    alpha: Tensor | float,  # (..., N)
    beta: Tensor | float,  # (..., N)
    gamma: Tensor | float | None = None,  # (..., N)
    initial: Tensor | float | None = None,  # (..., N)
) -> Tensor:  # (..., T, N)
    """GARCH(1,1) variance, and GJR-GARCH with `gamma`: h_t is known before r_t, from returns up to r_{t-1}.

    h_t = omega + (alpha + gamma 1[r_{t-1} < 0]) r_{t-1}^2 + beta h_{t-1}, and h_0 = `initial`.

    Args:
        returns: log-returns per step, of mean zero; NaN is a missing return.
        omega: the constant, in the unit of `returns` squared, >= 0.
        alpha: the weight of the last squared return, without unit, >= 0.
        beta: the weight of the last variance, without unit, >= 0.
        gamma: what falling returns add to `alpha`, without unit; alpha + gamma >= 0. None is 0.
        initial: h_0, in the unit of `returns` squared, >= 0; None is the stationary variance
            omega / (1 - alpha - gamma/2 - beta). arch starts at omega + (alpha + gamma/2 + beta) x its backcast.

    Returns:
        h, a variance (no volatility) in the unit of `returns` squared, in the dtype of `returns`. Causal, no warm-up. A
        missing return counts as its expectation: h_t = omega + (alpha + gamma/2 + beta) h_{t-1}; its gradient is zero.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, a parameter does not broadcast to (..., N) or is
            outside its range, or there is no stationary variance to start from (alpha + gamma/2 + beta >= 1).
            Where values cannot be read (`torch.compile`, `torch.export`, `torch.func`), such a column is NaN instead.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable in all tensors, to any order, in both modes.

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
    check_panel("garch_variance", returns=returns)
    given = {"omega": omega, "alpha": alpha, "beta": beta, "gamma": 0.0 if gamma is None else gamma, "initial": initial}
    tensors = {name: parameter("garch_variance", returns, name, x) for name, x in given.items() if x is not None}
    first, rules = _first(**tensors)
    valid = check_values("garch_variance", rules, **given, returns=returns)
    h: Tensor = operator(returns, *list(tensors.values())[:4], torch.where(valid, first, torch.nan))
    return h.to(returns.dtype)


def _first(
    omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """h_0, and the rules that the values of a column must keep."""
    slack = 1 - alpha - gamma / 2 - beta
    rules = {"omega must be >= 0": omega >= 0, "alpha must be >= 0": alpha >= 0, "beta must be >= 0": beta >= 0}
    rules["alpha + gamma must be >= 0"] = alpha + gamma >= 0
    if initial is not None:
        return initial, rules | {"initial must be >= 0": initial >= 0}
    rules["alpha + gamma/2 + beta must be < 1 without initial"] = slack > 0
    return omega / torch.where(slack > 0, slack, 1), rules  # divided by zero, it would send NaN to every parameter


def _reference(
    returns: Tensor,  # (..., T, N)
    omega: Tensor,  # (..., N), and so are the rest
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    initial: Tensor,
) -> Tensor:
    h, rows = initial, []
    for r in returns.unbind(-2):
        rows.append(h)
        square = torch.where(r.isnan(), h, r * r)
        falling = torch.where(r.isnan(), 0.5, (r < 0).to(r))
        h = omega + (alpha + gamma * falling) * square + beta * h
    return torch.stack(rows, dim=-2) if rows else returns.new_empty(returns.shape)


def _backward(
    grad: Tensor, *, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, output0: Tensor
) -> tuple[Tensor, ...]:
    y = adjoint(grad, returns, alpha, beta, gamma, output0)
    return y[..., : returns.shape[-2], :], *y[..., returns.shape[-2] :, :].unbind(-2)


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
    missing, r, falling, weight = parts(returns, alpha, gamma)
    output = output.masked_fill(output.isnan(), 0)
    moved = (d_alpha.unsqueeze(-2) + d_gamma.unsqueeze(-2) * falling) * (r * r + missing * output)
    moved = moved + d_omega.unsqueeze(-2) + d_beta.unsqueeze(-2) * output
    moved = moved + 2 * weight * r * d_returns.masked_fill(returns.isnan(), 0)
    slope = beta.unsqueeze(-2) + weight * missing
    h: Tensor = recur(preceding(slope, torch.zeros_like(beta)), preceding(moved, d_initial), None)
    return h


def _decomposition(
    returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor
) -> Tensor:
    missing, r, _, weight = parts(returns, alpha, gamma)
    slope, adds = beta.unsqueeze(-2) + weight * missing, omega.unsqueeze(-2) + weight * r * r
    h: Tensor = recur(preceding(slope, torch.zeros_like(beta)), preceding(adds, initial), None)
    return h


def _oracle(returns: Tensor, omega: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, initial: Tensor) -> Tensor:
    backcast = (initial - omega) / (alpha + gamma / 2 + beta)  # of which h_0 comes
    return arch_variance("GARCH", returns, backcast, omega, alpha, beta, gamma)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(2, 9, 3, dtype=torch.double, generator=generator)
    shares = torch.rand(5, 2, 3, dtype=torch.double, generator=generator)
    omega, alpha, beta, gamma, initial = shares * torch.tensor([0.2, 0.2, 0.5, 0.2, 2.0]).double().view(5, 1, 1) + 0.05
    full = (returns, omega, alpha, beta, gamma, initial)
    holes = returns.clone()
    holes[0, 0, 0] = holes[0, 4:6, 1] = holes[1, -1, 2] = torch.nan
    golden = torch.tensor([[1.0], [-2.0], [torch.nan], [0.5]]).double()
    return Cases(
        function=garch_variance,
        samples=(
            Sample(*full),
            Sample(holes, *full[1:]),
            Sample(holes, omega, alpha, beta),
            Sample(holes, omega[:, :1], alpha[:1], beta, gamma[:1]),
            Sample(returns, omega=0.1, alpha=0.1, beta=0.8),
        ),
        bad=(
            Bad(Sample(returns[0, 0], *full[1:]), r"garch_variance: returns must be \(\.\.\., T, N\)"),
            Bad(Sample(returns, omega=-0.1, alpha=0.1, beta=0.8), "omega must be >= 0; got omega=-0.1"),
            Bad(
                Sample(returns, omega, alpha, -beta),
                r"beta must be >= 0; got beta=-0.\d+, series=\(0, 0\) with returns \(2, 9, 3\)",
            ),
            Bad(
                Sample(returns, omega=0.1, alpha=0.1, beta=0.9), r"alpha \+ gamma/2 \+ beta must be < 1 without initial"
            ),
            Bad(Sample(returns, omega=0.1, alpha=0.1, beta=0.5, gamma=-0.2), r"alpha \+ gamma must be >= 0"),
            Bad(Sample(*full[:5], -initial), "initial must be >= 0"),
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
        oracle_samples=(Sample(*full),),  # arch knows no missing return: there the loop is the oracle
    )


operator = Op(
    "garch_variance",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    decomposition=_decomposition,
    mask_nan_grad=False,  # `garch_variance_backward` does it
    cases=_cases,
)

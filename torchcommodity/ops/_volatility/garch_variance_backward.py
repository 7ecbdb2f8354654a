"""Backward pass of `garch_variance`: gradients of returns, parameters and initial variance in one reverse pass."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._scan.linear_recurrence_backward import next_rows, previous_rows
from torchcommodity.ops._scan.linear_recurrence_backward import operator as recur_backward


def row_terms(returns: Tensor, alpha: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The terms of each row: missing (0 or 1), returns with 0 where missing, the indicator of a negative return (1/2
    where missing), and the weight alpha + gamma x indicator."""
    missing = returns.isnan()
    r = returns.masked_fill(missing, 0)
    negative = (r < 0).to(r) + 0.5 * missing
    return missing.to(r), r, negative, alpha.unsqueeze(-2) + gamma.unsqueeze(-2) * negative


def _reference(
    grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor, needs_returns: bool
) -> Tensor:
    """Gradients (..., T + 5, N) with respect to the T returns, omega, alpha, beta, gamma and the initial variance.

    Without `needs_returns` the T rows of the returns are left out.

    grad (..., T, N) is the incoming gradient of h; it is ignored where h is NaN.
    """
    # The adjoint a_t = dL / dh_{t+1} follows a linear recurrence in reverse time:
    # a_t = grad_{t+1} + (dh_{t+2} / dh_{t+1}) a_{t+1}.
    # With s_t = r_t^2, or h_t where r_t is missing:  domega = sum a_t         dalpha = sum a_t s_t
    # dgamma = sum a_t negative_t s_t                 dbeta = sum a_t h_t      dr_t = 2 a_t weight_t r_t
    missing, r, negative, weight = row_terms(returns, alpha, gamma)
    unknown = h.isnan()
    grad, h = grad.masked_fill(unknown, 0), h.masked_fill(unknown, 0)
    slope = beta.unsqueeze(-2) + weight * missing
    adjoint = recur(next_rows(slope).flip(-2), next_rows(grad).flip(-2), None).flip(-2)
    square = r * r + missing * h
    sums = [(adjoint * x).sum(-2, keepdim=True) for x in (torch.ones_like(h), square, h, negative * square)]
    d_returns = [2 * adjoint * weight * r] if needs_returns else []
    return torch.cat([*d_returns, *sums, (grad + slope * adjoint)[..., :1, :].sum(-2, keepdim=True)], -2)


def _fake(returns: Tensor, needs_returns: bool) -> Tensor:
    rows = returns.shape[-2] if needs_returns else 0
    return returns.new_empty((*returns.shape[:-2], rows + 5, returns.shape[-1]))


def _backward(
    cotangent: Tensor,
    *,
    grad: Tensor,
    returns: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gamma: Tensor,
    h: Tensor,
    needs_returns: bool,
) -> tuple[Tensor, ...]:
    # The transpose of the adjoint a is a recurrence forward in time, b_t = u_t + (dh_{t+1} / dh_t) b_{t-1}, where u is
    # the gradient of a in the sums above and b_{-1} that of the initial variance. dgrad_t = b_{t-1}, and the slope
    # dh_{t+1} / dh_t has the gradient a_t b_{t-1}.
    rows = returns.shape[-2] if needs_returns else 0
    d_returns, d_omega, d_alpha, d_beta, d_gamma, d_initial = cotangent.split((rows, 1, 1, 1, 1, 1), -2)
    missing, r, negative, weight = row_terms(returns, alpha, gamma)
    unknown = h.isnan()
    h = h.masked_fill(unknown, 0)
    slope = beta.unsqueeze(-2) + weight * missing
    square_weight = d_alpha + d_gamma * negative
    u = square_weight * (r * r + missing * h) + d_beta * h + d_omega
    if needs_returns:
        u = u + 2 * d_returns * weight * r
    initial = d_initial.squeeze(-2)
    b = recur(slope, u, initial)
    d_slope, adjoint = recur_backward(next_rows(grad.masked_fill(unknown, 0)), slope, b, initial)
    d_weight, d_r = d_slope * missing, 2 * adjoint * square_weight * r
    if needs_returns:
        d_weight, d_r = d_weight + 2 * adjoint * d_returns * r, d_r + 2 * adjoint * d_returns * weight
    d_h = adjoint * (d_beta + missing * square_weight)
    known = (~unknown).to(h)
    sums = (x.sum(-2) for x in (d_weight, d_slope, d_weight * negative))
    return previous_rows(b, initial) * known, d_r * (1 - missing), *sums, d_h * known


def _function(*tensors: Tensor, needs_returns: bool) -> Tensor:
    gradients: Tensor = operator(*tensors, needs_returns)
    return gradients


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, returns, h = torch.randn(3, 2, 9, 3, dtype=torch.double, generator=generator)
    alpha, beta, gamma = torch.rand(3, 2, 3, dtype=torch.double, generator=generator) / 2
    gaps = returns.clone()
    gaps[0, 0, 0] = gaps[0, 4:6, 1] = gaps[1, -1, 2] = torch.nan
    parameters = (alpha, beta, gamma, h.exp())
    inputs = ((grad, returns, *parameters), (grad, gaps, *parameters))
    samples = [Sample(*x, needs_returns=needs) for x in inputs for needs in (True, False)]
    return Cases(function=_function, samples=tuple(samples))


operator = Op(
    "commodity::garch_variance_backward", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None
)

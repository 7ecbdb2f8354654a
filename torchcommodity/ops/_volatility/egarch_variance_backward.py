"""Backward pass of `egarch_variance`: gradients of returns, parameters and initial variance in one reverse pass."""

import math

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._scan.linear_recurrence_backward import next_rows, previous_rows
from torchcommodity.ops._scan.linear_recurrence_backward import operator as recur_backward
from torchcommodity.ops._volatility.parameters import float64_constant

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)  # E|z| of a standard normal variable


def _reference(
    grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor, needs_returns: bool
) -> Tensor:
    """Gradients (..., T + 5, N) with respect to the T returns, omega, alpha, beta, gamma and ln of initial variance.

    Without `needs_returns` the T rows of the returns are left out.

    grad (..., T, N) is the incoming gradient of h; it is ignored where h is NaN.
    """
    # With x = ln h: dx_{t+1} / dx_t = beta - (alpha |z_t| + gamma z_t) / 2, because z = r exp(-x / 2).
    # The adjoint a_t = dL / dx_{t+1} follows the linear recurrence a_t = h_{t+1} grad_{t+1} + (dx_{t+2} / dx_{t+1})
    # a_{t+1} in reverse time.
    # domega = sum a_t    dalpha = sum a_t (|z_t| - sqrt(2/pi))    dgamma = sum a_t z_t    dbeta = sum a_t x_t
    # dr_t = a_t (alpha sign z_t + gamma) / sqrt(h_t)
    alpha, beta, gamma = alpha.unsqueeze(-2), beta.unsqueeze(-2), gamma.unsqueeze(-2)
    grad, h = grad.masked_fill(h.isnan(), 0), torch.where((h > 0) & (h < torch.inf), h, 1)
    observed = ~returns.isnan()
    z = torch.where(observed, returns, 0) / h.sqrt()
    slope, d_x = beta - (alpha * z.abs() + gamma * z) / 2, h * grad
    adjoint = recur(next_rows(slope).flip(-2), next_rows(d_x).flip(-2), None).flip(-2)
    size = torch.where(observed, z.abs() - float64_constant(h, MEAN_ABSOLUTE), 0)
    sums = [(adjoint * x).sum(-2, keepdim=True) for x in (torch.ones_like(h), size, h.log(), z)]
    d_returns = [adjoint * (alpha * z.sign() + gamma) * observed / h.sqrt()] if needs_returns else []
    return torch.cat([*d_returns, *sums, (d_x + slope * adjoint)[..., :1, :].sum(-2, keepdim=True)], -2)


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
    # The transpose of the adjoint a is a recurrence forward in time, b_t = u_t + (dx_{t+1} / dx_t) b_{t-1}, where u is
    # the gradient of a in the sums above and b_{-1} that of ln of the initial variance. h_t grad_t has the gradient
    # b_{t-1}, and the slope dx_{t+1} / dx_t the gradient a_t b_{t-1}; then dz, and dh through z = r / sqrt(h).
    rows = returns.shape[-2] if needs_returns else 0
    d_returns, d_omega, d_alpha, d_beta, d_gamma, d_initial = cotangent.split((rows, 1, 1, 1, 1, 1), -2)
    alpha, beta, gamma = alpha.unsqueeze(-2), beta.unsqueeze(-2), gamma.unsqueeze(-2)
    known, valid = ~h.isnan(), (h > 0) & (h < torch.inf)
    grad, h, observed = grad.where(known, 0), h.where(valid, 1), ~returns.isnan()
    root = h.sqrt()
    z = returns.where(observed, 0) / root
    sign, size = z.sign(), torch.where(observed, z.abs() - float64_constant(h, MEAN_ABSOLUTE), 0)
    response = alpha * sign + gamma  # of x_{t+1} to z_t
    slope = beta - response * z / 2
    u = d_omega + d_alpha * size + d_beta * h.log() + d_gamma * z
    by_root = d_returns * observed / root if needs_returns else torch.zeros_like(z)
    u = u + by_root * response
    initial = d_initial.squeeze(-2)
    b = recur(slope, u, initial)
    d_slope, adjoint = recur_backward(next_rows(h * grad), slope, b, initial)
    b = previous_rows(b, initial)
    d_response = adjoint * by_root - d_slope * z / 2
    d_z = adjoint * (d_gamma + d_alpha * sign * observed) - d_slope * response / 2
    d_h = grad * b + (adjoint * (d_beta - by_root * response / 2) - d_z * z / 2) / h
    sums = (x.sum(-2) for x in (d_response * sign, d_slope, d_response))
    return (h * b).where(known, 0), (d_z / root).where(observed, 0), *sums, d_h.where(valid, 0)


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
    "commodity::egarch_variance_backward", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None
)

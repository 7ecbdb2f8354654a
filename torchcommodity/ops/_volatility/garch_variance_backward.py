"""The gradient of `garch_variance` in one pass backwards in time: its returns, its parameters, its start."""

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._volatility.parameters import following


def parts(returns: Tensor, alpha: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Missing rows as 0 and 1, their returns as 0, the share of gamma that counts, and alpha + gamma x that share."""
    missing = returns.isnan()
    r = returns.masked_fill(missing, 0)
    falling = (r < 0).to(r) + 0.5 * missing
    return missing.to(r), r, falling, alpha.unsqueeze(-2) + gamma.unsqueeze(-2) * falling


def _reference(grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor) -> Tensor:
    """(..., T + 5, N): by the returns, then by omega, alpha, beta, gamma and the initial variance.

    grad is the incoming gradient of h (..., T, N); where h is NaN it takes no part.
    """
    # L_t = grad_{t+1} + (dh_{t+2} / dh_{t+1}) L_{t+1} is what h_{t+1} owes: the same recurrence, backwards in time.
    # With s_t = r_t^2, or h_t where r_t is missing:  domega = sum L_t         dalpha = sum L_t s_t
    # dgamma = sum L_t falling_t s_t                  dbeta = sum L_t h_t      dr_t = 2 L_t weight_t r_t
    missing, r, falling, weight = parts(returns, alpha, gamma)
    unknown = h.isnan()
    grad, h = grad.masked_fill(unknown, 0), h.masked_fill(unknown, 0)
    slope = beta.unsqueeze(-2) + weight * missing
    later = recur(following(slope).flip(-2), following(grad).flip(-2), None).flip(-2)
    square = r * r + missing * h
    sums = [(later * x).sum(-2, keepdim=True) for x in (torch.ones_like(h), square, h, falling * square)]
    return torch.cat([2 * later * weight * r, *sums, (grad + slope * later)[..., :1, :].sum(-2, keepdim=True)], -2)


def _fake(grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor) -> Tensor:
    return returns.new_empty((*returns.shape[:-2], returns.shape[-2] + 5, returns.shape[-1]))


def _backward(
    cotangent: Tensor, *, grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor
) -> tuple[Tensor, ...]:
    return vjp(_reference, (grad, returns, alpha, beta, gamma, h), cotangent)  # it is made of operators


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, returns, h = torch.randn(3, 2, 9, 3, dtype=torch.double, generator=generator)
    alpha, beta, gamma = torch.rand(3, 2, 3, dtype=torch.double, generator=generator) / 2
    holes = returns.clone()
    holes[0, 0, 0] = holes[0, 4:6, 1] = holes[1, -1, 2] = torch.nan
    rest = (alpha, beta, gamma, h.exp())
    return Cases(function=operator, samples=(Sample(grad, returns, *rest), Sample(grad, holes, *rest)))


operator = Op("garch_variance_backward", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None)

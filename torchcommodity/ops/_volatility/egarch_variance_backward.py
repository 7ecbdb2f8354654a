"""The gradient of `egarch_variance` in one pass backwards in time: its returns, its parameters, its start."""

import math

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._scan.linear_recurrence import operator as recur
from torchcommodity.ops._volatility.parameters import following, in_full

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)  # of a standard normal number


def _reference(grad: Tensor, returns: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor, h: Tensor) -> Tensor:
    """(..., T + 5, N): by the returns, then by omega, alpha, beta, gamma and ln of the initial variance.

    grad is the incoming gradient of h (..., T, N); where h is NaN it takes no part.
    """
    # With x = ln h, dx_{t+1} / dx_t = beta - (alpha |z_t| + gamma z_t) / 2, for z falls by half of what x gains.
    # L_t = h_{t+1} grad_{t+1} + (dx_{t+2} / dx_{t+1}) L_{t+1} is what x_{t+1} owes: a recurrence backwards in time.
    # domega = sum L_t    dalpha = sum L_t (|z_t| - sqrt(2/pi))    dgamma = sum L_t z_t    dbeta = sum L_t x_t
    # dr_t = L_t (alpha sign z_t + gamma) / sqrt(h_t)
    alpha, beta, gamma = alpha.unsqueeze(-2), beta.unsqueeze(-2), gamma.unsqueeze(-2)
    grad, h = grad.masked_fill(h.isnan(), 0), torch.where((h > 0) & (h < torch.inf), h, 1)
    seen = ~returns.isnan()
    z = torch.where(seen, returns, 0) / h.sqrt()
    slope, owed = beta - (alpha * z.abs() + gamma * z) / 2, h * grad
    later = recur(following(slope).flip(-2), following(owed).flip(-2), None).flip(-2)
    moved = (torch.ones_like(h), torch.where(seen, z.abs() - in_full(h, MEAN_ABSOLUTE), 0), h.log(), z)
    sums = [(later * x).sum(-2, keepdim=True) for x in moved]
    by_returns = later * (alpha * z.sign() + gamma) * seen / h.sqrt()
    return torch.cat([by_returns, *sums, (owed + slope * later)[..., :1, :].sum(-2, keepdim=True)], -2)


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


operator = Op("egarch_variance_backward", reference=_reference, fake=_fake, backward=_backward, cases=_cases, time=None)

"""The gradient of `rolling_correlation` in its returns, as an operator of its own: one pass instead of some thirty."""

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._rolling.pairs import matrices_of, pairs_of
from torchcommodity.ops._rolling.window_sum import window_spread, window_sum


def _reference(returns: Tensor, grad: Tensor, correlation: Tensor, window: int) -> Tensor:
    # With v_ij the sum of squares of i about its mean m_ij, over the rows that i and j share, and symmetric g:
    # dr_ij / dx_i(s) = (x_j(s) - m_ji) / sqrt(v_ij v_ji) - r_ij (x_i(s) - m_ij) / v_ij
    # dx_i(s) = sum_j x_j(s) A_ij - x_i(s) B_ij + C_ij, A, B, C summed over the windows that hold s: backwards in time
    known = correlation.isfinite() & grad.isfinite()
    g, r = (_symmetric(values.where(known, 0), returns) for values in (grad, correlation))
    r = r if correlation.dim() == returns.dim() else r / 2
    finite = returns.isfinite()
    x = returns.double().where(finite, 0)
    anchor = x.detach().sum(-2, keepdim=True) / finite.sum(-2, keepdim=True).clamp(min=1)
    x = (x - anchor).where(finite, 0).unsqueeze(-1)  # r does not change with the anchor, nor does its gradient
    both = (finite.unsqueeze(-1) & finite.unsqueeze(-2)).double()
    parts = torch.stack([both, x * both, x.square() * both]).flatten(-2)
    count, total, squares = window_sum(parts, window).unflatten(-1, both.shape[-2:])
    mean = total / count.clamp(min=1)
    v = squares - total * mean
    v = v.where(v > torch.finfo(v.dtype).tiny, 1)  # stands still: NaN, without gradient
    a, b = g * v.rsqrt() * v.mT.rsqrt(), g * r / v
    parts = torch.stack([a, b, b * mean - a * mean.mT]).flatten(-2)
    A, B, C = window_spread(parts, window).unflatten(-1, both.shape[-2:])
    dx: Tensor = ((x.mT * A - x * B + C) * both).sum(-1)
    return dx.to(returns.dtype)


def _symmetric(values: Tensor, returns: Tensor) -> Tensor:
    """Matrices, both halves added, or pairs as matrices: in float64, without diagonal."""
    values, assets = values.double(), returns.shape[-1]
    if values.dim() == returns.dim():
        return matrices_of(values, assets)
    return (values + values.mT) * (1 - torch.eye(assets, dtype=values.dtype, device=values.device))


def _backward(
    grad_dx: Tensor, *, returns: Tensor, grad: Tensor, correlation: Tensor, window: int
) -> tuple[Tensor, ...]:
    return vjp(lambda x, g, r: _reference(x, g, r, window), (returns, grad, correlation), grad_dx)


def _weighted(returns: Tensor, weights: Tensor, *, window: int, packed: bool = False) -> Tensor:
    """The operator with gradients w_i w_j where windows are full: the contract may change shapes and values at will."""
    full = torch.arange(weights.shape[-2], device=weights.device) >= window - 1
    w = weights.where(weights.isfinite() & full.unsqueeze(-1), 0)
    grad = w.unsqueeze(-1) * w.unsqueeze(-2)
    grad = pairs_of(grad) if packed else grad
    dx: Tensor = operator(returns, grad, grad.tanh(), window)
    return dx


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x, weights = torch.randn(2, 2, 9, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3, 1] = holed[1, 6, 0] = torch.nan
    samples = [Sample(x, weights, window=4, packed=packed) for packed in (False, True)]
    return Cases(function=_weighted, samples=(*samples, Sample(holed, weights, window=5)))


operator = Op(
    "rolling_correlation_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

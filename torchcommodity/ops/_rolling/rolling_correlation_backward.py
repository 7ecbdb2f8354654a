"""Gradient of `rolling_correlation`, as an operator: one pass instead of about thirty."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Cases, Op, Sample, has_float64, vjp, widest
from torchcommodity.ops._rolling.pairs import pack_pairs, unpack_pairs
from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead


def _reference(returns: Tensor, grad: Tensor, correlation: Tensor, window: int) -> Tensor:
    # With v_ij the sum of squares of i about its mean m_ij, over the rows common to i and j, and symmetric g:
    # dr_ij / dx_i(s) = (x_j(s) - m_ji) / sqrt(v_ij v_ji) - r_ij (x_i(s) - m_ij) / v_ij
    # dx_i(s) = sum_j x_j(s) A_ij - x_i(s) B_ij + C_ij, with A, B, C summed over the windows that contain row s
    defined = correlation.isfinite() & grad.isfinite()
    g, r = (_symmetric(values.where(defined, 0), returns) for values in (grad, correlation))
    r = r if correlation.dim() == returns.dim() else r / 2
    if not has_float64(returns.device):
        return _by_row(returns, g, r, window)
    valid = returns.isfinite()
    x = returns.double().where(valid, 0)
    anchor = x.detach().sum(-2, keepdim=True) / valid.sum(-2, keepdim=True).clamp(min=1)
    x = (x - anchor).where(valid, 0).unsqueeze(-1)  # correlations and their gradient do not depend on the anchor
    common = (valid.unsqueeze(-1) & valid.unsqueeze(-2)).double()
    terms = torch.stack([common, x * common, x.square() * common]).flatten(-2)
    count, total, squares = window_sum(terms, window).unflatten(-1, common.shape[-2:])
    mean = total / count.clamp(min=1)
    v = squares - total * mean
    v = v.where(v > torch.finfo(v.dtype).tiny, 1)  # constant: the correlation is NaN and has no gradient
    a, b = g * v.rsqrt() * v.mT.rsqrt(), g * r / v
    terms = torch.stack([a, b, b * mean - a * mean.mT]).flatten(-2)
    A, B, C = window_sum_ahead(terms, window).unflatten(-1, common.shape[-2:])
    dx: Tensor = ((x.mT * A - x * B + C) * common).sum(-1)
    return dx.to(returns.dtype)


def _by_row(returns: Tensor, g: Tensor, r: Tensor, window: int) -> Tensor:
    """The same in float32: deviations from the means of each window, one window at a time."""
    steps = returns.shape[-2]
    dx = torch.zeros_like(returns)
    for t in range(steps):
        first = max(t - window + 1, 0)
        x = returns[..., first : t + 1, :]  # (..., W, N)
        common = x.isfinite().unsqueeze(-1) & x.isfinite().unsqueeze(-2)  # (..., W, N, N): both i and j are valid
        x = x.unsqueeze(-1).expand(common.shape)
        low = x.detach().where(common, torch.inf).amin(-3, keepdim=True).nan_to_num(posinf=0)
        x = (x - low).where(common, 0)
        mean = x.sum(-3, keepdim=True) / common.sum(-3, keepdim=True).clamp(min=1)
        x = (x - mean).where(common, 0)
        v = x.square().sum(-3)
        v = v.where(v > torch.finfo(v.dtype).tiny, 1)
        a, b = g[..., t, :, :] * v.rsqrt() * v.mT.rsqrt(), g[..., t, :, :] * r[..., t, :, :] / v
        d_window = (x.mT * a.unsqueeze(-3) - x * b.unsqueeze(-3)).sum(-1)
        dx = dx + pad(d_window, (0, 0, first, steps - t - 1))
    return dx


def _symmetric(values: Tensor, returns: Tensor) -> Tensor:
    """Matrices with both halves added, or pairs as matrices; in the widest type, with a zero diagonal."""
    values, assets = widest(values), returns.shape[-1]
    if values.dim() == returns.dim():
        return unpack_pairs(values, assets)
    return (values + values.mT) * (1 - torch.eye(assets, dtype=values.dtype, device=values.device))


def _backward(
    grad_dx: Tensor, *, returns: Tensor, grad: Tensor, correlation: Tensor, window: int
) -> tuple[Tensor, ...]:
    return vjp(lambda x, g, r: _reference(x, g, r, window), (returns, grad, correlation), grad_dx)


def _function(returns: Tensor, weights: Tensor, *, window: int, packed: bool = False) -> Tensor:
    """The operator on gradients w_i w_j in complete windows, so that the contract may resize its inputs."""
    complete = torch.arange(weights.shape[-2], device=weights.device) >= window - 1
    w = weights.where(weights.isfinite() & complete.unsqueeze(-1), 0)
    grad = w.unsqueeze(-1) * w.unsqueeze(-2)
    grad = pack_pairs(grad) if packed else grad
    dx: Tensor = operator(returns, grad, grad.tanh(), window)
    return dx


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x, weights = torch.randn(2, 2, 9, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3, 1] = x_nan[1, 6, 0] = torch.nan
    samples = [Sample(x, weights, window=4, packed=packed) for packed in (False, True)]
    return Cases(function=_function, samples=(*samples, Sample(x_nan, weights, window=5)))


operator = Op(
    "commodity::rolling_correlation_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

"""Gradient of `rolling_correlation`, as an operator: one pass instead of about thirty."""

from collections.abc import Iterable
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Cases, Op, Sample, has_float64, vjp, widest
from torchcommodity.ops._rolling.pairs import pack_pairs, pair_position, unpack_pairs
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
    x = _centered(returns, valid).unsqueeze(-1)
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


def _centered(returns: Tensor, valid: Tensor) -> Tensor:
    """Values minus the mean of their column, which no correlation depends on; zero where missing."""
    x = returns.double().where(valid, 0)
    mean = x.detach().sum(-2, keepdim=True) / valid.sum(-2, keepdim=True).clamp(min=1)
    return (x - mean).where(valid, 0)


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
    """Derivatives pair by pair: those of columns n and n + lag (mod N) at once, so that a step needs a few panels."""
    if not has_float64(returns.device):
        return vjp(lambda x, g, r: _reference(x, g, r, window), (returns, grad, correlation), grad_dx)
    valid, assets, packed = returns.isfinite(), returns.shape[-1], correlation.dim() == returns.dim()
    x, u = _centered(returns, valid), grad_dx.double().where(valid, 0)
    defined = (grad + correlation).isfinite()
    g, r = (values.where(defined, 0).reshape(*returns.shape[:-1], -1) for values in (grad, correlation))
    n = torch.arange(assets, device=returns.device)
    dx = torch.zeros_like(x)
    dg, dr = [torch.zeros_like(x, dtype=grad.dtype)], [torch.zeros_like(x, dtype=correlation.dtype)]  # lag 0
    for lag in range(1, assets // 2 + 1):
        other = (n + lag) % assets
        halves = (pair_position(n, other, assets),) if packed else (n * assets + other, other * assets + n)
        g_pair, r_pair = (reduce(torch.add, (_gather(y, half).double() for half in halves)) for y in (g, r))
        xs, us = ((side, side.roll(-lag, -1)) for side in (x, u))
        common = (valid & valid.roll(-lag, -1)).double()
        dxs, dg_pair, dr_pair = _pair_derivatives(us, xs, common, g_pair, r_pair / len(halves), window)
        dx = dx + (dxs[0] + dxs[1].roll(lag, -1)) / (2 if 2 * lag == assets else 1)  # lag N / 2 has each pair twice
        dg.append(dg_pair.to(grad.dtype))
        dr.append((dr_pair / len(halves)).to(correlation.dtype))
    ahead = (n - n.unsqueeze(-1)) % assets
    position = torch.where(ahead <= assets // 2, ahead * assets + n.unsqueeze(-1), -ahead % assets * assets + n)
    position = (pack_pairs(position) if packed else position).flatten()
    d_grad, d_correlation = (
        _gather(torch.cat(d, -1), position).reshape(grad.shape).where(defined, 0) for d in (dg, dr)
    )
    return dx.to(returns.dtype), d_grad, d_correlation


def _gather(values: Tensor, position: Tensor) -> Tensor:
    """Columns of a panel: `gather` takes an eighth of the time of `index_select`."""
    return values.gather(-1, position.expand(*values.shape[:-1], -1))


def _pair_derivatives(
    u: tuple[Tensor, Tensor],  # (..., T, N) each, of both assets of the pairs: the gradient of dx
    x: tuple[Tensor, Tensor],
    common: Tensor,  # (..., T, N)
    g: Tensor,  # (..., T, N)
    r: Tensor,  # (..., T, N)
    window: int,
) -> tuple[list[Tensor], Tensor, Tensor]:  # of both x, of g and of r
    # With sums over the common rows of a window, P_i = sum u_i (x_j - m_j), Q_i = sum u_i (x_i - m_i):
    # sum_s u(s) dx(s) = sum_t g (p - r q), where p = (P_i + P_j) / sqrt(v_i v_j) and q = Q_i / v_i + Q_j / v_j.
    # By x_i(s): g / sqrt(v_i v_j) (u_j(s) - mean u_j) - g r / v_i (u_i(s) - mean u_i)
    #            - g (p - 2 r Q_i / v_i) / v_i (x_i(s) - m_i)
    def totals(panels: Iterable[Tensor]) -> list[Tensor]:
        return [window_sum(panel, window) for panel in panels]

    xs, us = [panel * common for panel in x], [panel * common for panel in u]
    count = window_sum(common, window).clamp(min=1)
    total, u_total = totals(xs), totals(us)
    mean, u_mean = ([panel / count for panel in panels] for panels in (total, u_total))
    v = [*map(_subtract, totals(panel.square() for panel in xs), total, mean)]
    v = [panel.where(panel > torch.finfo(panel.dtype).tiny, 1) for panel in v]  # constant: no correlation, no gradient
    scale = v[0].rsqrt() * v[1].rsqrt()
    p = window_sum(torch.addcmul(us[0] * xs[1], us[1], xs[0]), window)
    p = _subtract(_subtract(p, u_total[0], mean[1]), u_total[1], mean[0]) * scale
    q = [*map(_subtract, totals(a * b for a, b in zip(us, xs)), u_total, mean)]
    q = [a / b for a, b in zip(q, v)]
    a, gp, gr = g * scale, g * p, g * r
    A, dx = window_sum_ahead(a, window), list[Tensor]()
    for i, j in ((0, 1), (1, 0)):
        b, c = gr / v[i], torch.addcmul(gp, gr, q[i], value=-2) / v[i]
        B, C = window_sum_ahead(b, window), window_sum_ahead(c, window)
        D = window_sum_ahead(torch.addcmul(_subtract(b * u_mean[i], a, u_mean[j]), c, mean[i]), window)
        dx.append(_subtract(_subtract(torch.addcmul(D, us[j], A), us[i], B), xs[i], C) * common)
    q_sum = q[0] + q[1]
    return dx, _subtract(p, r, q_sum), -g * q_sum


def _subtract(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """x - a b in one pass."""
    return torch.addcmul(x, a, b, value=-1)


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
    even = Sample(x[..., :2], weights[..., :2], window=4)  # the number of assets
    return Cases(function=_function, samples=(*samples, Sample(x_nan, weights, window=5), even))


operator = Op(
    "commodity::rolling_correlation_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

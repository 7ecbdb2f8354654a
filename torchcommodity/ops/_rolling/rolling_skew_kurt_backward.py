"""Gradient of the rolling skewness and kurtosis, in one pass."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Op, Sample, has_float64, vjp, widest
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.rolling_mean import operator as rolling_mean
from torchcommodity.ops._rolling.rolling_var import operator as rolling_var
from torchcommodity.ops._rolling.window import deviations, overlap_add
from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead


def rolling_skew_kurt_backward(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    y: Tensor,  # (..., T, N)
    window: int,
    order: int = 3,
) -> Tensor:  # (..., T, N)
    """Gradient of a rolling skewness (order 3) or kurtosis (order 4).

    Each window adds a polynomial in x_s - mean_t to the gradient of every row s that it contains. It looks ahead.

    Args:
        grad: Gradient of the output.
        x: Input of the rolling operator.
        y: Output of the rolling operator.

    Returns:
        Gradient of x; zero where x is missing. The gradient of a NaN output is ignored.

    Raises:
        ValueError, TypeError: If the tensors are not floating-point panels of one shape or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode.

    Example:
        >>> import torch
        >>> from torchcommodity.ops._rolling.rolling_skew_kurt_backward import rolling_skew_kurt_backward
        >>> x, y = torch.tensor([[1.0], [1.0], [4.0]]), torch.tensor([[torch.nan], [torch.nan], [3**0.5]])
        >>> rolling_skew_kurt_backward(torch.ones(3, 1), x, y, 3).abs().max() < 1e-5  # at its maximum
        tensor(True)
    """
    check_panel("rolling_skew_kurt_backward", grad=grad, x=x, y=y)
    check_integer("rolling_skew_kurt_backward", 1, window=window)
    check_integer("rolling_skew_kurt_backward", 3, maximum=4, order=order)
    if not grad.shape == x.shape == y.shape:
        raise_invalid("rolling_skew_kurt_backward", "grad, x and y must have one shape", grad=grad, x=x, y=y)
    dx: Tensor = operator(grad, x, y, window, order)
    return dx


def _reference(grad: Tensor, x: Tensor, y: Tensor, window: int, order: int) -> Tensor:
    # with z = x_s - mean, dx_s = grad (leading (z^p - Mp / n) - linear z), where p = order - 1
    valid = x.isfinite()
    z, n, mean, m2 = _moments(widest(x), valid, window)
    defined = (m2 > 0) & (n >= order) & ~y.isnan()
    n, m2 = n.where(defined, 4), m2.where(defined, 1)
    leading, moment, linear = _weights(x, widest(y).where(defined, 0), n, m2, window, order)
    g = widest(grad).where(defined, 0)
    leading, linear = g * leading, g * linear
    constant = leading * moment / n
    if not has_float64(x.device):
        d, weights = deviations(x, window), [w.unsqueeze(-1) for w in (leading, constant, linear)]
        terms = weights[0] * d.pow(order - 1) - weights[1] - weights[2] * d
        return overlap_add(terms).where(valid, 0)
    dx = (
        _sum_powers(leading, z, mean, window, order - 1)
        - window_sum_ahead(constant, window)
        - _sum_powers(linear, z, mean, window, 1)
    )
    return dx.where(valid, 0).to(x.dtype)


def _weights(x: Tensor, y: Tensor, n: Tensor, m2: Tensor, window: int, order: int) -> tuple[Tensor, Tensor, Tensor]:
    """The leading weight, M2 or M3, and the linear weight of each window in the formula of the gradient."""
    # with constants k, q, r of n:
    # skew = k M3 / M2^1.5:    dx_s = k 3 (z^2 - M2 / n) / M2^1.5 - 3 skew z / M2
    # kurt = q M4 / M2^2 - r:  dx_s = q 4 (z^3 - M3 / n) / M2^2 - 4 (kurt + r) z / M2
    if order == 3:
        return 3 * n * (n - 1).sqrt() / (n - 2) / m2**1.5, m2, 3 * y / m2
    skew = torch.ops.commodity.rolling_skew_kurt(widest(x), window, 0, 3).nan_to_num(0)
    m3 = skew * (n - 2) / (n * (n - 1).sqrt()) * m2**1.5
    scale = (n - 1) / ((n - 2) * (n - 3))
    return 4 * scale * (n + 1) * n / m2.square(), m3, 4 * (y + 3 * scale * (n - 1)) / m2


def _moments(x: Tensor, valid: Tensor, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values minus the mean of their column, zero where missing; count, mean and M2 of each window."""
    level = x.where(valid, 0).sum(-2, keepdim=True) / valid.sum(-2, keepdim=True).clamp(min=1)
    z = (x - level.detach()).where(valid, 0)
    n = window_sum(valid.to(z), window)
    z_nan = z.where(valid, torch.nan)
    mean = rolling_mean(z_nan, window, 1).nan_to_num(0)
    return z, n, mean, rolling_var(z_nan, window, 1, 0, False).nan_to_num(0) * n


def _sum_powers(weight: Tensor, z: Tensor, mean: Tensor, window: int, power: int) -> Tensor:
    """Sum of weight_t (z_s - mean_t)^power over the windows t that contain row s."""
    if power == 1:
        return z * window_sum_ahead(weight, window) - window_sum_ahead(weight * mean, window)
    if power == 2:
        return (
            z.square() * window_sum_ahead(weight, window)
            - 2 * z * window_sum_ahead(weight * mean, window)
            + window_sum_ahead(weight * mean**2, window)
        )
    return z * _sum_powers(weight, z, mean, window, 2) - _sum_powers(weight * mean, z, mean, window, 2)


def _backward(grad_dx: Tensor, *, grad: Tensor, x: Tensor, y: Tensor, window: int, order: int) -> tuple[Tensor, ...]:
    # With u the gradient of dx, W_k = sum (u_s - mean u) z^k, a = grad leading and b = grad linear, the function to
    # differentiate is a sum over windows of grad F, F = leading W_p - linear W_1. Its derivative by x_s is
    #   (u_s - mean u) (a p z^(p-1) - b) - a p W_(p-1) / n + 2 c z,    c = (b W_1 - a W_p order / 2) / M2
    grad = grad.masked_fill(grad.isnan(), 0)
    if not has_float64(x.device):
        return vjp(lambda g, x, y: _reference(g, x, y, window, order), (grad, x, y), grad_dx)
    valid, power = x.isfinite(), order - 1
    u = grad_dx.double().where(valid, 0)
    z, n, mean, m2 = _moments(x.double(), valid, window)
    defined = (m2 > 0) & (n >= order) & ~y.isnan()
    n, m2 = n.where(defined, 4), m2.where(defined, 1)
    leading, moment, linear = _weights(x, y.double().where(defined, 0), n, m2, window, order)
    s0, s1, s2 = (window_sum(term, window) for term in (u, u * z, u * z.square()))
    u_mean = s0 / n
    w1 = previous = s1 - mean * s0
    last = s2 - 2 * mean * s1 + mean.square() * s0 - u_mean * m2
    if order == 4:
        s3 = window_sum(u * z**3, window)
        previous, last = last, s3 - 3 * mean * s2 + 3 * mean.square() * s1 - mean**3 * s0 - u_mean * moment
    g = grad.double().where(defined, 0)
    a, b = g * leading, g * linear
    c = (b * w1 - a * last * order / 2) / m2
    dx = (
        power * (u * _sum_powers(a, z, mean, window, power - 1) - _sum_powers(a * u_mean, z, mean, window, power - 1))
        - u * window_sum_ahead(b, window)
        + window_sum_ahead(b * u_mean - power * a * previous / n, window)
        + 2 * _sum_powers(c, z, mean, window, 1)
    )
    d_grad, d_y = (leading * last - linear * w1).where(defined, 0), -g * order * w1 / m2
    return d_grad.to(grad.dtype), dx.where(valid, 0).to(x.dtype), d_y.to(y.dtype)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x, y = torch.randn(3, 2, 11, 3, dtype=torch.double, generator=generator)
    x_nan, y_nan = x.clone(), y.clone()
    x_nan[0, 3:6, 1] = x_nan[1, 5, 2] = y_nan[0, :4] = torch.nan
    return Cases(
        function=rolling_skew_kurt_backward,
        samples=(Sample(grad, x, y, window=5), Sample(grad, x_nan, y_nan, window=6, order=4)),
        bad=(
            Bad(Sample(grad, x[0], y, window=5), "grad, x and y must have one shape"),
            Bad(Sample(grad, x, y, window=5, order=2), r"order must be in \[3, 4\]; got order=2"),
        ),
    )


operator = Op(
    "commodity::rolling_skew_kurt_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

"""What a rolling skewness or kurtosis makes of a gradient, in one pass."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Op, Sample, vjp
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.rolling_mean import operator as mean_of
from torchcommodity.ops._rolling.rolling_var import operator as variance_of
from torchcommodity.ops._rolling.window_sum import window_spread, window_sum


def rolling_shape_adjoint(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    y: Tensor,  # (..., T, N)
    window: int,
    order: int = 3,
) -> Tensor:  # (..., T, N)
    """The gradient of a rolling skewness (order 3) or kurtosis (order 4) y with respect to x, for a gradient of it.

    Every window pushes a polynomial in x_s - mean_t to each value that it holds; zero where x is missing. Windows whose
    result is NaN take no part. It looks ahead.

    Raises:
        ValueError, TypeError: these are no floating-point panels of one shape, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity.ops.rolling.rolling_shape_adjoint import rolling_shape_adjoint
        >>> x, y = torch.tensor([[1.0], [1.0], [4.0]]), torch.tensor([[torch.nan], [torch.nan], [3**0.5]])
        >>> rolling_shape_adjoint(torch.ones(3, 1), x, y, 3).abs().max() < 1e-5  # of three values, two alike: a summit
        tensor(True)
    """
    check_panel("rolling_shape_adjoint", grad=grad, x=x, y=y)
    check_integer("rolling_shape_adjoint", 1, window=window)
    check_integer("rolling_shape_adjoint", 3, maximum=4, order=order)
    if not grad.shape == x.shape == y.shape:
        raise_invalid("rolling_shape_adjoint", "grad, x and y must be of one shape", grad=grad, x=x, y=y)
    dx: Tensor = operator(grad, x, y, window, order)
    return dx


def _reference(grad: Tensor, x: Tensor, y: Tensor, window: int, order: int) -> Tensor:
    # with z = x_s - m:  skew = k M3 / M2^1.5:  dx_s = k 3 (z^2 - M2 / n) / M2^1.5 - 3 skew z / M2
    # kurt = q M4 / M2^2 - r:                   dx_s = q 4 (z^3 - M3 / n) / M2^2 - 4 (kurt + r) z / M2
    finite = x.isfinite()
    z, n, mean, second = _moments(x.double(), finite, window)
    known = (second > 0) & (n >= order) & ~y.isnan()
    n, second = n.where(known, 4), second.where(known, 1)
    g, y = grad.double().where(known, 0), y.double().where(known, 0)
    if order == 3:
        lead = g * 3 * n * (n - 1).sqrt() / (n - 2) / second**1.5
        rest, tilt = lead * second / n, g * 3 * y / second
    else:
        skew = torch.ops.commodity.rolling_shape(x.double(), window, 0, 3).nan_to_num(0)
        third = skew * (n - 2) / (n * (n - 1).sqrt()) * second**1.5
        scale = (n - 1) / ((n - 2) * (n - 3))
        lead = g * 4 * scale * (n + 1) * n / second.square()
        rest, tilt = lead * third / n, g * 4 * (y + 3 * scale * (n - 1)) / second
    dx = _spread(lead, z, mean, window, order - 1) - window_spread(rest, window) - _spread(tilt, z, mean, window, 1)
    return dx.where(finite, 0).to(x.dtype)


def _moments(x: Tensor, finite: Tensor, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values about the mean of their column, zero where missing; count, mean and M2 of each window."""
    level = x.where(finite, 0).sum(-2, keepdim=True) / finite.sum(-2, keepdim=True).clamp(min=1)
    z = (x - level.detach()).where(finite, 0)
    n = window_sum(finite.to(z), window)
    apart = z.where(finite, torch.nan)
    mean = mean_of(apart, window, 1).nan_to_num(0)
    return z, n, mean, variance_of(apart, window, 1, 0, False).nan_to_num(0) * n


def _spread(push: Tensor, z: Tensor, mean: Tensor, window: int, power: int) -> Tensor:
    """The sum of push_t (z_s - mean_t)^power over the windows t that hold s."""
    if power == 1:
        return z * window_spread(push, window) - window_spread(push * mean, window)
    if power == 2:
        return (
            z.square() * window_spread(push, window)
            - 2 * z * window_spread(push * mean, window)
            + window_spread(push * mean**2, window)
        )
    return z * _spread(push, z, mean, window, 2) - _spread(push * mean, z, mean, window, 2)


def _backward(
    grad_dx: Tensor, *, grad: Tensor, x: Tensor, y: Tensor, window: int, order: int
) -> tuple[Tensor, Tensor, Tensor]:
    def formula(grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return _reference(grad, x, y, window, order)  # it is made of operators

    d_grad, d_x, d_y = vjp(formula, (grad.masked_fill(grad.isnan(), 0), x, y), grad_dx)
    return d_grad, d_x, d_y


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x, y = torch.randn(3, 2, 11, 3, dtype=torch.double, generator=generator)
    holed, known = x.clone(), y.clone()
    holed[0, 3:6, 1] = holed[1, 5, 2] = known[0, :4] = torch.nan
    return Cases(
        function=rolling_shape_adjoint,
        samples=(Sample(grad, x, y, window=5), Sample(grad, holed, known, window=6, order=4)),
        bad=(
            Bad(Sample(grad, x[0], y, window=5), "grad, x and y must be of one shape"),
            Bad(Sample(grad, x, y, window=5, order=2), r"order must be in \[3, 4\]; got order=2"),
        ),
    )


operator = Op(
    "rolling_shape_adjoint",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

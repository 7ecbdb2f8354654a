"""What a rolling mean or variance makes of a gradient, in one pass."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.window_sum import window_spread, window_sum


def rolling_adjoint(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    root: Tensor | None = None,  # (..., T, N)
    *,
    window: int,
    min_periods: int = 0,
    ddof: int = 0,
    order: int = 1,
) -> Tensor:  # (..., T, N)
    """The gradient of a rolling mean (order 1) or variance (order 2) with respect to x, for a gradient of it,
    or of the `root` of the variance, if that is given.

    dx_s is the sum over the windows t that hold s of grad_t / n_t, or of 2 grad_t (x_s - mean_t) / (n_t - ddof), or
    half of this over root_t; zero where x is missing. Windows whose result is NaN take no part. It looks ahead.

    Raises:
        ValueError, TypeError: these are no floating-point panels of one shape, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity.ops.rolling.rolling_adjoint import rolling_adjoint
        >>> rolling_adjoint(torch.ones(3, 1), torch.ones(3, 1), window=2).squeeze(-1)
        tensor([1.5000, 1.0000, 0.5000])
    """
    check_panel("rolling_adjoint", grad=grad, x=x)
    check_integer("rolling_adjoint", 1, window=window)
    check_integer("rolling_adjoint", 0, ddof=ddof, min_periods=min_periods)
    check_integer("rolling_adjoint", 1, maximum=2, order=order)
    if grad.shape != x.shape or (root is not None and root.shape != x.shape):
        raise_invalid("rolling_adjoint", "grad, x and root must be of one shape", grad=grad, x=x, root=root)
    dx: Tensor = operator(grad, x, root, window, min_periods, ddof, order)
    return dx


def _reference(
    grad: Tensor, x: Tensor, root: Tensor | None, window: int, min_periods: int, ddof: int, order: int
) -> Tensor:
    finite = x.isfinite()
    known = x.where(finite, 0)
    count, mean = _held(finite, known, window)
    factor = _factor(count, root, min_periods, ddof, order)
    push = grad.where(factor != 0, 0) * factor
    total = window_spread(push, window)
    dx = total if order == 1 else known * total - window_spread(push * mean, window)
    return dx.where(finite, 0)


def _held(finite: Tensor, known: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """How many values each window holds, and their mean."""
    count = window_sum(finite.to(known), window)
    return count, window_sum(known, window) / count.clamp(min=1)


def _factor(count: Tensor, root: Tensor | None, min_periods: int, ddof: int, order: int) -> Tensor:
    """What a window's gradient is multiplied by, zero where its result is NaN or a root of zero."""
    share = (count >= max(min_periods, ddof + 1)) / (count - ddof).clamp(min=1)
    if root is not None:
        return torch.where(root > 0, share / root.where(root > 0, 1), 0)
    return order * share


def _backward(
    grad_dx: Tensor,
    *,
    grad: Tensor,
    x: Tensor,
    root: Tensor | None,
    window: int,
    min_periods: int,
    ddof: int,
    order: int,
) -> tuple[Tensor | None, ...]:
    # order 1: the transpose is the mean of what comes in.  order 2: <u, dx> = sum_t grad_t factor_t products_t(u, x),
    # so dgrad_t = factor_t products_t, and by symmetry dx = the same of u in place of x; factor_t falls as 1 / root_t
    finite = x.isfinite()
    u, known = grad_dx.where(finite, 0), x.where(finite, 0)
    count, mean = _held(finite, u, window)
    factor = _factor(count, root, min_periods, ddof, order)
    if order == 1:
        return factor * window_sum(u, window), None, None
    products = factor * (window_sum(u * known, window) - mean * window_sum(known, window))
    push = grad.where((factor != 0) & ~grad.isnan(), 0)
    dx = operator(push, u.where(finite, torch.nan), root, window, min_periods, ddof, 2)
    d_root = None if root is None else -push * products / root.where(factor != 0, 1)
    return products, dx, d_root


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    root = 1 + torch.rand(x.shape, dtype=torch.double, generator=generator)
    ones = torch.ones(3, 1, dtype=torch.double)
    return Cases(
        function=rolling_adjoint,
        samples=(
            Sample(grad, holed, window=4),
            Sample(grad, x, window=3, ddof=1, order=2),
            Sample(grad, holed, window=4, min_periods=3, order=2),
            Sample(grad, holed, root, window=4, ddof=1, order=2),
        ),
        bad=(
            Bad(Sample(grad, x[0], window=2), "grad, x and root must be of one shape"),
            Bad(Sample(grad, x, window=2, order=3), r"order must be in \[1, 2\]; got order=3"),
        ),
        golden=(Golden(Sample(ones, ones, window=2), torch.tensor([[1.5], [1.0], [0.5]]).double(), "by hand"),),
    )


operator = Op(
    "rolling_adjoint",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

"""What a rolling mean or variance makes of a gradient, in one pass."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.door import check_integer, check_panel, refuse
from torchcommodity.ops.rolling.window_sum import window_spread, window_sum


def rolling_adjoint(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    window: int,
    ddof: int = 0,
    order: int = 1,
) -> Tensor:  # (..., T, N)
    """The gradient of a rolling mean (order 1) or variance (order 2) with respect to x, for a gradient of it.

    dx_s is the sum over the windows t that hold s of grad_t / n_t, or of 2 grad_t (x_s - mean_t) / (n_t - ddof); zero
    where x is missing. It looks ahead.

    Raises:
        ValueError, TypeError: these are no floating-point panels of one shape, a setting is out of its range.

    Devices: CPU native; elsewhere the reference. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity.ops.rolling.rolling_adjoint import rolling_adjoint
        >>> rolling_adjoint(torch.ones(3, 1), torch.ones(3, 1), 2).squeeze(-1)
        tensor([1.5000, 1.0000, 0.5000])
    """
    check_panel("rolling_adjoint", grad=grad, x=x)
    check_integer("rolling_adjoint", 1, window=window)
    check_integer("rolling_adjoint", 0, ddof=ddof)
    check_integer("rolling_adjoint", 1, most=2, order=order)
    if grad.shape != x.shape:
        refuse("rolling_adjoint", "grad and x must be of one shape", grad=grad, x=x)
    dx: Tensor = operator(grad, x, window, ddof, order)
    return dx


def _reference(grad: Tensor, x: Tensor, window: int, ddof: int, order: int) -> Tensor:
    finite = x.isfinite()
    known = x.where(finite, 0)
    count, mean = _held(finite, known, window)
    if order == 1:
        return window_spread(grad / count.clamp(min=1), window).where(finite, 0)
    push = 2 * grad * _share(count, ddof)
    return (known * window_spread(push, window) - window_spread(push * mean, window)).where(finite, 0)


def _held(finite: Tensor, known: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """How many values each window holds, and their mean."""
    count = window_sum(finite.to(known), window)
    return count, window_sum(known, window) / count.clamp(min=1)


def _share(count: Tensor, ddof: int) -> Tensor:
    return torch.where(count > ddof, 1 / (count - ddof).where(count > ddof, 1), 0)


def _fake(grad: Tensor, x: Tensor, window: int, ddof: int, order: int) -> Tensor:
    return x.new_empty(x.shape)


def _backward(
    grad_dx: Tensor, *, grad: Tensor, x: Tensor, window: int, ddof: int, order: int
) -> tuple[Tensor, Tensor | None]:
    # order 1: the transpose is the mean of what comes in.  order 2: <u, dx> = 2 sum_t grad_t cov_t(u, x), so
    # dgrad_t = 2 cov_t(u, x), and by symmetry dx = the same of u in place of x
    finite = x.isfinite()
    u, known = grad_dx.where(finite, 0), x.where(finite, 0)
    count, mean = _held(finite, u, window)
    if order == 1:
        return mean, None
    products = window_sum(u * known, window) - mean * window_sum(known, window)
    push = grad.masked_fill(grad.isnan(), 0)
    return 2 * products * _share(count, ddof), operator(push, u.where(finite, torch.nan), window, ddof, 2)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    ones = torch.ones(3, 1, dtype=torch.double)
    return Cases(
        door=rolling_adjoint,
        samples=(
            Sample(grad, holed, window=4),
            Sample(grad, x, window=3, ddof=1, order=2),
            Sample(grad, holed, window=4, order=2),
        ),
        bad=(
            Bad(Sample(grad, x[0], window=2), "grad and x must be of one shape"),
            Bad(Sample(grad, x, window=2, order=3), r"order must be in \[1, 2\]; got order=3"),
        ),
        golden=(Golden(Sample(ones, ones, window=2), torch.tensor([[1.5], [1.0], [0.5]]).double(), "by hand"),),
    )


operator = Op(
    "rolling_adjoint",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    causal=False,
)

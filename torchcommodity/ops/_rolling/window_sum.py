"""Sums over windows, backwards or ahead in time: what rolling operators and their gradients are made of."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer, raise_invalid
from torchcommodity.ops._rolling.window import windows


def window_sum(
    x: Tensor,  # (..., T, N)
    window: int,
    ahead: bool = False,
) -> Tensor:  # (..., T, N)
    """Sum over the last `window` rows: y_t = x_{t-W+1} + ... + x_t, where rows before the first are zero.

    Args:
        x: terms, in any unit; floating point, or int64 (a count).
        window: rows of a window, W >= 1.
        ahead: sum this row and the W - 1 after it instead, x_t + ... + x_{t+W-1}. That looks ahead: it is the transpose
            of the trailing sum, for gradients, and for no feature.

    Returns:
        y, in the unit of x, of its dtype, summed in float64. No warm-up. No row is taken out of a sum again: a huge
        value leaves no trace, and a NaN makes NaN of the sums that hold it, no others.

    Raises:
        ValueError, TypeError: `x` is no panel, `window` is no positive int.

    Devices: CPU and CUDA; elsewhere the reference. Linear in x, so differentiable to any order, in both modes.

    References:
        van Herk (1992). A fast algorithm for local minimum and maximum filters. doi:10.1016/0167-8655(92)90069-C: the
        blocks whose suffixes and prefixes make windows.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.window_sum(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), 2).squeeze(-1)
        tensor([1., 3., 5., 7.])
    """
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.dtype == torch.int64):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise_invalid("window_sum", "x must be a Tensor of floating point or int64", TypeError, x=kind)
    if x.dim() < 2:
        raise_invalid("window_sum", "x must be (..., T, N)", x=x)
    check_integer("window_sum", 1, window=window)
    y: Tensor = operator(x, window, ahead)
    return y


def window_spread(x: Tensor, window: int) -> Tensor:
    """The transpose: the sum over the rows whose window holds this one, itself and the `window - 1` after it."""
    return window_sum(x, window, ahead=True)


def _reference(x: Tensor, window: int, ahead: bool) -> Tensor:
    if ahead:
        return windows(x.flip(-2), window, 0).sum(-1).flip(-2)
    return windows(x, window, 0).sum(-1)


def _backward(grad: Tensor, *, window: int, ahead: bool) -> Tensor:
    # row s takes part in y_t for t = s .. s + W - 1: the same sum, in the other direction
    dx: Tensor = operator(grad, window, not ahead)
    return dx


def _jvp(d_x: Tensor, *, window: int, ahead: bool) -> Tensor:
    dy: Tensor = operator(d_x, window, ahead)
    return dy


def _oracle(x: Tensor, window: int, ahead: bool = False) -> Tensor:
    sums = x.flip(-2).cumsum(-2).flip(-2) if ahead else x.cumsum(-2)
    shifted = torch.zeros_like(sums)
    if window < x.shape[-2]:
        here, there = (slice(None, -window), slice(window, None))[:: 1 if ahead else -1]
        shifted[..., here, :] = sums[..., there, :]
    return sums - shifted


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    tall = torch.randn(1, 200, 2, dtype=torch.double, generator=generator)
    count = torch.arange(1, 6).reshape(5, 1)
    return Cases(
        function=window_sum,
        samples=(
            Sample(x, window=4),
            Sample(x, window=4, ahead=True),
            Sample(x, window=1),
            Sample(x[0, :, :1], window=20),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"window_sum: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "window_sum: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2.0), "window must be an int", TypeError),
            Bad(Sample(x.to(torch.int32), window=2), "of floating point or int64", TypeError),
        ),
        golden=(
            Golden(Sample(count, window=2), torch.tensor([[1], [3], [5], [7], [9]]), "by hand"),
            Golden(Sample(count, window=2, ahead=True), torch.tensor([[3], [5], [7], [9], [5]]), "by hand"),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(tall, window=7), Sample(tall, window=60, ahead=True), Sample(tall, window=300)),
    )


operator = Op(
    "window_sum",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    cases=_cases,
    causal=lambda window, ahead: not ahead or window == 1,
)

"""Sums over sliding windows, backward or forward in time: the building block of rolling formulas and gradients."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, live
from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity.ops._rolling.window import last_rows, sliding_windows


def _update(past: Past, x: Tensor, window: int, ahead: bool) -> Tensor:
    if ahead:
        raise_invalid("window_sum.start", "ahead must be False: later rows are not known yet", ahead=ahead)
    check_integer("window_sum", 1, window=window)
    return last_rows(window_sum(past.with_rows("rows", x, window), window), x.shape[-2])


@live(_update)
def window_sum(
    x: Tensor,  # (..., T, N)
    window: int,
    ahead: bool = False,
) -> Tensor:  # (..., T, N)
    """Sum over the last `window` rows: y_t = x_{t-W+1} + ... + x_t, with zeros before the first row.

    Unlike `rolling_sum` it has no warm-up and does not skip missing values: a NaN makes exactly the sums of the windows
    that contain it NaN.

    Args:
        x: Terms in any unit, floating-point or int64.
        window: Window length W in rows, >= 1.
        ahead: Sum this row and the following W - 1 instead, x_t + ... + x_{t+W-1}. This is the transpose of the
            trailing sum, for gradients. It looks ahead: do not use it for features.

    Returns:
        Sums in the unit and dtype of x, accumulated in float64 by the kernels. Terms are only added, never subtracted,
        so an outlier leaves no rounding error once it is out of the window.

    Raises:
        ValueError, TypeError: If `x` is not a panel or `window` is not a positive int.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Linear in x; differentiable to any order, in
    reverse and forward mode.

    References:
        van Herk (1992). A fast algorithm for local minimum and maximum filters. doi:10.1016/0167-8655(92)90069-C.
        Blocks, suffixes and prefixes are used for sums here.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.window_sum(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), 2).squeeze(-1)
        tensor([1., 3., 5., 7.])
    """
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.dtype == torch.int64):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise_invalid("window_sum", "x must be a floating-point or int64 Tensor", TypeError, x=kind)
    if x.dim() < 2:
        raise_invalid("window_sum", "x must be (..., T, N)", x=x)
    check_integer("window_sum", 1, window=window)
    y: Tensor = operator(x, window, ahead)
    return y


def window_sum_ahead(x: Tensor, window: int) -> Tensor:
    """Sum over this row and the following `window - 1`: over all windows that contain this row."""
    return window_sum(x, window, ahead=True)


def _reference(x: Tensor, window: int, ahead: bool = False) -> Tensor:
    if ahead:
        return sliding_windows(x.flip(-2), window, 0).sum(-1).flip(-2)
    return sliding_windows(x, window, 0).sum(-1)


def _backward(grad: Tensor, *, window: int, ahead: bool) -> Tensor:
    # row s is in the windows t = s .. s + W - 1: the same sum in the other direction
    dx: Tensor = operator(grad, window, not ahead)
    return dx


def _jvp(d_x: Tensor, *, window: int, ahead: bool) -> Tensor:
    dy: Tensor = operator(d_x, window, ahead)
    return dy


def _oracle(x: Tensor, window: int, ahead: bool = False) -> Tensor:
    sums = x.flip(-2).cumsum(-2).flip(-2) if ahead else x.cumsum(-2)
    outside = torch.zeros_like(sums)  # the cumulative sum of the rows on the other side of the window
    if window < x.shape[-2]:
        head, tail = slice(None, -window), slice(window, None)
        target, source = (head, tail) if ahead else (tail, head)
        outside[..., target, :] = sums[..., source, :]
    return sums - outside


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    long = torch.randn(1, 200, 2, dtype=torch.double, generator=generator)
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
            Bad(Sample(x.to(torch.int32), window=2), "floating-point or int64", TypeError),
        ),
        golden=(
            Golden(Sample(count, window=2), torch.tensor([[1], [3], [5], [7], [9]]), "by hand"),
            Golden(Sample(count, window=2, ahead=True), torch.tensor([[3], [5], [7], [9], [5]]), "by hand"),
        ),
        oracle=_oracle,
        oracle_samples=(Sample(long, window=7), Sample(long, window=60, ahead=True), Sample(long, window=300)),
    )


operator = Op(
    "commodity::window_sum",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    cases=_cases,
    causal=lambda window, ahead: not ahead or window == 1,
)

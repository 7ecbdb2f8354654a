"""Gradient of the rolling mean, variance and standard deviation, in one pass."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample, has_float64
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.window import deviations, overlap_add, sliding_windows
from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead


def rolling_mean_var_backward(
    grad: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    std: Tensor | None = None,  # (..., T, N)
    *,
    window: int,
    min_periods: int = 0,
    ddof: int = 0,
    order: int = 1,
) -> Tensor:  # (..., T, N)
    """Gradient of a rolling mean (order 1), variance (order 2) or standard deviation (order 2 with `std`).

    dx_s is a sum over the windows t that contain row s: of grad_t / n_t for the mean, of
    2 grad_t (x_s - mean_t) / (n_t - ddof) for the variance, and of half of that over std_t for the standard deviation.
    It looks ahead.

    Args:
        grad: Gradient of the output.
        x: Input of the rolling operator.
        std: Output of `rolling_std`, for its gradient.

    Returns:
        Gradient of x; zero where x is missing. The gradient of a NaN output is ignored.

    Raises:
        ValueError, TypeError: If the tensors are not floating-point panels of one shape or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode.

    Example:
        >>> import torch
        >>> from torchcommodity.ops._rolling.rolling_mean_var_backward import rolling_mean_var_backward
        >>> rolling_mean_var_backward(torch.ones(3, 1), torch.ones(3, 1), window=2).squeeze(-1)
        tensor([1.5000, 1.0000, 0.5000])
    """
    check_panel("rolling_mean_var_backward", grad=grad, x=x)
    check_integer("rolling_mean_var_backward", 1, window=window)
    check_integer("rolling_mean_var_backward", 0, ddof=ddof, min_periods=min_periods)
    check_integer("rolling_mean_var_backward", 1, maximum=2, order=order)
    if grad.shape != x.shape or (std is not None and std.shape != x.shape):
        raise_invalid("rolling_mean_var_backward", "grad, x and std must have one shape", grad=grad, x=x, std=std)
    dx: Tensor = operator(grad, x, std, window, min_periods, ddof, order)
    return dx


def _reference(
    grad: Tensor, x: Tensor, std: Tensor | None, window: int, min_periods: int, ddof: int, order: int
) -> Tensor:
    valid = x.isfinite()
    x = x.where(valid, 0)
    count, mean = _count_and_mean(valid, x, window)
    factor = _factor(count, std, min_periods, ddof, order)
    weight = grad.where(factor != 0, 0) * factor
    if order == 2 and not has_float64(x.device):
        return overlap_add(weight.unsqueeze(-1) * deviations(x.where(valid, torch.nan), window)).where(valid, 0)
    total = window_sum_ahead(weight, window)
    dx = total if order == 1 else x * total - window_sum_ahead(weight * mean, window)
    return dx.where(valid, 0)


def _count_and_mean(valid: Tensor, x: Tensor, window: int) -> tuple[Tensor, Tensor]:
    count = window_sum(valid.to(x), window)
    return count, window_sum(x, window) / count.clamp(min=1)


def _factor(count: Tensor, std: Tensor | None, min_periods: int, ddof: int, order: int) -> Tensor:
    """Factor of grad_t in the formula; zero where the output is NaN or a standard deviation of zero."""
    share = (count >= max(min_periods, ddof + 1)) / (count - ddof).clamp(min=1)
    if std is not None:
        return torch.where(std > 0, share / std.where(std > 0, 1), 0)
    return order * share


def second_backward(
    grad_dx: Tensor,
    *,
    grad: Tensor,
    x: Tensor,
    std: Tensor | None,
    window: int,
    min_periods: int,
    ddof: int,
    order: int,
) -> tuple[Tensor | None, ...]:
    """Gradients of grad, x and std from that of the result."""
    # order 1: the transpose is the rolling mean of u.  order 2: <u, dx> = sum_t grad_t factor_t products_t(u, x), so
    # dgrad_t = factor_t products_t, and by symmetry dx is the same operator with u in place of x; factor_t ~ 1 / std_t
    valid = x.isfinite()
    u, x = grad_dx.where(valid, 0), x.where(valid, 0)
    count, mean = _count_and_mean(valid, u, window)
    factor = _factor(count, std, min_periods, ddof, order)
    if order == 1:
        return factor * window_sum(u, window), None, None
    if not has_float64(x.device):
        products = factor * (sliding_windows(u, window, 0) * deviations(x.where(valid, torch.nan), window)).sum(-1)
    else:
        products = factor * (window_sum(u * x, window) - mean * window_sum(x, window))
    grad = grad.where((factor != 0) & ~grad.isnan(), 0)
    dx = operator(grad, u.where(valid, torch.nan), std, window, min_periods, ddof, 2)
    d_std = None if std is None else -grad * products / std.where(factor != 0, 1)
    return products, dx, d_std


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, x = torch.randn(2, 2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    std = 1 + torch.rand(x.shape, dtype=torch.double, generator=generator)
    ones = torch.ones(3, 1, dtype=torch.double)
    return Cases(
        function=rolling_mean_var_backward,
        samples=(
            Sample(grad, x_nan, window=4),
            Sample(grad, x, window=3, ddof=1, order=2),
            Sample(grad, x_nan, window=4, min_periods=3, order=2),
            Sample(grad, x_nan, std, window=4, ddof=1, order=2),
        ),
        bad=(
            Bad(Sample(grad, x[0], window=2), "grad, x and std must have one shape"),
            Bad(Sample(grad, x, window=2, order=3), r"order must be in \[1, 2\]; got order=3"),
        ),
        golden=(Golden(Sample(ones, ones, window=2), torch.tensor([[1.5], [1.0], [0.5]]).double(), "by hand"),),
    )


operator = Op(
    "commodity::rolling_mean_var_backward",
    reference=_reference,
    backward=second_backward,
    cases=_cases,
    causal=False,
)

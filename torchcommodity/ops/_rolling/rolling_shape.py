"""Rolling skewness and kurtosis over what a window holds."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling.rolling_shape_adjoint import operator as adjoint
from torchcommodity.ops._rolling.window import check_window, present


def rolling_skew(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling skewness, unbiased, pandas' `rolling(window, min_periods).skew()`.

    g_t = n sqrt(n - 1) / (n - 2) M3 / M2^(3/2), with Mk the sum of (x_s - mean_t)^k over the n values of the window.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.

    Returns:
        Skewness without unit; NaN where values are fewer than `min_periods` or three, or all equal. Missing values are
        skipped. Causal.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable to any order, in both modes; a missing value gets
    gradient zero, a NaN row takes no part.

    References:
        Joanes, Gill (1998). Comparing measures of sample skewness and kurtosis. doi:10.1111/1467-9884.00122.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_skew(torch.tensor([[1.0], [1.0], [4.0], [1.0]]), 3).squeeze(-1)
        tensor([   nan,    nan, 1.7321, 1.7321])
    """
    least = check_window("rolling_skew", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, 3)
    return y


def rolling_kurt(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling excess kurtosis, unbiased, pandas' `rolling(window, min_periods).kurt()`; as `rolling_skew`, of four
    values at least: k_t = (n - 1) / ((n - 2) (n - 3)) ((n + 1) n M4 / M2^2 - 3 (n - 1)).

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_kurt(torch.tensor([[1.0], [1.0], [4.0], [1.0], [1.0]]), 4).squeeze(-1)
        tensor([nan, nan, nan, 4., 4.])
    """
    least = check_window("rolling_kurt", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, 4)
    return y


def _reference(x: Tensor, window: int, min_periods: int, order: int) -> Tensor:
    rows, finite, n = present(x, window, max(min_periods, order))
    lowest = rows.where(finite, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - lowest).where(finite, 0)  # a constant becomes exactly zero
    moved = (rows - rows.sum(-1, keepdim=True) / n.unsqueeze(-1)).where(finite, 0)
    second, power = moved.square().sum(-1), moved.pow(order).sum(-1)
    second = second.where(second > 0, torch.nan)
    if order == 3:
        return n * (n - 1).sqrt() / (n - 2) * power / second**1.5
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * power / second.square() - 3 * (n - 1))


def _backward(grad: Tensor, *, x: Tensor, window: int, order: int, output: Tensor) -> Tensor:
    dx: Tensor = adjoint(grad, x, output, window, order)
    return dx


def _oracle(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).skew().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:6, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 1.0, 4.0, 1.0], dtype=torch.double).reshape(4, 1)
    skew = torch.tensor([torch.nan, torch.nan, 3**0.5, 3**0.5], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_skew,
        samples=(Sample(x, window=5), Sample(holed, window=6, min_periods=3)),
        bad=(
            Bad(Sample(x[0, 0], window=5), r"rolling_skew: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_skew: window must be >= 1; got window=0"),
            Bad(Sample(x, window=5, min_periods=6), r"min_periods must be in \[0, window\]"),
        ),
        golden=(Golden(Sample(steps, window=3), skew, "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(tall, window=60), Sample(gaps, window=20, min_periods=5)),
    )


operator = Op(
    "rolling_shape",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    mask_nan_grad=False,  # the adjoint does it
    warmup=lambda window, min_periods, order: max(min_periods, order) - 1,
)

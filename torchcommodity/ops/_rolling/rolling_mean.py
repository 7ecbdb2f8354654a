"""Rolling mean and sum over what a window holds."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling.rolling_adjoint import operator as adjoint
from torchcommodity.ops._rolling.window import check_window, present
from torchcommodity.ops._rolling.window_sum import window_sum


def rolling_mean(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling mean, pandas' `rolling(window, min_periods).mean()`.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.

    Returns:
        The mean of the values among the last W rows, in the unit of x; NaN where they are fewer than `min_periods`, or
        none. Missing values are skipped. Causal; warm-up min_periods - 1 rows.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable to any order, in both modes; a missing value gets
    gradient zero, a NaN row takes no part.

    References:
        McKinney (2010). Data structures for statistical computing in Python. doi:10.25080/Majora-92bf1922-00a.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_mean(torch.tensor([[1.0], [torch.nan], [3.0], [5.0]]), 2, min_periods=1).squeeze(-1)
        tensor([1., 1., 3., 4.])
    """
    least = check_window("rolling_mean", window, min_periods, x=x)
    y: Tensor = operator(x, window, least)
    return y


def rolling_sum(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling sum, pandas' `rolling(window, min_periods).sum()`: as `rolling_mean`, and zero for a window that holds
    nothing where `min_periods` = 0.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_sum(torch.tensor([[1.0], [torch.nan], [3.0], [5.0]]), 2, min_periods=1).squeeze(-1)
        tensor([1., 1., 3., 8.])
    """
    least = check_window("rolling_sum", window, min_periods, x=x)
    finite = x.isfinite()
    total = window_sum(x.where(finite, 0), window)
    return total.where(window_sum(finite.to(x.dtype), window) >= least, torch.nan)


def _reference(x: Tensor, window: int, min_periods: int) -> Tensor:
    rows, _, count = present(x, window, min_periods)
    return rows.sum(-1) / count.where(count > 0, torch.nan)


def _backward(grad: Tensor, *, x: Tensor, window: int, min_periods: int) -> Tensor:
    # dx_s = sum of g_t / n_t over the windows that hold s, n_t values each
    dx: Tensor = adjoint(grad, x, None, window, min_periods, 0, 1)
    return dx


def _jvp(d_x: Tensor, *, x: Tensor, window: int) -> Tensor:
    # dy_t = the mean of the tangents of what the window holds
    dy: Tensor = operator(d_x.where(x.isfinite(), torch.nan), window, 1)
    return dy.nan_to_num(0)


def _oracle(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).mean().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    tall = 1e6 + 1e-2 * torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    golden = torch.tensor([torch.nan, 1.5, 2.5, 3.5, 4.5], dtype=torch.double).reshape(5, 1)
    return Cases(
        function=rolling_mean,
        samples=(Sample(x, window=4), Sample(holed, window=3, min_periods=1), Sample(holed, window=2, min_periods=0)),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_mean: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_mean: window must be >= 1; got window=0"),
            Bad(
                Sample(x, window=2, min_periods=3), r"min_periods must be in \[0, window\]; got min_periods=3, window=2"
            ),
            Bad(Sample(x.long(), window=2), "x must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(torch.arange(1.0, 6.0).double().reshape(5, 1), window=2), golden, "by hand"),),
        oracle=_oracle,
        oracle_samples=(
            Sample(tall, window=60),
            Sample(gaps, window=20, min_periods=5),
            Sample(gaps, window=400, min_periods=0),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "rolling_mean",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    cases=_cases,
    mask_nan_grad=False,  # the adjoint does it
    warmup=lambda window, min_periods: max(min_periods, 1) - 1,
)

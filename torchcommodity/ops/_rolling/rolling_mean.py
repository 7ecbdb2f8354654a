"""Rolling mean and sum."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling import rolling_mean_var_backward
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, valid_windows
from torchcommodity.ops._rolling.window_sum import window_sum


@live_windows
def rolling_mean(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling mean over the last `window` rows, as pandas `rolling(window, min_periods).mean()`.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.

    Returns:
        Mean of the valid values in the window, in the unit of x. NaN where fewer than `min_periods` values are valid,
        or none. Causal; the first min_periods - 1 rows are NaN.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode. A missing value has gradient zero; the gradient of a NaN output is ignored.

    References:
        McKinney (2010). Data structures for statistical computing in Python. doi:10.25080/Majora-92bf1922-00a.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_mean(torch.tensor([[1.0], [torch.nan], [3.0], [5.0]]), 2, min_periods=1).squeeze(-1)
        tensor([1., 1., 3., 4.])
    """
    min_periods = check_window("rolling_mean", window, min_periods, x=x)
    y: Tensor = operator(x, window, min_periods)
    return y


@live_windows
def rolling_sum(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling sum over the last `window` rows, as pandas `rolling(window, min_periods).sum()`.

    Arguments, errors and gradients are those of `rolling_mean`. With `min_periods=0`, the sum of a window without valid
    values is zero.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_sum(torch.tensor([[1.0], [torch.nan], [3.0], [5.0]]), 2, min_periods=1).squeeze(-1)
        tensor([1., 1., 3., 8.])
    """
    min_periods = check_window("rolling_sum", window, min_periods, x=x)
    valid = x.isfinite()
    total = window_sum(x.where(valid, 0), window)
    return total.where(window_sum(valid.to(x.dtype), window) >= min_periods, torch.nan)


def _reference(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    rows, _, count = valid_windows(x, window, min_periods)
    return rows.sum(-1) / count.where(count > 0, torch.nan)


def _backward(grad: Tensor, *, x: Tensor, window: int, min_periods: int | None) -> Tensor:
    # dx_s = sum of g_t / n_t over the windows t that contain s, with n_t valid values each
    min_periods = resolve_min_periods(window, min_periods)
    dx: Tensor = rolling_mean_var_backward.operator(grad, x, None, window, min_periods, 0, 1)
    return dx


def _jvp(d_x: Tensor, *, x: Tensor, window: int) -> Tensor:
    # dy_t = mean of the tangents of the valid values in the window
    dy: Tensor = operator(d_x.where(x.isfinite(), torch.nan), window, 1)
    return dy.nan_to_num(0)


def _oracle(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).mean().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    long = 1e6 + 1e-2 * torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    golden = torch.tensor([torch.nan, 1.5, 2.5, 3.5, 4.5], dtype=torch.double).reshape(5, 1)
    return Cases(
        function=rolling_mean,
        samples=(Sample(x, window=4), Sample(x_nan, window=3, min_periods=1), Sample(x_nan, window=2, min_periods=0)),
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
            Sample(long, window=60),
            Sample(long_nan, window=20, min_periods=5),
            Sample(long_nan, window=400, min_periods=0),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "commodity::rolling_mean",
    reference=_reference,
    backward=_backward,
    jvp=_jvp,
    cases=_cases,
    mask_nan_grad=False,  # the backward operator masks
    warmup=lambda window, min_periods: max(resolve_min_periods(window, min_periods), 1) - 1,
)

"""Rolling skewness and kurtosis."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling import rolling_skew_kurt_backward
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, valid_windows


@live_windows
def rolling_skew(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Unbiased rolling skewness over the last `window` rows, as pandas `rolling(window, min_periods).skew()`.

    g_t = n sqrt(n - 1) / (n - 2) M3 / M2^(3/2), with Mk the sum of (x_s - mean_t)^k over the n valid values in the
    window.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.

    Returns:
        Skewness, dimensionless. NaN where fewer than `min_periods` or three values are valid, or all are equal. Causal.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode. A missing value has gradient zero; the gradient of a NaN output is ignored.

    References:
        Joanes, Gill (1998). Comparing measures of sample skewness and kurtosis. doi:10.1111/1467-9884.00122.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_skew(torch.tensor([[1.0], [1.0], [4.0], [1.0]]), 3).squeeze(-1)
        tensor([   nan,    nan, 1.7321, 1.7321])
    """
    min_periods = check_window("rolling_skew", window, min_periods, x=x)
    y: Tensor = operator(x, window, min_periods, 3)
    return y


@live_windows
def rolling_kurt(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Unbiased rolling excess kurtosis over the last `window` rows, as pandas `rolling(window, min_periods).kurt()`.

    k_t = (n - 1) / ((n - 2) (n - 3)) ((n + 1) n M4 / M2^2 - 3 (n - 1)), with Mk as in `rolling_skew`, whose arguments
    and errors it has. It takes at least four valid values.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_kurt(torch.tensor([[1.0], [1.0], [4.0], [1.0], [1.0]]), 4).squeeze(-1)
        tensor([nan, nan, nan, 4., 4.])
    """
    min_periods = check_window("rolling_kurt", window, min_periods, x=x)
    y: Tensor = operator(x, window, min_periods, 4)
    return y


def _reference(x: Tensor, window: int, min_periods: int | None = None, order: int = 3) -> Tensor:
    rows, valid, n = valid_windows(x, window, max(resolve_min_periods(window, min_periods), order))
    minimum = rows.where(valid, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - minimum).where(valid, 0)  # a constant window becomes exactly zero
    centered = (rows - rows.sum(-1, keepdim=True) / n.unsqueeze(-1)).where(valid, 0)
    m2, moment = centered.square().sum(-1), centered.pow(order).sum(-1)
    m2 = m2.where(m2 > 0, torch.nan)
    if order == 3:
        return n * (n - 1).sqrt() / (n - 2) * moment / m2**1.5
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * n * moment / m2.square() - 3 * (n - 1))


def _backward(grad: Tensor, *, x: Tensor, window: int, order: int, output: Tensor) -> Tensor:
    dx: Tensor = rolling_skew_kurt_backward.operator(grad, x, output, window, order)
    return dx


def _oracle(x: Tensor, window: int, min_periods: int | None = None) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).skew().to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:6, 1] = x_nan[1, 5, 2] = torch.nan
    long = torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 1.0, 4.0, 1.0], dtype=torch.double).reshape(4, 1)
    skew = torch.tensor([torch.nan, torch.nan, 3**0.5, 3**0.5], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_skew,
        samples=(Sample(x, window=5), Sample(x_nan, window=6, min_periods=3)),
        bad=(
            Bad(Sample(x[0, 0], window=5), r"rolling_skew: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_skew: window must be >= 1; got window=0"),
            Bad(Sample(x, window=5, min_periods=6), r"min_periods must be in \[0, window\]"),
        ),
        golden=(Golden(Sample(steps, window=3), skew, "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(long, window=60), Sample(long_nan, window=20, min_periods=5)),
    )


operator = Op(
    "commodity::rolling_skew_kurt",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    mask_nan_grad=False,  # the backward operator masks
    warmup=lambda window, min_periods, order: max(resolve_min_periods(window, min_periods), order) - 1,
)

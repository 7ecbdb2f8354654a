"""Rolling variance and standard deviation."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import check_integer
from torchcommodity.ops._rolling import rolling_mean_var_backward
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, valid_windows


@live_windows
def rolling_var(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Rolling variance over the last `window` rows, as pandas `rolling(window, min_periods).var(ddof)`.

    v_t = sum (x_s - mean_t)^2 / (n_t - ddof), over the n_t valid values in the window.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.
        ddof: Delta degrees of freedom, >= 0.

    Returns:
        Variance of the valid values in the window, in the squared unit of x; exactly zero where they are all equal. NaN
        where fewer than `min_periods` or at most `ddof` values are valid. Causal.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode. A missing value has gradient zero; the gradient of a NaN output is ignored.

    References:
        Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance. doi:10.1080/00031305.1983.10483115.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_var(torch.tensor([[1.0], [3.0], [torch.nan], [7.0]]), 3, min_periods=2).squeeze(-1)
        tensor([nan, 2., 2., 8.])
    """
    return _checked("rolling_var", x, window, min_periods, ddof, root=False)


@live_windows
def rolling_std(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Rolling standard deviation over the last `window` rows: the square root of `rolling_var`, in the unit of x.

    Arguments and errors are those of `rolling_var`. The gradient is zero where the standard deviation is zero.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_std(torch.tensor([[1.0], [3.0], [torch.nan], [7.0]]), 3, min_periods=2, ddof=0).squeeze(-1)
        tensor([nan, 1., 1., 2.])
    """
    return _checked("rolling_std", x, window, min_periods, ddof, root=True)


def _checked(name: str, x: Tensor, window: int, min_periods: int | None, ddof: int, root: bool) -> Tensor:
    min_periods = check_window(name, window, min_periods, x=x)
    check_integer(name, 0, ddof=ddof)
    y: Tensor = operator(x, window, min_periods, ddof, root)
    return y


def _reference(x: Tensor, window: int, min_periods: int | None = None, ddof: int = 1, root: bool = False) -> Tensor:
    rows, valid, count = valid_windows(x, window, min_periods)
    minimum = rows.where(valid, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - minimum).where(valid, 0)  # a constant window becomes exactly zero
    centered = (rows - rows.sum(-1, keepdim=True) / count.unsqueeze(-1)).where(valid, 0)
    variance = centered.square().sum(-1) / (count - ddof).where(count > ddof, torch.nan)
    return variance.sqrt() if root else variance


def _backward(
    grad: Tensor, *, x: Tensor, window: int, min_periods: int | None, ddof: int, root: bool, output: Tensor
) -> Tensor:
    # dv_t / dx_s = 2 (x_s - mean_t) / (n_t - ddof),   d sqrt(v_t) = dv_t / (2 sqrt(v_t))
    min_periods, std = resolve_min_periods(window, min_periods), output if root else None
    dx: Tensor = rolling_mean_var_backward.operator(grad, x, std, window, min_periods, ddof, 2)
    return dx


def _oracle(x: Tensor, window: int, min_periods: int | None = None, ddof: int = 1) -> Tensor:
    import pandas as pd

    frame = pd.DataFrame(x.reshape(x.shape[-2:]).numpy())
    return torch.tensor(frame.rolling(window, min_periods).var(ddof=ddof).to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    long = torch.randn(1, 300, 2, dtype=torch.double, generator=generator)
    long[:, 100:200, 0] = 1.1
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 3.0, 3.0, 7.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_var,
        samples=(
            Sample(x, window=4),
            Sample(x_nan, window=5, min_periods=2),
            Sample(x_nan, window=3, min_periods=1, ddof=0),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_var: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_var: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, min_periods=3), r"min_periods must be in \[0, window\]"),
            Bad(Sample(x, window=2, ddof=-1), "ddof must be >= 0; got ddof=-1"),
        ),
        golden=(
            Golden(
                Sample(steps, window=2, ddof=0),
                torch.tensor([torch.nan, 1.0, 0.0, 4.0], dtype=torch.double).reshape(4, 1),
                "by hand",
            ),
        ),
        oracle=_oracle,
        oracle_samples=(
            Sample(long, window=60),
            Sample(long_nan, window=20, min_periods=5, ddof=0),
            Sample(long_nan, window=400, min_periods=0),
        ),
    )


operator = Op(
    "commodity::rolling_var",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    mask_nan_grad=False,  # the backward operator masks
    warmup=lambda window, min_periods, ddof: max(resolve_min_periods(window, min_periods), 1, ddof + 1) - 1,
)

"""Rolling minimum and maximum, and their lag: how many rows ago they occurred."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, sliding_windows


class RollingExtrema(NamedTuple):
    """Result of `rolling_extrema`."""

    values: Tensor  # (..., T, N)
    lag: Tensor  # (..., T, N) int64


@live_windows
def rolling_extrema(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    largest: bool = True,
) -> RollingExtrema:
    """Rolling maximum or minimum over the last `window` rows, and its lag: values_t = x_{t - lag_t}.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.
        largest: Return the maximum, otherwise the minimum.

    Returns:
        values: As pandas `rolling(window, min_periods).max()` or `.min()`, in the unit of x.
        lag: Rows since the extremum; of equal values the latest counts.
        NaN and -1 where fewer than `min_periods` values are valid, or none. Causal; the first min_periods - 1 rows are
        NaN.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. `values` is differentiable to any order, in reverse
    and forward mode: the gradient goes to the row of the extremum. `lag` has no gradient.

    References:
        van Herk (1992). A fast algorithm for local minimum and maximum filters. doi:10.1016/0167-8655(92)90069-C.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> values, lag = ops.rolling_extrema(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2)
        >>> values.squeeze(-1), lag.squeeze(-1)
        (tensor([nan, 3., 3., 2.]), tensor([-1,  0,  1,  1]))
    """
    min_periods = check_window("rolling_extrema", window, min_periods, x=x)
    return RollingExtrema(*operator(x, window, min_periods, largest))


@live_windows
def rolling_max(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling maximum over the last `window` rows, as pandas `rolling(window, min_periods).max()`.

    See `rolling_extrema` for arguments, errors and gradients.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_max(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2).squeeze(-1)
        tensor([nan, 3., 3., 2.])
    """
    min_periods = check_window("rolling_max", window, min_periods, x=x)
    y: Tensor = operator(x, window, min_periods, True)[0]
    return y


@live_windows
def rolling_min(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling minimum over the last `window` rows, as pandas `rolling(window, min_periods).min()`.

    See `rolling_extrema` for arguments, errors and gradients.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_min(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2).squeeze(-1)
        tensor([nan, 1., 2., 0.])
    """
    min_periods = check_window("rolling_min", window, min_periods, x=x)
    y: Tensor = operator(x, window, min_periods, False)[0]
    return y


def _reference(x: Tensor, window: int, min_periods: int | None = None, largest: bool = True) -> tuple[Tensor, Tensor]:
    rows = sliding_windows(x if largest else -x, window).flip(-1)  # latest first: argmax takes the first of equals
    valid = rows.isfinite()
    defined = valid.sum(-1) >= max(resolve_min_periods(window, min_periods), 1)
    maximum, lag = rows.where(valid, -torch.inf).max(-1)
    return (maximum if largest else -maximum).where(defined, torch.nan), lag.where(defined, -1)


def _fake(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.int64)


def _backward(grad: Tensor, _: Tensor | None, *, output: tuple[Tensor, Tensor]) -> Tensor:
    # dx_s = sum of g_t over the rows t whose extremum is row s
    return gather_lag(grad, output[1], scatter=True)


def _oracle(x: Tensor, window: int, min_periods: int | None = None, largest: bool = True) -> tuple[Tensor, Tensor]:
    import numpy as np
    import pandas as pd

    def lag_of(rows: np.ndarray) -> float:
        latest_first = (rows if largest else -rows)[::-1]
        return float(np.nanargmax(latest_first)) if np.isfinite(latest_first).any() else -1.0

    rolling = pd.DataFrame(x.reshape(x.shape[-2:]).numpy()).rolling(window, min_periods)
    values, lag = (rolling.max() if largest else rolling.min()), rolling.apply(lag_of, raw=True).fillna(-1)
    return torch.tensor(values.to_numpy()).reshape(x.shape), torch.tensor(lag.to_numpy()).long().reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    long = torch.randint(9, (1, 200, 2), generator=generator).double()
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([2.0, 2.0, 1.0, 1.0, 0.0], dtype=torch.double).reshape(5, 1)
    maxima = torch.tensor([torch.nan, torch.nan, 2, 2, 1], dtype=torch.double).reshape(5, 1)
    return Cases(
        function=rolling_extrema,
        samples=(
            Sample(x, window=4),
            Sample(x_nan, window=3, min_periods=1, largest=False),
            Sample(x_nan, window=2, min_periods=0),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_extrema: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_extrema: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, min_periods=3), r"min_periods must be in \[0, window\]"),
            Bad(Sample(x.long(), window=2), "x must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(steps, window=3), (maxima, torch.tensor([[-1], [-1], [1], [2], [1]])), "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(long, window=30), Sample(long_nan, window=20, min_periods=5, largest=False)),
        oracle_tolerance=0.0,
    )


operator = Op(
    "commodity::rolling_extrema",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    warmup=lambda window, min_periods: max(resolve_min_periods(window, min_periods), 1) - 1,
)

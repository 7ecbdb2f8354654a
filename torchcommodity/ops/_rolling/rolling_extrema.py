"""Rolling minimum and maximum, and how many rows ago they stood."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._rolling.window import check_window, windows


class RollingExtrema(NamedTuple):
    values: Tensor  # (..., T, N)
    since: Tensor  # (..., T, N) int64


def rolling_extrema(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    largest: bool = True,
) -> RollingExtrema:
    """Rolling maximum, or minimum, and the age of it: values_t = x_{t - since_t}.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.
        largest: the maximum, else the minimum.

    Returns:
        values, pandas' `rolling(window, min_periods).max()` or `.min()`, in the unit of x; since, the rows from it to
        here, the fewest where equal values compete. NaN and -1 where the window holds fewer than `min_periods` values,
        or none. Missing values are skipped. Causal; warm-up min_periods - 1 rows.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. `values` is differentiable to any order, in both modes: the gradient
    goes to the row `since` rows ago. `since` is a count.

    References:
        van Herk (1992). A fast algorithm for local minimum and maximum filters. doi:10.1016/0167-8655(92)90069-C.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> values, since = ops.rolling_extrema(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2)
        >>> values.squeeze(-1), since.squeeze(-1)
        (tensor([nan, 3., 3., 2.]), tensor([-1,  0,  1,  1]))
    """
    least = check_window("rolling_extrema", window, min_periods, x=x)
    return RollingExtrema(*operator(x, window, least, largest))


def rolling_max(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling maximum, pandas' `rolling(window, min_periods).max()`: the values of `rolling_extrema`.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_max(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2).squeeze(-1)
        tensor([nan, 3., 3., 2.])
    """
    least = check_window("rolling_max", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, True)[0]
    return y


def rolling_min(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling minimum, pandas' `rolling(window, min_periods).min()`: the values of `rolling_extrema`.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_min(torch.tensor([[1.0], [3.0], [2.0], [0.0]]), 2).squeeze(-1)
        tensor([nan, 1., 2., 0.])
    """
    least = check_window("rolling_min", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, False)[0]
    return y


def _reference(x: Tensor, window: int, min_periods: int, largest: bool) -> tuple[Tensor, Tensor]:
    rows = windows(x if largest else -x, window).flip(-1)  # the latest first: argmax takes the first of equals
    finite = rows.isfinite()
    known = finite.sum(-1) >= max(min_periods, 1)
    best, since = rows.where(finite, -torch.inf).max(-1)
    return (best if largest else -best).where(known, torch.nan), since.where(known, -1)


def _fake(x: Tensor, window: int, min_periods: int, largest: bool) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape, dtype=torch.int64)


def _backward(grad: Tensor, _: Tensor | None, *, output: tuple[Tensor, Tensor]) -> Tensor:
    # dx_s = sum of g_t over the rows t whose extremum stood at s
    return gather_lag(grad, output[1], spread=True)


def _oracle(x: Tensor, window: int, min_periods: int | None = None, largest: bool = True) -> tuple[Tensor, Tensor]:
    import numpy as np
    import pandas as pd

    def age(rows: np.ndarray) -> float:
        latest = (rows if largest else -rows)[::-1]
        return float(np.nanargmax(latest)) if np.isfinite(latest).any() else -1.0

    rolling = pd.DataFrame(x.reshape(x.shape[-2:]).numpy()).rolling(window, min_periods)
    values, since = (rolling.max() if largest else rolling.min()), rolling.apply(age, raw=True).fillna(-1)
    return torch.tensor(values.to_numpy()).reshape(x.shape), torch.tensor(since.to_numpy()).long().reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randint(9, (1, 200, 2), generator=generator).double()
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([2.0, 2.0, 1.0, 1.0, 0.0], dtype=torch.double).reshape(5, 1)
    most = torch.tensor([torch.nan, torch.nan, 2, 2, 1], dtype=torch.double).reshape(5, 1)
    return Cases(
        function=rolling_extrema,
        samples=(
            Sample(x, window=4),
            Sample(holed, window=3, min_periods=1, largest=False),
            Sample(holed, window=2, min_periods=0),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_extrema: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_extrema: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, min_periods=3), r"min_periods must be in \[0, window\]"),
            Bad(Sample(x.long(), window=2), "x must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(steps, window=3), (most, torch.tensor([[-1], [-1], [1], [2], [1]])), "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(tall, window=30), Sample(gaps, window=20, min_periods=5, largest=False)),
        oracle_tolerance=0.0,
    )


operator = Op(
    "rolling_extrema",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    warmup=lambda window, min_periods, largest: max(min_periods, 1) - 1,
)

"""Rolling rank: the position of each value among those of its window."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, sliding_windows

METHODS = {"average": (0.5, 0.5), "min": (1.0, 0.0), "max": (0.0, 1.0)}  # `low` and `high` of the operator


@live_windows
def rolling_rank(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    method: str = "average",
    ascending: bool = True,
    pct: bool = False,
) -> Tensor:  # (..., T, N)
    """Rolling rank of each value among the last `window` rows, as pandas `rolling(window, min_periods).rank(...)`.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.
        method: Rank of equal values: the "average", "min" or "max" of their ranks.
        ascending: The smallest value has rank 1; otherwise the largest.
        pct: Divide by the number of valid values, for ranks in (0, 1].

    Returns:
        Ranks from 1, dimensionless. NaN where x is missing or fewer than `min_periods` values are valid. Causal; the
        first min_periods - 1 rows are NaN.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Not differentiable: a rank is piecewise constant.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_rank(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3).squeeze(-1)
        tensor([nan, nan, 2., 3.])
    """
    min_periods = check_window("rolling_rank", window, min_periods, x=x)
    if method not in METHODS:
        raise_invalid("rolling_rank", f"method must be one of {', '.join(METHODS)}", method=method)
    y: Tensor = operator(x, window, min_periods, *METHODS[method], ascending, pct)
    return y


def _reference(
    x: Tensor,
    window: int,
    min_periods: int | None = None,
    low: float = 0.5,
    high: float = 0.5,
    ascending: bool = True,
    pct: bool = False,
) -> Tensor:
    # rank = number of smaller values + low + high * number of equal values, x_t included
    rows, latest = sliding_windows(x, window), x.unsqueeze(-1)
    valid = rows.isfinite()
    count = valid.sum(-1)
    less = (valid & (rows < latest if ascending else rows > latest)).sum(-1)
    rank = less.to(x.dtype) + low + high * (rows == latest).sum(-1)
    rank = rank / count.clamp(min=1) if pct else rank
    return rank.where(x.isfinite() & (count >= resolve_min_periods(window, min_periods)), torch.nan)


def _oracle(x: Tensor, window: int, min_periods: int | None = None, **settings: object) -> Tensor:
    import pandas as pd

    rolling = pd.DataFrame(x.reshape(x.shape[-2:]).numpy()).rolling(window, min_periods)
    return torch.tensor(rolling.rank(**settings).to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    long = torch.randint(40, (1, 300, 2), generator=generator).double()
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 5.0, 5.0, 2.0], dtype=torch.double).reshape(4, 1)
    ranks = torch.tensor([torch.nan, torch.nan, 2.5, 1.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_rank,
        samples=(
            Sample(x, window=4),
            Sample(x_nan, window=3, min_periods=1, method="min", ascending=False),
            Sample(x_nan, window=5, min_periods=2, method="max", pct=True),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_rank: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_rank: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, method="dense"), "method must be one of average, min, max; got method='dense'"),
        ),
        golden=(Golden(Sample(steps, window=3), ranks, "by hand"),),
        oracle=_oracle,
        oracle_samples=(
            Sample(long, window=60, pct=True),
            *(Sample(long_nan, window=20, min_periods=5, method=name, ascending=name == "min") for name in METHODS),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "commodity::rolling_rank",
    reference=_reference,
    cases=_cases,
    warmup=lambda window, min_periods: max(resolve_min_periods(window, min_periods), 1) - 1,
)

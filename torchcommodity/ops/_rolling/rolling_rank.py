"""Rolling rank: the place of each value among those before it."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops._rolling.window import check_window, windows

METHODS = {"average": (0.5, 0.5), "min": (1.0, 0.0), "max": (0.0, 1.0)}  # low and high, as the operator takes them


def rolling_rank(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    method: str = "average",
    ascending: bool = True,
    pct: bool = False,
) -> Tensor:  # (..., T, N)
    """Rolling rank of each row's value in its window, pandas' `rolling(window, min_periods).rank(...)`.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: values that a window must hold, in [0, W]; by default all.
        method: the rank of equal values: the "average" of their places, the "min" or the "max".
        ascending: the smallest value has rank 1; else the largest.
        pct: divide by the number of values, so that ranks end at 1.

    Returns:
        Ranks without unit, from 1 on; NaN where x is missing, or the window holds fewer than `min_periods` values.
        Missing values are skipped. Causal; warm-up min_periods - 1 rows.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. A rank moves in steps: there is no gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_rank(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3).squeeze(-1)
        tensor([nan, nan, 2., 3.])
    """
    least = check_window("rolling_rank", window, min_periods, x=x)
    if method not in METHODS:
        raise_invalid("rolling_rank", f"method must be one of {', '.join(METHODS)}", method=method)
    y: Tensor = operator(x, window, least, *METHODS[method], ascending, pct)
    return y


def _reference(x: Tensor, window: int, min_periods: int, low: float, high: float, ascending: bool, pct: bool) -> Tensor:
    # among equal values the rank is `low` + `high` times how many they are
    rows, now = windows(x, window), x.unsqueeze(-1)
    finite = rows.isfinite()
    count = finite.sum(-1)
    less = (finite & (rows < now if ascending else rows > now)).sum(-1)
    rank = less.to(x.dtype) + low + high * (rows == now).sum(-1)
    rank = rank / count.clamp(min=1) if pct else rank
    return rank.where(x.isfinite() & (count >= min_periods), torch.nan)


def _oracle(x: Tensor, window: int, min_periods: int | None = None, **settings: object) -> Tensor:
    import pandas as pd

    rolling = pd.DataFrame(x.reshape(x.shape[-2:]).numpy()).rolling(window, min_periods)
    return torch.tensor(rolling.rank(**settings).to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randint(40, (1, 300, 2), generator=generator).double()
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 5.0, 5.0, 2.0], dtype=torch.double).reshape(4, 1)
    ranks = torch.tensor([torch.nan, torch.nan, 2.5, 1.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_rank,
        samples=(
            Sample(x, window=4),
            Sample(holed, window=3, min_periods=1, method="min", ascending=False),
            Sample(holed, window=5, min_periods=2, method="max", pct=True),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2), r"rolling_rank: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0), "rolling_rank: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, method="dense"), "method must be one of average, min, max; got method='dense'"),
        ),
        golden=(Golden(Sample(steps, window=3), ranks, "by hand"),),
        oracle=_oracle,
        oracle_samples=(
            Sample(tall, window=60, pct=True),
            *(Sample(gaps, window=20, min_periods=5, method=m, ascending=m == "min") for m in METHODS),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "rolling_rank",
    reference=_reference,
    cases=_cases,
    warmup=lambda window, min_periods, low, high, ascending, pct: max(min_periods, 1) - 1,
)

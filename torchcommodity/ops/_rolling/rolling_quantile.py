"""Rolling quantile and median."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample, has_float64
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._rolling.window import check_window, live_windows, resolve_min_periods, sliding_windows
from torchcommodity.ops._rolling.window_sum import window_sum

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")  # in the order of the kernels' enum


@live_windows
def rolling_quantile(
    x: Tensor,  # (..., T, N)
    window: int,
    quantile: float,
    *,
    interpolation: str = "linear",
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling quantile, as pandas `rolling(window, min_periods).quantile(quantile, interpolation)`.

    Of n sorted values v_0 .. v_{n-1}, the q-quantile is the one at position (n - 1) q, or is interpolated between its
    two neighbors.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        quantile: q, in [0, 1].
        interpolation: Value between two neighbors: "linear", "lower", "higher", "midpoint" or "nearest" (ties go to the
            even position).
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.

    Returns:
        Quantile of the valid values in the window, in the unit of x. NaN where fewer than `min_periods` values are
        valid, or none. Causal; the first min_periods - 1 rows are NaN.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable in reverse and forward mode: the
    gradient goes to the two neighboring values.

    References:
        Hyndman, Fan (1996). Sample quantiles in statistical packages. doi:10.1080/00031305.1996.10473566, definition 7.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_quantile(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3, 0.75).squeeze(-1)
        tensor([   nan,    nan, 3.5000, 7.0000])
    """
    min_periods = check_window("rolling_quantile", window, min_periods, x=x)
    if not 0 <= quantile <= 1:
        raise_invalid("rolling_quantile", "quantile must be in [0, 1]", quantile=quantile, x=x)
    if interpolation not in INTERPOLATIONS:
        expected = f"interpolation must be one of {', '.join(INTERPOLATIONS)}"
        raise_invalid("rolling_quantile", expected, interpolation=interpolation)
    y: Tensor = operator(x, window, float(quantile), min_periods, INTERPOLATIONS.index(interpolation))[0]
    return y


@live_windows
def rolling_median(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling median, as pandas `rolling(window, min_periods).median()`: `rolling_quantile` with q = 0.5.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_median(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3).squeeze(-1)
        tensor([nan, nan, 2., 5.])
    """
    min_periods = check_window("rolling_median", window, min_periods, x=x)
    y: Tensor = operator(x, window, 0.5, min_periods)[0]
    return y


def _positions(steps: int, quantile: float, interpolation: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """For each count of sorted values from 0 to `steps`: index of the lower neighbor, and weight of the upper one."""
    # in float64: 0.29 * 100 is less than 29, but not in float32
    device = like.device if has_float64(like.device) else torch.device("cpu")
    position = quantile * (torch.arange(steps + 1, dtype=torch.double, device=device) - 1)
    fraction = position - position.floor()
    weight = {
        "linear": fraction,
        "lower": torch.zeros_like(fraction),
        "higher": (fraction > 0).to(fraction),
        "midpoint": (fraction > 0).to(fraction) / 2,
        "nearest": (position.round() > position).to(fraction),
    }[INTERPOLATIONS[interpolation]]
    return position.floor().long().to(like.device), weight.to(like)


def _reference(
    x: Tensor, window: int, quantile: float, min_periods: int | None = None, interpolation: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    rows = sliding_windows(x, window)
    values = rows.where(rows.isfinite(), torch.inf)  # missing values last; of equal values the oldest first
    return _from_sorted(*values.sort(dim=-1, stable=True), window, quantile, min_periods, interpolation)


def _decomposition(
    x: Tensor, window: int, quantile: float, min_periods: int | None, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = sliding_windows(x, window)
    values = rows.where(rows.isfinite(), torch.inf)  # ONNX has no stable sort: lags of equal values may differ
    return _from_sorted(*values.sort(dim=-1), window, quantile, min_periods, interpolation)


def _from_sorted(
    values: Tensor, order: Tensor, window: int, quantile: float, min_periods: int | None, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    count = values.isfinite().sum(-1)
    low, weight = (table[count.clamp(min=1)] for table in _positions(count.shape[-2], quantile, interpolation, values))
    neighbors = torch.stack([low, (low + 1).minimum((count - 1).clamp(min=0))], -1)
    defined = count >= max(resolve_min_periods(window, min_periods), 1)
    lower, upper = values.gather(-1, neighbors).where(defined.unsqueeze(-1), 0).unbind(-1)
    lags = (window - 1 - order).gather(-1, neighbors).where(defined.unsqueeze(-1), -1)
    y = (lower + (upper - lower) * weight).where(defined, torch.nan)
    return y, lags[..., 0].contiguous(), lags[..., 1].contiguous()


def _fake(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    lower_lag, upper_lag = (x.new_empty(x.shape, dtype=torch.int64) for _ in range(2))
    return x.new_empty(x.shape), lower_lag, upper_lag


def _backward(
    grad: Tensor,
    _lower: Tensor | None,
    _upper: Tensor | None,
    *,
    x: Tensor,
    window: int,
    quantile: float,
    interpolation: int,
    output: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    # y = (1 - weight) x_{t - lower_lag} + weight x_{t - upper_lag}
    count = window_sum(x.isfinite().long(), window).clamp(min=1)
    d_upper = grad * _positions(x.shape[-2], quantile, interpolation, grad)[1][count]
    _, lower_lag, upper_lag = output
    return gather_lag(grad - d_upper, lower_lag, scatter=True) + gather_lag(d_upper, upper_lag, scatter=True)


def _oracle(
    x: Tensor, window: int, quantile: float, interpolation: str = "linear", min_periods: int | None = None
) -> Tensor:
    import pandas as pd

    rolling = pd.DataFrame(x.reshape(x.shape[-2:]).numpy()).rolling(window, min_periods)
    values = rolling.quantile(quantile, interpolation)
    return torch.tensor(values.to_numpy()).reshape(x.shape)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    x_nan = x.clone()
    x_nan[0, 3:7, 1] = x_nan[1, 5, 2] = torch.nan
    long = torch.randint(40, (1, 300, 2), generator=generator).double()
    long_nan = long.where(torch.rand(long.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 5.0, 2.0, 9.0], dtype=torch.double).reshape(4, 1)
    median = torch.tensor([torch.nan, torch.nan, 2.0, 5.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_quantile,
        samples=(
            Sample(x, window=4, quantile=0.5),
            Sample(x_nan, window=5, quantile=0.3, min_periods=2),
            Sample(x_nan, window=3, quantile=0.8, min_periods=0, interpolation="midpoint"),
            Sample(x_nan, window=4, quantile=0.4, min_periods=1, interpolation="nearest"),
        ),
        bad=(
            Bad(Sample(x[0, 0], window=2, quantile=0.5), r"rolling_quantile: x must be \(\.\.\., T, N\); got x \(3,\)"),
            Bad(Sample(x, window=0, quantile=0.5), "rolling_quantile: window must be >= 1; got window=0"),
            Bad(Sample(x, window=2, quantile=1.5), r"quantile must be in \[0, 1\]; got quantile=1.5"),
            Bad(Sample(x, window=2, quantile=0.5, interpolation="cubic"), "interpolation must be one of linear"),
        ),
        golden=(Golden(Sample(steps, window=3, quantile=0.5), median, "by hand"),),
        oracle=_oracle,
        oracle_samples=(
            Sample(long, window=60, quantile=0.5),
            Sample(long, window=200, quantile=0.9),
            *(Sample(long_nan, window=20, quantile=0.37, min_periods=5, interpolation=name) for name in INTERPOLATIONS),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "commodity::rolling_quantile",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    cases=_cases,
    warmup=lambda window, min_periods: max(resolve_min_periods(window, min_periods), 1) - 1,
)

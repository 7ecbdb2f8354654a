"""Rolling quantiles, and the median among them."""

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._rolling.window import check_window, windows
from torchcommodity.ops._rolling.window_sum import window_sum

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")  # as the kernel counts them


def rolling_quantile(
    x: Tensor,  # (..., T, N)
    window: int,
    quantile: float,
    *,
    interpolation: str = "linear",
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling quantile, pandas' `rolling(window, min_periods).quantile(quantile, interpolation)`.

    Of n values in order, v_0 .. v_{n-1}, it is the one at place (n - 1) q, or between its two neighbors.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        quantile: q, in [0, 1].
        interpolation: between two neighbors "linear", "lower", "higher", "midpoint", or "nearest", the even one of two
            that are as near.
        min_periods: values that a window must hold, in [0, W]; by default all.

    Returns:
        The quantile of the values among the last W rows, in the unit of x; NaN where they are fewer than `min_periods`,
        or none. Missing values are skipped. Causal; warm-up min_periods - 1 rows.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable in both modes: the gradient goes to the two rows that
    the quantile lies between.

    References:
        Hyndman, Fan (1996). Sample quantiles in statistical packages. doi:10.1080/00031305.1996.10473566, definition 7.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_quantile(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3, 0.75).squeeze(-1)
        tensor([   nan,    nan, 3.5000, 7.0000])
    """
    least = check_window("rolling_quantile", window, min_periods, x=x)
    if not 0 <= quantile <= 1:
        raise_invalid("rolling_quantile", "quantile must be in [0, 1]", quantile=quantile, x=x)
    if interpolation not in INTERPOLATIONS:
        words = f"interpolation must be one of {', '.join(INTERPOLATIONS)}"
        raise_invalid("rolling_quantile", words, interpolation=interpolation)
    y: Tensor = operator(x, window, least, float(quantile), INTERPOLATIONS.index(interpolation))[0]
    return y


def rolling_median(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling median, pandas' `rolling(window, min_periods).median()`: `rolling_quantile` at one half.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_median(torch.tensor([[1.0], [5.0], [2.0], [9.0]]), 3).squeeze(-1)
        tensor([nan, nan, 2., 5.])
    """
    least = check_window("rolling_median", window, min_periods, x=x)
    y: Tensor = operator(x, window, least, 0.5, 0)[0]
    return y


def _between(count: Tensor, quantile: float, interpolation: int) -> tuple[Tensor, Tensor]:
    """The lower place among `count` values in order, and the share of the upper neighbor."""
    place = quantile * (count - 1)
    rest = place - place.floor()
    shares = {
        "linear": rest,
        "lower": torch.zeros_like(rest),
        "higher": (rest > 0).to(rest),
        "midpoint": (rest > 0).to(rest) / 2,
        "nearest": (place.round() > place).to(rest),
    }
    return place.floor().long(), shares[INTERPOLATIONS[interpolation]]


def _reference(
    x: Tensor, window: int, min_periods: int, quantile: float, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = windows(x, window)
    known = rows.where(rows.isfinite(), torch.inf)
    return _picked(*known.sort(dim=-1, stable=True), window, min_periods, quantile, interpolation)  # the oldest first


def _decomposition(
    x: Tensor, window: int, min_periods: int, quantile: float, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = windows(x, window)  # ONNX has no stable sort; the ages of equal values may differ, the quantile does not
    known = rows.where(rows.isfinite(), torch.inf)
    return _picked(*known.sort(dim=-1), window, min_periods, quantile, interpolation)


def _picked(
    values: Tensor, order: Tensor, window: int, min_periods: int, quantile: float, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    count = values.isfinite().sum(-1)
    low, share = _between(count.double().clamp(min=1), quantile, interpolation)
    at = torch.stack([low, (low + 1).minimum((count - 1).clamp(min=0))], -1)
    known = count >= max(min_periods, 1)
    below, above = values.gather(-1, at).where(known.unsqueeze(-1), 0).unbind(-1)
    since = (window - 1 - order).gather(-1, at).where(known.unsqueeze(-1), -1)
    value = (below + (above - below) * share.to(values.dtype)).where(known, torch.nan)
    return value, since[..., 0].contiguous(), since[..., 1].contiguous()


def _fake(
    x: Tensor, window: int, min_periods: int, quantile: float, interpolation: int
) -> tuple[Tensor, Tensor, Tensor]:
    low, high = (x.new_empty(x.shape, dtype=torch.int64) for _ in range(2))
    return x.new_empty(x.shape), low, high


def _backward(
    grad: Tensor,
    _low: Tensor | None,
    _high: Tensor | None,
    *,
    x: Tensor,
    window: int,
    quantile: float,
    interpolation: int,
    output: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    # y = (1 - share) x_{t - low} + share x_{t - high}
    count = window_sum(x.isfinite().double(), window).clamp(min=1)
    above = grad * _between(count, quantile, interpolation)[1].to(grad)
    return gather_lag(grad - above, output[1], spread=True) + gather_lag(above, output[2], spread=True)


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
    holed = x.clone()
    holed[0, 3:7, 1] = holed[1, 5, 2] = torch.nan
    tall = torch.randint(40, (1, 300, 2), generator=generator).double()
    gaps = tall.where(torch.rand(tall.shape, generator=generator) < 0.7, torch.nan)
    steps = torch.tensor([1.0, 5.0, 2.0, 9.0], dtype=torch.double).reshape(4, 1)
    median = torch.tensor([torch.nan, torch.nan, 2.0, 5.0], dtype=torch.double).reshape(4, 1)
    return Cases(
        function=rolling_quantile,
        samples=(
            Sample(x, window=4, quantile=0.5),
            Sample(holed, window=5, quantile=0.3, min_periods=2),
            Sample(holed, window=3, quantile=0.8, min_periods=0, interpolation="midpoint"),
            Sample(holed, window=4, quantile=0.4, min_periods=1, interpolation="nearest"),
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
            Sample(tall, window=60, quantile=0.5),
            Sample(tall, window=200, quantile=0.9),
            *(Sample(gaps, window=20, quantile=0.37, min_periods=5, interpolation=i) for i in INTERPOLATIONS),
        ),
        oracle_tolerance=1e-12,
    )


operator = Op(
    "rolling_quantile",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    cases=_cases,
    warmup=lambda window, min_periods, quantile, interpolation: max(min_periods, 1) - 1,
)

"""STL: seasonal-trend decomposition by LOESS, after Cleveland, Cleveland, McRae and Terpenning."""

from math import ceil
from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Op, Sample, vjp
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._seasonal import stl_backward
from torchcommodity.ops._seasonal.loess import ONE_UP_TO, ZERO_FROM
from torchcommodity.ops._seasonal.stl_inner_loop import InnerLoop, centered

Components = tuple[Tensor, Tensor, Tensor, Tensor]
INNER_PASSES, OUTER_PASSES = {False: 5, True: 2}, {False: 0, True: 15}  # by `robust`


class STLDecomposition(NamedTuple):
    """x = trend + seasonal + residual, and the robustness weights; each (..., T, N)."""

    trend: Tensor
    seasonal: Tensor
    residual: Tensor
    weights: Tensor


def stl(
    x: Tensor,  # (..., T, N)
    period: int,
    *,
    seasonal: int = 7,
    trend: int | None = None,
    low_pass: int | None = None,
    seasonal_degree: int = 1,
    trend_degree: int = 1,
    low_pass_degree: int = 1,
    robust: bool = False,
    seasonal_jump: int = 1,
    trend_jump: int = 1,
    low_pass_jump: int = 1,
    inner_iter: int | None = None,
    outer_iter: int | None = None,
) -> STLDecomposition:  # each (..., T, N)
    """STL, seasonal-trend decomposition by LOESS; it looks ahead (`causal=False`): do not use it on targets.

    Each inner pass smooths x - trend within each phase (t modulo `period`) by LOESS, one row beyond both ends;
    subtracts the low pass of the result (moving averages of `period`, `period` and 3 rows, then LOESS), which gives the
    seasonal; and smooths x - seasonal by LOESS, which gives the trend (initially zero). Each outer pass sets the
    robustness weights (1 - (r / 6 median r)^2)^2 with r = |residual| for the next inner passes. LOESS at a row fits a
    line to the rows of its window with weights (1 - (d / h)^3)^3, where d is the distance of a row and h the largest
    one.

    Args:
        x: In any unit; NaN and infinity are missing.
        period: Rows per season, >= 2.
        seasonal: Length of the seasonal smoother in rows of one phase, odd, >= 3.
        trend: Length of the trend smoother in rows, odd, > `period`. None means the smallest odd number >=
            1.5 period / (1 - 1.5 / seasonal).
        low_pass: Length of the low-pass smoother in rows, odd, > `period`. None means the smallest such number.
        seasonal_degree, trend_degree, low_pass_degree: Degree of each LOESS polynomial, 0 or 1.
        robust: Down-weight outliers; the default is then 2 inner and 15 outer passes instead of 5 and 0.
        seasonal_jump, trend_jump, low_pass_jump: Fit at every so many rows and interpolate linearly between.
        inner_iter, outer_iter: Number of passes, >= 1 and >= 0.

    Returns:
        `STLDecomposition(trend, seasonal, residual, weights)`, the first three in the unit of `x`. No warm-up. A
        missing row has weight zero and a NaN residual; its trend and seasonal are the LOESS fits, or, where a window
        has no weight, the last fit before (else the first one after). A phase that is missing throughout gets no
        seasonal pattern of its own. A series without any row is NaN.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel, T < 2 period, or a setting is out of range.

    Devices: CPU and CUDA, in double internally; elsewhere the reference in plain PyTorch. Differentiable to any order,
    in reverse and forward mode, including the robustness weights.

    References:
        Cleveland, Cleveland, McRae, Terpenning (1990). STL: a seasonal-trend decomposition procedure based on Loess.
        Journal of Official Statistics 6, 3-73.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> prices = torch.tensor([1.0, 3.0, 2.0, 4.0, 3.0, 5.0]).unsqueeze(-1)
        >>> ops.stl(prices, period=2).seasonal.squeeze(-1)
        tensor([-0.7500,  0.7500, -0.7500,  0.7500, -0.7500,  0.7500])
    """
    check_panel("stl", x=x)
    check_integer("stl", 2, period=period)
    check_integer("stl", 1, seasonal_jump=seasonal_jump, trend_jump=trend_jump, low_pass_jump=low_pass_jump)
    degrees = {"seasonal_degree": seasonal_degree, "trend_degree": trend_degree, "low_pass_degree": low_pass_degree}
    check_integer("stl", 0, maximum=1, **degrees)
    trend = ceil(1.5 * period / (1 - 1.5 / seasonal)) | 1 if trend is None else trend
    low_pass = (period + 1) | 1 if low_pass is None else low_pass
    _check_length(3, seasonal=seasonal)
    _check_length(period + 1, trend=trend)
    _check_length(period + 1, low_pass=low_pass)
    inner = INNER_PASSES[robust] if inner_iter is None else inner_iter
    outer = OUTER_PASSES[robust] if outer_iter is None else outer_iter
    check_integer("stl", 1, inner_iter=inner)
    check_integer("stl", 0, outer_iter=outer)
    if x.shape[-2] < 2 * period:
        raise_invalid("stl", "requires T >= 2 period", period=period, x=x)
    jumps = [seasonal_jump, trend_jump, low_pass_jump]
    return STLDecomposition(*operator(x, period, [seasonal, trend, low_pass], [*degrees.values()], jumps, inner, outer))


def _check_length(minimum: int, **lengths: int) -> None:
    check_integer("stl", minimum, **lengths)
    for name, value in lengths.items():
        if value % 2 == 0:
            raise_invalid("stl", f"{name} must be odd", **lengths)


def _reference(
    x: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int], inner: int, outer: int
) -> Components:
    present = x.isfinite()
    y, level = centered(x, present)
    weights, trend, seasonal = present.to(x), torch.zeros_like(y), torch.zeros_like(y)
    loop = InnerLoop(weights, present, period, lengths, degrees, jumps)
    for outer_pass in range(outer + 1):
        if outer_pass:
            weights = _robustness(y - trend - seasonal, present)
            loop.set_weights(weights)
        trend, seasonal = loop.run(y, trend, inner)
    any_present = present.any(-2, keepdim=True)
    residual = (y - trend - seasonal).where(present, torch.nan)
    return (trend + level).where(any_present, torch.nan), seasonal.where(any_present, torch.nan), residual, weights


def _robustness(residual: Tensor, present: Tensor) -> Tensor:
    """Bisquare weights (1 - (r / 6 median r)^2)^2, r = |residual|."""
    size = residual.abs().where(present, 0)
    ordered, count = size.where(present, torch.inf).sort(-2).values, present.sum(-2, keepdim=True)
    upper = (count // 2).clamp(max=residual.shape[-2] - 1)
    lower = (count - count // 2 - 1).clamp(min=0)
    scale = 3 * (ordered.gather(-2, upper) + ordered.gather(-2, lower))  # 6 medians
    positive = (scale > 0) & (count > 0)
    u = size / scale.where(positive, 1)
    weight = (1 - u.square()).square().where(u > ONE_UP_TO, 1).where(u <= ZERO_FROM, 0)
    return weight.where(positive, 1).where(present, 0)


def _fake(x: Tensor) -> Components:
    trend, seasonal, residual, weights = (x.new_empty(x.shape) for _ in range(4))
    return trend, seasonal, residual, weights


def _backward(
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    d_weights: Tensor,
    *,
    x: Tensor,
    period: int,
    lengths: list[int],
    degrees: list[int],
    jumps: list[int],
    inner: int,
    outer: int,
) -> Tensor:
    settings = (period, lengths, degrees, jumps, inner)
    if not outer:  # linear in x: the transpose
        d_x: Tensor = stl_backward.operator(d_trend, d_seasonal, d_residual, x, *settings)
        return d_x
    grads = d_trend, d_seasonal, d_residual, d_weights
    (d_x,) = vjp(lambda x: _reference(x, *settings, outer), (x,), grads)
    return d_x


def _oracle(x: Tensor, period: int, **settings: object) -> Components:
    from statsmodels.tsa import seasonal as statsmodels

    passes = {name: settings.pop(name) for name in ("inner_iter", "outer_iter") if name in settings}
    options = {name.replace("_degree", "_deg"): value for name, value in settings.items()}
    series = x.transpose(-1, -2)
    results = [statsmodels.STL(y, period=period, **options).fit(**passes) for y in series.flatten(0, -2).numpy()]
    trend, seasonal, residual, weights = (
        torch.stack([torch.as_tensor(getattr(y, name)) for y in results]).view(series.shape).transpose(-1, -2)
        for name in ("trend", "seasonal", "resid", "weights")
    )
    return trend, seasonal, residual, weights


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 11, 2, dtype=torch.double, generator=generator) + 1
    long = torch.rand(2, 61, 2, dtype=torch.double, generator=generator) + 1
    gaps = x.clone()
    gaps[0, 0, 0] = gaps[0, 5:7, 1] = gaps[1, -1, 0] = torch.nan
    constant = {"seasonal_degree": 0, "trend_degree": 0, "low_pass_degree": 0}
    jumps = {"seasonal_jump": 2, "trend_jump": 3, "low_pass_jump": 4}
    return Cases(
        function=stl,
        samples=(
            Sample(x, period=3),
            Sample(gaps, period=4, seasonal=3, trend_jump=2),
            Sample(x[:1], period=3, robust=True, inner_iter=1, outer_iter=2, **constant),
        ),
        bad=(
            Bad(Sample(x[0, 0], period=3), r"stl: x must be \(\.\.\., T, N\)"),
            Bad(Sample(x, period=1), "period must be >= 2; got period=1"),
            Bad(Sample(x, period=6), r"requires T >= 2 period; got period=6 with x \(2, 11, 2\)"),
            Bad(Sample(x, period=3, seasonal=4), "seasonal must be odd; got seasonal=4"),
            Bad(Sample(x, period=3, trend=3), "trend must be >= 4; got trend=3"),
            Bad(Sample(x, period=3, trend_degree=2), r"trend_degree must be in \[0, 1\]; got trend_degree=2"),
            Bad(Sample(x, period=3, low_pass_jump=0), "low_pass_jump must be >= 1"),
        ),
        oracle=_oracle,
        oracle_samples=(
            Sample(long, period=7, robust=True),
            Sample(long, period=5, seasonal=9, trend=63, outer_iter=1, **jumps),
            Sample(long, period=12, **constant, **jumps),
        ),
    )


operator = Op("commodity::stl", reference=_reference, fake=_fake, backward=_backward, cases=_cases, causal=False)

"""Trend, seasonal and residual of a series by LOESS, the procedure of Cleveland, Cleveland, McRae and Terpenning."""

from math import ceil
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Op, Sample, vjp
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._seasonal import stl_backward
from torchcommodity.ops._seasonal.inner_loop import InnerLoop, centered
from torchcommodity.ops._seasonal.loess import FAR, NEAR

Four = tuple[Tensor, Tensor, Tensor, Tensor]
INNER, OUTER = {False: 5, True: 2}, {False: 0, True: 15}  # passes, by `robust`


class STL(NamedTuple):
    """x = trend + seasonal + residual, and the robustness weight of each row; each is (..., T, N)."""

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
) -> STL:  # each (..., T, N)
    """Seasonal-trend decomposition by LOESS; it looks ahead (`causal=False`), and no model may use it on targets.

    Each inner pass smooths the rows of each phase (t modulo `period`) of x - trend by LOESS, one row beyond both ends;
    takes from them their low pass, moving averages of `period`, `period` and 3 rows and then LOESS: that is the
    seasonal; and smooths x - seasonal by LOESS: that is the trend, zero at first. Each outer pass weighs the rows by
    (1 - (r / 6 median r)^2)^2, where r = abs(residual), for the next inner passes. LOESS at a row fits a line to the
    `length` rows about it, weighted by (1 - (d / h)^3)^3, where d is the distance and h that of the farthest of them.

    Args:
        x: in any unit; NaN and infinity are missing.
        period: rows in a full season, >= 2.
        seasonal: rows of one phase in its window, odd, >= 3.
        trend: rows in the window of the trend, odd, > `period`; by default the next odd number from
            1.5 period / (1 - 1.5 / seasonal).
        low_pass: rows in the window of the low pass, odd, > `period`; by default the first odd number > `period`.
        seasonal_degree, trend_degree, low_pass_degree: of the polynomial, 0 or 1.
        robust: whether outliers lose their weight: 2 inner and 15 outer passes by default, where else 5 and none.
        seasonal_jump, trend_jump, low_pass_jump: fit every so many rows, and draw lines between.
        inner_iter, outer_iter: passes, >= 1 and >= 0.

    Returns:
        (trend, seasonal, residual, weights), the first three in the unit of `x`. No warm-up. A missing row has no
        weight in any window of the phases and of the trend, a residual of NaN and a weight of zero; its trend and
        seasonal are what LOESS says there, or, where a window holds no weight, the last fit before (else the first
        one after). A phase that is missing altogether has no season of its own. A series without any row is NaN.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, T < 2 period, or a setting is out of its range.

    Devices: CPU and CUDA (in double inside); elsewhere the reference. Differentiable, to any order, in both modes, the
    robustness weights included.

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
    inner, outer = (
        (INNER[robust] if inner_iter is None else inner_iter),
        (OUTER[robust] if outer_iter is None else outer_iter),
    )
    check_integer("stl", 1, inner_iter=inner)
    check_integer("stl", 0, outer_iter=outer)
    if x.shape[-2] < 2 * period:
        raise_invalid("stl", "needs T >= 2 period", period=period, x=x)
    jumps = [seasonal_jump, trend_jump, low_pass_jump]
    return STL(*operator(x, period, [seasonal, trend, low_pass], [*degrees.values()], jumps, inner, outer))


def _check_length(least: int, **lengths: int) -> None:
    check_integer("stl", least, **lengths)
    for name, value in lengths.items():
        if value % 2 == 0:
            raise_invalid("stl", f"{name} must be odd", **lengths)


def _reference(
    x: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int], inner: int, outer: int
) -> Four:
    present = x.isfinite()
    y, level = centered(x, present)
    weights, trend, seasonal = present.to(x), torch.zeros_like(y), torch.zeros_like(y)
    for outside in range(outer + 1):
        if outside:
            weights = _robustness(y - trend - seasonal, present)
        loop = InnerLoop(weights, present, period, lengths, degrees, jumps)
        trend, seasonal = loop.run(y, trend, inner)
    some = present.any(-2, keepdim=True)
    residual = (y - trend - seasonal).where(present, torch.nan)
    return (trend + level).where(some, torch.nan), seasonal.where(some, torch.nan), residual, weights


def _robustness(residual: Tensor, present: Tensor) -> Tensor:
    size = residual.abs().where(present, 0)
    ordered, count = size.where(present, torch.inf).sort(-2).values, present.sum(-2, keepdim=True)
    upper = (count // 2).clamp(max=residual.shape[-2] - 1)
    lower = (count - count // 2 - 1).clamp(min=0)
    scale = 3 * (ordered.gather(-2, upper) + ordered.gather(-2, lower))  # 6 medians
    varied = (scale > 0) & (count > 0)
    far = size / scale.where(varied, 1)
    weight = (1 - far.square()).square().where(far > NEAR, 1).where(far <= FAR, 0)
    return weight.where(varied, 1).where(present, 0)


def _fake(
    x: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int], inner: int, outer: int
) -> Four:
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
        linear: Tensor = stl_backward.operator(d_trend, d_seasonal, d_residual, x, *settings)
        return linear
    grads = torch.stack([d_trend, d_seasonal, d_residual, d_weights])
    (d_x,) = vjp(lambda x: torch.stack(_reference(x, *settings, outer)), (x,), grads)
    return d_x


def _oracle(x: Tensor, period: int, **settings: object) -> Four:
    import statsmodels.tsa.seasonal as peer

    names = {f"{part}_degree": f"{part}_deg" for part in ("seasonal", "trend", "low_pass")}
    passes = {name: settings.pop(name) for name in ("inner_iter", "outer_iter") if name in settings}
    renamed = {names.get(name, name): value for name, value in settings.items()}
    rows = x.transpose(-1, -2)
    found = [peer.STL(row, period=period, **renamed).fit(**passes) for row in rows.flatten(0, -2).numpy()]
    parts = [[getattr(each, part) for each in found] for part in ("trend", "seasonal", "resid", "weights")]
    trend, seasonal, residual, weights = (
        torch.stack([torch.as_tensor(row) for row in part]).view(rows.shape).transpose(-1, -2) for part in parts
    )
    return trend, seasonal, residual, weights


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 11, 2, dtype=torch.double, generator=generator) + 1
    long = torch.rand(2, 61, 2, dtype=torch.double, generator=generator) + 1
    holes = x.clone()
    holes[0, 0, 0] = holes[0, 5:7, 1] = holes[1, -1, 0] = torch.nan
    constant = {"seasonal_degree": 0, "trend_degree": 0, "low_pass_degree": 0}
    jumps = {"seasonal_jump": 2, "trend_jump": 3, "low_pass_jump": 4}
    return Cases(
        function=stl,
        samples=(
            Sample(x, period=3),
            Sample(holes, period=4, seasonal=3, trend_jump=2),
            Sample(x, period=3, robust=True, inner_iter=1, outer_iter=2, **constant),
        ),
        bad=(
            Bad(Sample(x[0, 0], period=3), r"stl: x must be \(\.\.\., T, N\)"),
            Bad(Sample(x, period=1), "period must be >= 2; got period=1"),
            Bad(Sample(x, period=6), r"needs T >= 2 period; got period=6 with x \(2, 11, 2\)"),
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


operator = Op("stl", reference=_reference, fake=_fake, backward=_backward, cases=_cases, causal=False)

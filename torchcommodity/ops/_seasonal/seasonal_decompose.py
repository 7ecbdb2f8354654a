"""Trend, seasonal and residual of a price: a moving average of one period, and the means of what it leaves by phase."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._seasonal import seasonal_decompose_backward
from torchcommodity.ops._seasonal.steps import Steps, present_rows

Three = tuple[Tensor, Tensor, Tensor]
MODELS = ("additive", "multiplicative")


class Decomposition(NamedTuple):
    """Price = trend + seasonal + residual, or their product; each is (..., T, N)."""

    trend: Tensor
    seasonal: Tensor
    residual: Tensor


def seasonal_decompose(
    prices: Tensor,  # (..., T, N)
    period: int,
    model: str = "additive",
    causal: bool = True,
) -> Decomposition:  # each (..., T, N)
    """Seasonal decomposition; `causal=False` looks ahead, and no model may use it on targets.

    The trend averages one period: an odd one weighs its `period` rows alike; an even one takes `period` + 1 rows, the
    two ends with half a weight. The window ends at row t, or with `causal=False` is centered on it (the classical
    decomposition). m_t is the mean of price - trend (or price / trend) over the rows of t's phase, t modulo `period`:
    over those up to t, or with `causal=False` over all. The seasonal is m_t less (or over) the mean of the latest m of
    every phase known at t, so that the season known at any row sums to zero (has mean one). The residual is the rest.

    Args:
        prices: in any unit; NaN and infinity are missing, and with the multiplicative model zero and below too.
        period: rows in a full season, >= 2.
        model: "additive", whose three parts have the unit of `prices`, or "multiplicative", where only the trend has.
        causal: whether row t depends on rows <= t only.

    Returns:
        (trend, seasonal, residual). A missing price is skipped: the trend averages what is present of its window, if
        that has half of the weight or more, else it is NaN; the seasonal goes on; the residual is NaN. Warm-up, NaN:
        the trend's window less one row, and period - 1 rows more until every phase is known; with `causal=False` the
        trend and residual lack half a window at both ends.

    Raises:
        ValueError, TypeError: `prices` is no floating-point panel, `period` < 2, the model is unknown, or
            `causal=False` and T < 2 period.

    Devices: CPU and CUDA; elsewhere the reference. Differentiable, to any order, in both modes.

    References:
        Kendall, Stuart (1983). The advanced theory of statistics, vol. 3, 410-414. Griffin.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> prices = torch.tensor([1.0, 3.0, 2.0, 4.0, 3.0, 5.0]).unsqueeze(-1)
        >>> ops.seasonal_decompose(prices, period=2).seasonal.squeeze(-1)
        tensor([    nan,     nan,     nan,  0.7500, -0.7500,  0.7500])
    """
    check_panel("seasonal_decompose", prices=prices)
    check_integer("seasonal_decompose", 2, period=period)
    if model not in MODELS:
        raise_invalid("seasonal_decompose", f"model must be one of {', '.join(MODELS)}", model=model)
    if not causal and prices.shape[-2] < 2 * period:
        raise_invalid("seasonal_decompose", "causal=False needs T >= 2 period", period=period, prices=prices)
    return Decomposition(*operator(prices, period, model == "multiplicative", bool(causal)))


def _weights(prices: Tensor, period: int) -> Tensor:
    """Of the rows in the window of the trend: whole numbers, 2 x period in sum."""
    if period % 2:
        return prices.new_full((period,), 2)
    return F.pad(prices.new_full((period - 1,), 2), (1, 1), value=1.0)


def _reference(prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Three:
    present, weights = present_rows(prices, multiplicative), _weights(prices, period).unsqueeze(-1)
    span, steps = len(weights), prices.shape[-2]
    trend, seasonal = prices.new_full(prices.shape, torch.nan), prices.new_full(prices.shape, torch.nan)
    for t in range(span - 1, steps):
        window = slice(t - span + 1, t + 1)
        share = weights * present[..., window, :]
        mean = (share * prices[..., window, :].where(present[..., window, :], 0)).sum(-2) / share.sum(-2)
        trend[..., t if causal else t - span // 2, :] = mean.where(share.sum(-2) >= period, torch.nan)
    known = prices.where(present, torch.nan)
    rest = known / trend if multiplicative else known - trend
    for t in range(steps):
        last = t if causal else steps - 1
        phases = [rest[..., k % period : last + 1 : period, :].nanmean(-2) for k in range(t + 1, t + 1 + period)]
        middle = torch.stack(phases).mean(0)  # the last of them is the phase of t
        seasonal[..., t, :] = phases[-1] / middle if multiplicative else phases[-1] - middle
    return trend, seasonal, rest / seasonal if multiplicative else rest - seasonal


def _fake(prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Three:
    trend, seasonal, residual = (prices.new_empty(prices.shape) for _ in range(3))
    return trend, seasonal, residual


def _decomposition(prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Three:
    s = Steps(prices, period, multiplicative, causal)
    residual = s.residual.where(s.counted & s.known, torch.nan)
    return s.trend.where(s.whole, torch.nan), s.seasonal.where(s.known, torch.nan), residual


def _jvp(d: Tensor, *, prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Three:
    # rest = price - trend, seasonal = mean - center, residual = rest - seasonal, or the quotients; the rest is linear
    s = Steps(prices, period, multiplicative, causal)
    d = d.where(s.present, 0)
    d_trend = s.average(d)
    d_rest = (d - s.rest * d_trend) / s.trend if multiplicative else d - d_trend
    d_mean = s.mean(d_rest)
    d_centre = s.middle(d_mean)
    d_seasonal = (d_mean - s.seasonal * d_centre) / s.center if multiplicative else d_mean - d_centre
    d_seasonal = d_seasonal * s.known
    d_residual = (d_rest - s.residual * d_seasonal) / s.seasonal if multiplicative else d_rest - d_seasonal
    return d_trend, d_seasonal, d_residual


def _backward(
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    *,
    prices: Tensor,
    period: int,
    multiplicative: bool,
    causal: bool,
) -> Tensor:
    dx: Tensor = seasonal_decompose_backward.operator(
        prices, d_trend, d_seasonal, d_residual, period, multiplicative, causal
    )
    return dx


def _oracle(prices: Tensor, period: int, model: str, causal: bool) -> Three:
    from statsmodels.tsa.seasonal import seasonal_decompose as classical

    rows = prices.transpose(-1, -2).flatten(0, -2).numpy()
    found = [classical(row, model=model, period=period) for row in rows]
    shape = prices.transpose(-1, -2).shape
    columns = ([torch.from_numpy(getattr(x, part)) for x in found] for part in ("trend", "seasonal", "resid"))
    parts = (torch.stack(column).view(shape) for column in columns)
    trend, seasonal, residual = (x.transpose(-1, -2) for x in parts)
    return trend, seasonal, residual


def _warmup(period: int, multiplicative: bool, causal: bool) -> tuple[int, int, int]:
    window = period - period % 2
    return (window, window + period - 1, window + period - 1) if causal else (period // 2, 0, period // 2)


def _cases() -> Cases:
    prices = torch.rand(2, 11, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0)) + 1
    holes = prices.clone()
    holes[0, 0, 0] = holes[0, 5:7, 1] = holes[1, -1, 0] = torch.nan
    two_sided = [Sample(prices, period=p, model=m, causal=False) for p, m in ((4, "additive"), (3, "multiplicative"))]
    steps = torch.tensor([[1.0], [3.0], [2.0], [4.0], [3.0], [5.0]], dtype=torch.double)
    trend = torch.tensor([[torch.nan], [2.25], [2.75], [3.25], [3.75], [torch.nan]], dtype=torch.double)
    season = torch.tensor([[-0.75], [0.75]] * 3, dtype=torch.double)
    return Cases(
        function=seasonal_decompose,
        samples=(
            Sample(prices, period=3),
            Sample(holes, period=4, model="multiplicative"),
            two_sided[0],
            Sample(holes, period=3, model="multiplicative", causal=False),
        ),
        bad=(
            Bad(Sample(prices[0, 0], period=3), r"seasonal_decompose: prices must be \(\.\.\., T, N\)"),
            Bad(Sample(prices, period=1), "period must be >= 2; got period=1"),
            Bad(Sample(prices, period=2.0), "period must be an int", TypeError),
            Bad(
                Sample(prices, period=3, model="sum"), "model must be one of additive, multiplicative; got model='sum'"
            ),
            Bad(Sample(prices, period=9, causal=False), r"needs T >= 2 period; got period=9 with prices \(2, 11, 2\)"),
        ),
        golden=(Golden(Sample(steps, period=2, causal=False), (trend, season), "by hand: 2.25 = (1 + 2 x 3 + 2) / 4"),),
        oracle=_oracle,
        oracle_samples=tuple(two_sided),
    )


operator = Op(
    "seasonal_decompose",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    decomposition=_decomposition,
    mask_nan_grad=False,
    cases=_cases,
    warmup=_warmup,
    causal=lambda period, multiplicative, causal: causal,
)

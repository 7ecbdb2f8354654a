"""Classical seasonal decomposition: a moving average, and the mean of the detrended prices of each phase."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Golden, Op, Sample, has_float64
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.window import first_valid
from torchcommodity.ops._seasonal import seasonal_decompose_backward
from torchcommodity.ops._seasonal.decomposition_steps import DecompositionSteps, present_rows

Components = tuple[Tensor, Tensor, Tensor]
MODELS = ("additive", "multiplicative")


class SeasonalDecomposition(NamedTuple):
    """Price = trend + seasonal + residual, or their product; each (..., T, N)."""

    trend: Tensor
    seasonal: Tensor
    residual: Tensor


def seasonal_decompose(
    prices: Tensor,  # (..., T, N)
    period: int,
    model: str = "additive",
    causal: bool = True,
) -> SeasonalDecomposition:  # each (..., T, N)
    """Seasonal decomposition by moving averages; with `causal=False` it looks ahead: do not use that on targets.

    The trend is a moving average over one period; for an even period it spans `period` + 1 rows, the two ends with
    half weight. Its window ends at row t, or is centered on it with `causal=False` (the classical decomposition). m_t
    is the mean of price - trend (or price / trend) over the rows of the same phase, t modulo `period`, up to t, or
    over all with `causal=False`. The seasonal is m_t minus (or divided by) the mean of the latest m of all phases, so
    that a season sums to zero (or has mean one). The residual is price - trend - seasonal (or the quotient).

    Args:
        prices: In any unit; NaN and infinity are missing, in the multiplicative model also values <= 0.
        period: Rows per season, >= 2.
        model: "additive" (all components in the unit of `prices`) or "multiplicative" (only the trend).
        causal: Row t depends on rows <= t only.

    Returns:
        `SeasonalDecomposition(trend, seasonal, residual)`, each (..., T, N). Missing prices are skipped: the trend
        averages the prices present in its window, and is NaN if they have less than half of the weight; the seasonal
        continues; the residual is NaN. Warm-up (NaN): the trend's window less one row, and `period` - 1 more rows for
        the seasonal and residual, until all phases have occurred. With `causal=False`, trend and residual lack half a
        window at both ends.

    Raises:
        ValueError, TypeError: If `prices` is not a floating-point panel, `period` < 2, `model` is unknown, or
            `causal=False` with T < 2 period.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode.

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
        raise_invalid("seasonal_decompose", "causal=False requires T >= 2 period", period=period, prices=prices)
    return SeasonalDecomposition(*operator(prices, period, model == "multiplicative", bool(causal)))


def _reference(prices: Tensor, period: int, multiplicative: bool = False, causal: bool = True) -> Components:
    if multiplicative or has_float64(prices.device):
        return _components(prices, period, multiplicative, causal)
    level = first_valid(prices, prices.isfinite())  # float32 cannot hold it beside the seasonal component
    trend, seasonal, residual = _components(prices - level, period, multiplicative, causal)
    return trend + level, seasonal, residual


def _components(prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Components:
    present = present_rows(prices, multiplicative)
    # integers that sum to 2 periods
    weights = (
        prices.new_full((period,), 2) if period % 2 else F.pad(prices.new_full((period - 1,), 2), (1, 1), value=1.0)
    )
    weights = weights.unsqueeze(-1)
    width, steps = len(weights), prices.shape[-2]
    trend, seasonal = prices.new_full(prices.shape, torch.nan), prices.new_full(prices.shape, torch.nan)
    for t in range(width - 1, steps):
        window = slice(t - width + 1, t + 1)
        w = weights * present[..., window, :]
        mean = (w * prices[..., window, :].where(present[..., window, :], 0)).sum(-2) / w.sum(-2)
        trend[..., t if causal else t - width // 2, :] = mean.where(w.sum(-2) >= period, torch.nan)
    prices = prices.where(present, torch.nan)
    detrended = prices / trend if multiplicative else prices - trend
    for t in range(steps):
        last = t if causal else steps - 1
        means = [detrended[..., k % period : last + 1 : period, :].nanmean(-2) for k in range(t + 1, t + 1 + period)]
        center = torch.stack(means).mean(0)  # the last of the means is that of the phase of t
        seasonal[..., t, :] = means[-1] / center if multiplicative else means[-1] - center
    return trend, seasonal, detrended / seasonal if multiplicative else detrended - seasonal


def _fake(prices: Tensor) -> Components:
    trend, seasonal, residual = (prices.new_empty(prices.shape) for _ in range(3))
    return trend, seasonal, residual


def _decomposition(prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Components:
    s = DecompositionSteps(prices, period, multiplicative, causal)
    residual = s.residual.where(s.has_detrended & s.has_seasonal, torch.nan)
    return s.trend.where(s.has_trend, torch.nan), s.seasonal.where(s.has_seasonal, torch.nan), residual


def _jvp(d: Tensor, *, prices: Tensor, period: int, multiplicative: bool, causal: bool) -> Components:
    # detrended = price - trend, seasonal = mean - center, residual = detrended - seasonal (or quotients); trend, mean
    # and center are linear
    s = DecompositionSteps(prices, period, multiplicative, causal)
    d = d.where(s.present, 0)
    d_trend = s.average(d)
    d_detrended = (d - s.detrended * d_trend) / s.trend if multiplicative else d - d_trend
    d_mean = s.phase_mean(d_detrended)
    d_center = s.center(d_mean)
    d_seasonal = (d_mean - s.seasonal * d_center) / s.phase_center if multiplicative else d_mean - d_center
    d_seasonal = d_seasonal * s.has_seasonal
    d_residual = (d_detrended - s.residual * d_seasonal) / s.seasonal if multiplicative else d_detrended - d_seasonal
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


def _oracle(prices: Tensor, period: int, model: str, causal: bool) -> Components:
    from statsmodels.tsa import seasonal as statsmodels

    series = prices.transpose(-1, -2)
    results = [statsmodels.seasonal_decompose(x, model=model, period=period) for x in series.flatten(0, -2).numpy()]
    trend, seasonal, residual = (
        torch.stack([torch.from_numpy(getattr(x, name)) for x in results]).view(series.shape).transpose(-1, -2)
        for name in ("trend", "seasonal", "resid")
    )
    return trend, seasonal, residual


def _warmup(period: int, causal: bool) -> tuple[int, int, int]:
    window = period - period % 2
    return (window, window + period - 1, window + period - 1) if causal else (period // 2, 0, period // 2)


def _cases() -> Cases:
    prices = torch.rand(2, 11, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0)) + 1
    gaps = prices.clone()
    gaps[0, 0, 0] = gaps[0, 5:7, 1] = gaps[1, -1, 0] = torch.nan
    two_sided = [Sample(prices, period=p, model=m, causal=False) for p, m in ((4, "additive"), (3, "multiplicative"))]
    by_hand = torch.tensor([[1.0], [3.0], [2.0], [4.0], [3.0], [5.0]], dtype=torch.double)
    trend = torch.tensor([[torch.nan], [2.25], [2.75], [3.25], [3.75], [torch.nan]], dtype=torch.double)
    season = torch.tensor([[-0.75], [0.75]] * 3, dtype=torch.double)
    return Cases(
        function=seasonal_decompose,
        samples=(
            Sample(prices, period=3),
            Sample(gaps, period=4, model="multiplicative"),
            two_sided[0],
            Sample(gaps, period=3, model="multiplicative", causal=False),
        ),
        bad=(
            Bad(Sample(prices[0, 0], period=3), r"seasonal_decompose: prices must be \(\.\.\., T, N\)"),
            Bad(Sample(prices, period=1), "period must be >= 2; got period=1"),
            Bad(Sample(prices, period=2.0), "period must be an int", TypeError),
            Bad(
                Sample(prices, period=3, model="sum"), "model must be one of additive, multiplicative; got model='sum'"
            ),
            Bad(
                Sample(prices, period=9, causal=False), r"requires T >= 2 period; got period=9 with prices \(2, 11, 2\)"
            ),
        ),
        golden=(
            Golden(Sample(by_hand, period=2, causal=False), (trend, season), "by hand: 2.25 = (1 + 2 x 3 + 2) / 4"),
        ),
        oracle=_oracle,
        oracle_samples=tuple(two_sided),
    )


operator = Op(
    "commodity::seasonal_decompose",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    jvp=_jvp,
    decomposition=_decomposition,
    mask_nan_grad=False,
    cases=_cases,
    warmup=_warmup,
    causal=lambda causal: causal,
)

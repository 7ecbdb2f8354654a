"""Four technical indicators in one pass: two moving averages, RSI and the width of the Bollinger bands."""

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Sample
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.window import sliding_windows
from torchcommodity.ops._technical import technical_indicators_backward
from torchcommodity.ops._technical.technical_indicators_backward import averages, changes


def technical_indicators(
    prices: Tensor,  # (..., T, N)
    short: int = 10,
    long: int = 30,
    rsi: int = 14,
    band: int = 20,
    *,
    mode: str = "wilder",
) -> Tensor:  # (..., T, N, 4)
    """Two simple moving averages, the relative strength index (RSI), and the half-width of the Bollinger bands.

    RSI = 100 G / (G + L) with the average gain G and loss L per step. "wilder": the mean of the first `rsi` changes,
    then G_t = G_{t-1} + (gain_t - G_{t-1}) / `rsi`. "simple": the mean of the last `rsi` changes (Cutler). The
    half-width is two population standard deviations over `band` rows. Without missing prices the four equal TA-Lib's
    SMA, RSI and BBANDS.

    Args:
        prices: In any unit; NaN and infinity are missing.
        short, long: Window lengths of the averages in rows, >= 1.
        rsi, band: Lengths of the RSI and of the bands in rows, >= 2.
        mode: "wilder" or "simple".

    Returns:
        short average, long average, RSI (0 to 100; 0 without any change, as in TA-Lib) and half-width along the last
        axis; all but RSI in the unit of the price. Causal; the first (short - 1, long - 1, rsi, band - 1) rows are NaN,
        and so is every window with a missing price. Wilder's RSI continues: the change after a missing price is
        relative to the last price before it.

    Raises:
        ValueError, TypeError: If `prices` is not a floating-point panel, a length is too small, or `mode` is unknown.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. Differentiable to any order, in reverse and forward
    mode; the derivative is 0 where a price does not change or a band has no width.

    References:
        Wilder (1978). New Concepts in Technical Trading Systems. ISBN 0894590278.
        Bollinger (2001). Bollinger on Bollinger Bands. ISBN 0071373683.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> prices = torch.tensor([50.0, 51.0, 50.5, 52.0]).unsqueeze(-1)
        >>> ops.technical_indicators(prices, short=2, long=3, rsi=3, band=2)[:, 0]
        tensor([[    nan,     nan,     nan,     nan],
                [50.5000,     nan,     nan,  1.0000],
                [50.7500, 50.5000,     nan,  0.5000],
                [51.2500, 51.1667, 83.3333,  1.5000]])
    """
    check_panel("technical_indicators", prices=prices)
    check_integer("technical_indicators", 1, short=short, long=long)
    check_integer("technical_indicators", 2, rsi=rsi, band=band)
    if mode not in ("wilder", "simple"):
        raise_invalid("technical_indicators", 'mode must be "wilder" or "simple"', mode=mode)
    y: Tensor = operator(prices, short, long, rsi, band, mode)
    return y


def _reference(
    prices: Tensor, short: int = 10, long: int = 30, rsi: int = 14, band: int = 20, mode: str = "wilder"
) -> Tensor:
    x = prices.where(prices.isfinite(), torch.nan)
    gains, losses, defined = averages(*changes(x, mode), rsi, mode)
    total = gains + losses
    strength = (100 * gains / total.where(total > 0, 1)).where(defined, torch.nan)
    rows = sliding_windows(x, band)
    half = 2 * (rows - rows[..., :1]).std(-1, correction=0)
    return torch.stack([sliding_windows(x, short).mean(-1), sliding_windows(x, long).mean(-1), strength, half], -1)


def _fake(prices: Tensor) -> Tensor:
    return prices.new_empty(*prices.shape, 4)


def _backward(grad: Tensor, *, prices: Tensor, short: int, long: int, rsi: int, band: int, mode: str) -> Tensor:
    dx: Tensor = technical_indicators_backward.operator(prices, grad, short, long, rsi, band, mode)
    return dx


def _oracle(prices: Tensor, **settings: int) -> Tensor:
    import numpy as np
    import talib

    lengths = {"short": 10, "long": 30, "rsi": 14, "band": 20} | settings
    columns = []
    for x in prices.movedim(-2, -1).reshape(-1, prices.shape[-2]).numpy():
        upper, middle, _ = talib.BBANDS(x, lengths["band"], 2, 2)
        averages = talib.SMA(x, lengths["short"]), talib.SMA(x, lengths["long"])
        columns.append(np.stack([*averages, talib.RSI(x, lengths["rsi"]), upper - middle], -1))
    shape = *prices.shape[:-2], prices.shape[-1], prices.shape[-2], 4
    return torch.as_tensor(np.stack(columns)).reshape(shape).movedim(-2, -3)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = 50 + torch.randn(2, 15, 3, dtype=torch.double, generator=generator).cumsum(-2)
    gaps = x.clone()
    gaps[0, 6, 1] = gaps[1, 0, 0] = gaps[1, 9:11, 2] = torch.nan
    gaps[0, 3, 2] = torch.inf
    long = 50 + torch.randn(300, 4, dtype=torch.double, generator=generator).cumsum(-2)
    rising = torch.tensor([50, 51, 50.5, 52], dtype=torch.double).unsqueeze(-1)
    nan = torch.nan
    first, last = [[nan] * 4, [50.5, nan, nan, 1]], [[50.75, 50.5, nan, 0.5], [51.25, 307 / 6, 250 / 3, 1.5]]
    by_hand = torch.tensor(first + last, dtype=torch.double).unsqueeze(-2)
    small = {"short": 2, "long": 5, "rsi": 3, "band": 4}
    return Cases(
        function=technical_indicators,
        samples=(
            Sample(x, **small),
            Sample(gaps, **small),
            Sample(gaps, **small, mode="simple"),
            Sample(x[0, :, :1], short=1, long=4, rsi=2, band=2),
        ),
        bad=(
            Bad(Sample(x, short=0), "technical_indicators: short must be >= 1; got short=0"),
            Bad(Sample(x, rsi=1), "rsi must be >= 2; got rsi=1"),
            Bad(Sample(x, mode="ema"), 'mode must be "wilder" or "simple"; got mode=\'ema\''),
            Bad(Sample(x[0, 0]), r"prices must be \(\.\.\., T, N\)"),
            Bad(Sample(x.long()), "prices must be floating-point", TypeError),
            Bad(Sample(x, band=20.0), "band must be an int", TypeError),
        ),
        golden=(Golden(Sample(rising, short=2, long=3, rsi=3, band=2), by_hand, "by hand"),),
        oracle=_oracle,
        oracle_samples=(Sample(long), Sample(long * 1e3, short=3, long=100, rsi=21, band=60)),
    )


operator = Op(
    "commodity::technical_indicators",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    cases=_cases,
    warmup=lambda short, long, rsi, band: (short - 1, long - 1, rsi, band - 1),
    time=(-2, -3),
)

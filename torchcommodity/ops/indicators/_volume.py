"""Prices weighted by volume (TA-Lib: volume indicators)."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import (
    Period,
    Seed,
    change,
    cumsum,
    divide,
    ema,
    fill,
    maximum,
    minimum,
    positive_part,
    previous,
    sign,
    total,
    where,
)


def money_flow(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """Volume times the position of the close in the range of the row, -1 to 1; zero without range."""
    return divide((close - low) - (high - close), positive_part(high - low), zero=0) * volume


@series.operator
def ad(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """Accumulation/distribution line: cumulative sum of volume x ((close - low) - (high - close)) / (high - low).

    In units of volume. A row without range adds 0. TA-Lib AD; Chaikin. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ad(x + 1, x - 2, x, 100 * x).squeeze(-1)
        tensor([ 333.3333,  700.0000, 1050.0000, 1450.0000, 1816.6666, 2250.0000])
    """
    return cumsum(money_flow(high, low, close, volume))


@series.operator(fastperiod=2, slowperiod=2)
def adosc(
    high: Tensor, low: Tensor, close: Tensor, volume: Tensor, fastperiod: Period = 3, slowperiod: Period = 10
) -> Tensor:
    """Chaikin oscillator: fast minus slow `ema` of `ad`, both in mode "pandas"; in units of volume.

    TA-Lib ADOSC; Chaikin. Warm-up: max(fastperiod, slowperiod) - 1 rows. `fastperiod` and `slowperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adosc(x + 1, x - 2, x, 100 * x, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([     nan,      nan, 109.2593, 147.5309, 165.8436, 185.8368])
    """
    line = ad(high, low, close, volume)
    return ema(line, fastperiod, "pandas") - ema(line, slowperiod, "pandas")


@series.operator
def obv(real: Tensor, volume: Tensor) -> Tensor:
    """On-balance volume: cumulative sum of volume, with negative sign where the price fell and 0 where unchanged.

    In units of volume; starts with the first volume. Differentiable in the volume only. TA-Lib OBV; Granville (1963),
    Granville's New Key to Stock Market Profits. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.obv(x, 100 * x).squeeze(-1)
        tensor([1000., 2100., 1050., 2250., 1150., 2450.])
    """
    direction = fill(sign(change(real)), 1)  # the first row has no change
    return cumsum(direction * volume)


@series.operator
def cmf(high: Tensor, low: Tensor, close: Tensor, volume: Tensor, timeperiod: int = 20) -> Tensor:
    """Chaikin money flow: sum of the terms of `ad` over the sum of volume in the window; -1 to 1.

    0 without any volume. TA-Lib CMF; Chaikin. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cmf(x + 1, x - 2, x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333])
    """
    return divide(total(money_flow(high, low, close, volume), timeperiod), total(volume, timeperiod), zero=0)


@series.operator
def efi(close: Tensor, volume: Tensor, timeperiod: Period = 13, *, mode: Seed = "talib") -> Tensor:
    """Force index: `ema` of price change x volume.

    In units of price x volume. TA-Lib EFI; Elder (1993), Trading for a Living. Warm-up:
    timeperiod rows. Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.efi(x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([      nan,       nan,  287.5000, 1295.8334, -301.3889, 1632.8704])
    """
    return ema(change(close) * volume, timeperiod, mode)


@series.operator
def marketfi(high: Tensor, low: Tensor, volume: Tensor) -> Tensor:
    """Market facilitation index, (high - low) / volume.

    0 without volume. TA-Lib MARKETFI; Williams (1995), Trading Chaos. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.marketfi(x + 1, x - 2, 100 * x).squeeze(-1)
        tensor([0.0030, 0.0027, 0.0029, 0.0025, 0.0027, 0.0023])
    """
    return divide(high - low, volume, zero=0)


@series.operator
def wad(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Williams accumulation/distribution: sum of close - true low after a rise and close - true high after a fall.

    TA-Lib WAD; Achelis (2000), Technical Analysis from A to Z. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.wad(x + 1, x - 2, x).squeeze(-1)
        tensor([0., 2., 1., 3., 2., 4.])
    """
    before = fill(previous(close), close)  # the first row has no change
    gain, loss = close - minimum(low, before), close - maximum(high, before)
    return cumsum(where(close > before, gain, where(close < before, loss, 0)))

"""Momentum as the strength of gains against losses."""

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, together


def relative_strength(x: Series, timeperiod: Period, mode: Smoothing = "talib") -> Series:
    gain, loss = _averages(x, timeperiod, mode)
    return 100 * gain.over(gain + loss, 0)


def _averages(x: Series, timeperiod: Period, mode: Smoothing) -> tuple[Series, Series]:
    change = x - x.delay(1) if mode == "simple" else x.change()
    return averages.wilder(change.up(), timeperiod, mode), averages.wilder(change.down(), timeperiod, mode)


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def rsi(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Relative strength index, 100 G / (G + L), of the average gain G and the average loss L per row: 0 to 100.

    The averages are `rma`. 0 where nothing moved, as TA-Lib says. TA-Lib RSI; Wilder (1978), New Concepts in
    Technical Trading Systems. Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod`
    may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rsi(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 66.6667, 88.8889, 47.0588, 81.6327])
    """
    return relative_strength(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def cmo(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Chande momentum oscillator, 100 (G - L) / (G + L), with the averages of `rsi`: -100 to 100.

    0 where nothing moved. Chande's own, unsmoothed: `cmou`. TA-Lib CMO; Chande, Kroll (1994), The New Technical
    Trader. Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cmo(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 33.3333, 77.7778, -5.8824, 63.2653])
    """
    gain, loss = _averages(Series.of(real), timeperiod, mode)
    return (100 * (gain - loss).over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod)
def cmou(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Chande momentum oscillator of sums, 100 (G - L) / (G + L) over the window: -100 to 100.

    0 where nothing moved. TA-Lib CMOU; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cmou(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 33.3333, 50.0000, 20.0000, 33.3333])
    """
    gain, loss = _averages(Series.of(real), timeperiod, "simple")
    return (100 * (gain - loss).over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def imi(open: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """Intraday momentum index: like `rsi`, of the sums of close - open over the window; 0 to 100.

    0 where nothing moved. TA-Lib IMI; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.imi(x - 0.5, x, timeperiod=2).squeeze(-1)
        tensor([ nan, 100., 100., 100., 100., 100.])
    """
    opens, closes = together(open, close)
    gain = windows.total((closes - opens).up(), timeperiod)
    loss = windows.total((closes - opens).down(), timeperiod)
    return (100 * gain.over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def mfi(high: Tensor, low: Tensor, close: Tensor, volume: Tensor, timeperiod: int = 14) -> Tensor:
    """Money flow index: like `rsi`, of sums of typical price times volume on rows where that price rose or fell.

    0 to 100; 0 where no money flowed (TA-Lib: where less than one unit did). TA-Lib MFI; Quong, Soudack (1989),
    Technical Analysis of Stocks & Commodities 7:3. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mfi(x + 1, x - 2, x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 52.3615, 56.7376, 54.4041, 58.3924])
    """
    highs, lows, closes, volumes = together(high, low, close, volume)
    price = (highs + lows + closes) / 3
    flow, change = price * volumes, price.value - price.before().value
    raised = Series(flow.value.where(change > 0, 0), flow.known & price.before().known)
    lowered = Series(flow.value.where(change < 0, 0), flow.known & price.before().known)
    inflow, outflow = windows.total(raised, timeperiod), windows.total(lowered, timeperiod)
    return (100 * inflow.over(inflow + outflow, 0)).panel()

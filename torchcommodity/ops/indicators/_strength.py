"""Momentum: gains relative to losses."""

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, align


def relative_strength(x: Series, timeperiod: Period, mode: Smoothing = "talib") -> Series:
    gain, loss = _averages(x, timeperiod, mode)
    return 100 * gain.divide(gain + loss, 0)


def _averages(x: Series, timeperiod: Period, mode: Smoothing) -> tuple[Series, Series]:
    change = x - x.lag(1) if mode == "simple" else x.change()
    return averages.wilder(change.positive_part(), timeperiod, mode), averages.wilder(
        change.negative_part(), timeperiod, mode
    )


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def rsi(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Relative strength index: 100 G / (G + L) with the average gain G and average loss L per row; 0 to 100.

    The averages are `rma`. 0 without any change, as in TA-Lib. TA-Lib RSI; Wilder (1978), New Concepts in
    Technical Trading Systems. Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod`
    may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rsi(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 66.6667, 88.8889, 47.0588, 81.6327])
    """
    return relative_strength(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def cmo(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Chande momentum oscillator: 100 (G - L) / (G + L) with the averages of `rsi`; -100 to 100.

    0 without any change. Chande's original without smoothing is `cmou`. TA-Lib CMO; Chande, Kroll (1994), The New
    Technical Trader. Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be
    learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cmo(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 33.3333, 77.7778, -5.8824, 63.2653])
    """
    gain, loss = _averages(Series.from_panel(real), timeperiod, mode)
    return (100 * (gain - loss).divide(gain + loss, 0)).to_panel()


@indicator(lambda timeperiod: timeperiod)
def cmou(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Unsmoothed Chande momentum oscillator: 100 (G - L) / (G + L) with sums over the window; -100 to 100.

    0 without any change. TA-Lib CMOU; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cmou(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 33.3333, 50.0000, 20.0000, 33.3333])
    """
    gain, loss = _averages(Series.from_panel(real), timeperiod, "simple")
    return (100 * (gain - loss).divide(gain + loss, 0)).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def imi(open: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """Intraday momentum index: like `rsi`, with sums of close - open over the window; 0 to 100.

    0 without any change. TA-Lib IMI; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.imi(x - 0.5, x, timeperiod=2).squeeze(-1)
        tensor([ nan, 100., 100., 100., 100., 100.])
    """
    opens, closes = align(open, close)
    gain = windows.total((closes - opens).positive_part(), timeperiod)
    loss = windows.total((closes - opens).negative_part(), timeperiod)
    return (100 * gain.divide(gain + loss, 0)).to_panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def mfi(high: Tensor, low: Tensor, close: Tensor, volume: Tensor, timeperiod: int = 14) -> Tensor:
    """Money flow index: like `rsi`, with sums of typical price x volume over rows where that price rose or fell.

    0 to 100; 0 without any flow (in TA-Lib: less than one unit). TA-Lib MFI; Quong, Soudack (1989),
    Technical Analysis of Stocks & Commodities 7:3. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mfi(x + 1, x - 2, x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 52.3615, 56.7376, 54.4041, 58.3924])
    """
    highs, lows, closes, volumes = align(high, low, close, volume)
    price = (highs + lows + closes) / 3
    flow, change = price * volumes, price.value - price.previous().value
    positive = Series(flow.value.where(change > 0, 0), flow.valid & price.previous().valid)
    negative = Series(flow.value.where(change < 0, 0), flow.valid & price.previous().valid)
    inflow, outflow = windows.total(positive, timeperiod), windows.total(negative, timeperiod)
    return (100 * inflow.divide(inflow + outflow, 0)).to_panel()

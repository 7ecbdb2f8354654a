"""Momentum: gains relative to losses."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._price import typprice
from torchcommodity.ops.series import Period, Smoothing, change, divide, lag, negative_part, positive_part, rma, total


def average_moves(x: Tensor, timeperiod: Period, mode: Smoothing) -> tuple[Tensor, Tensor]:
    """Average gain and average loss per row."""
    moves = x - lag(x) if mode == "simple" else change(x)
    return rma(positive_part(moves), timeperiod, mode), rma(negative_part(moves), timeperiod, mode)


@series.operator(timeperiod=2)
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
    gain, loss = average_moves(real, timeperiod, mode)
    return 100 * divide(gain, gain + loss, zero=0)


@series.operator(timeperiod=2)
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
    gain, loss = average_moves(real, timeperiod, mode)
    return 100 * divide(gain - loss, gain + loss, zero=0)


@series.operator
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
    gain, loss = average_moves(real, timeperiod, "simple")
    return 100 * divide(gain - loss, gain + loss, zero=0)


@series.operator
def imi(open: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """Intraday momentum index: like `rsi`, with sums of close - open over the window; 0 to 100.

    50 without any change. TA-Lib IMI; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.imi(x - 0.5, x, timeperiod=2).squeeze(-1)
        tensor([ nan, 100., 100., 100., 100., 100.])
    """
    body = close - open
    gain, loss = total(positive_part(body), timeperiod), total(negative_part(body), timeperiod)
    return 100 * divide(gain, gain + loss, zero=0.5)


@series.operator(timeperiod=2)
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
    price = typprice(high, low, close)
    flow, moves = price * volume, change(price)
    inflow, outflow = total(flow * (moves > 0), timeperiod), total(flow * (moves < 0), timeperiod)
    return 100 * divide(inflow, inflow + outflow, zero=0)

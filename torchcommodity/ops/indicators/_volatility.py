"""How far prices range (TA-Lib: volatility indicators)."""

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._averages import wilder
from torchcommodity.ops.indicators._indicator import Period, Seed, Smoothing, indicator
from torchcommodity.ops.indicators._rates import rate
from torchcommodity.ops.indicators._series import Series, together


def true_range(highs: Series, lows: Series, closes: Series) -> Series:
    """The range of a row, with the last close before it."""
    before = closes.before()
    return highs.maximum(before) - lows.minimum(before)


def average_range(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Series:
    highs, lows, closes = together(high, low, close)
    span = true_range(highs, lows, closes)
    if mode == "wilder":  # the first row has a range too, though no close before it
        first = closes.known & (closes.count() == 1)
        span = Series((highs - lows).value.where(first, span.value), span.known | first)
    return wilder(span, timeperiod, mode)


@indicator(lambda: 1)
def trange(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """True range: max(high, close before) - min(low, close before).

    TA-Lib TRANGE; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: 1 row.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.trange(x + 1, x - 2, x).squeeze(-1)
        tensor([nan, 3., 3., 3., 3., 3.])
    """
    return true_range(*together(high, low, close)).panel()


@indicator(lambda timeperiod, mode: timeperiod - (mode == "wilder"))
def atr(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average true range: `rma` of `trange`.

    TA-Lib ATR; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: timeperiod rows, one less in mode
    "wilder". Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.atr(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([nan, nan, 3., 3., 3., 3.])
    """
    return average_range(high, low, close, timeperiod, mode).panel()


@indicator(lambda timeperiod, mode: timeperiod - (mode == "wilder"))
def natr(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average true range in per cent of the close.

    0 where the close is 0. TA-Lib NATR; Forman (2006), Technical Analysis of Stocks & Commodities 24:5. Warm-up:
    timeperiod rows, one less in mode "wilder". Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be
    learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.natr(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 28.5714, 25.0000, 27.2727, 23.0769])
    """
    closes = together(high, low, close)[2]
    return (100 * average_range(high, low, close, timeperiod, mode).over(closes, 0)).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def adr(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Average range: `sma` of high - low.

    TA-Lib ADR. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adr(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([nan, 3., 3., 3., 3., 3.])
    """
    highs, lows = together(high, low)
    return averages.sma(highs - lows, timeperiod).panel()


@indicator(lambda timeperiod, rocperiod: timeperiod + rocperiod - 1)
def cvi(high: Tensor, low: Tensor, timeperiod: Period = 10, rocperiod: int = 10, *, mode: Seed = "talib") -> Tensor:
    """Chaikin volatility: the rate of change, in per cent, of the `ema` of high - low.

    0 where that average was 0. TA-Lib CVI; Chaikin. Warm-up: timeperiod + rocperiod - 1 rows. Modes: "talib",
    "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cvi(x + 1, x - 2, timeperiod=2, rocperiod=2).squeeze(-1)
        tensor([nan, nan, nan, 0., 0., 0.])
    """
    highs, lows = together(high, low)
    return (100 * rate(averages.ema(highs - lows, timeperiod, mode), rocperiod)).panel()


@indicator(lambda fastperiod, slowperiod: 2 * (fastperiod - 1) + slowperiod - 1)
def massi(high: Tensor, low: Tensor, fastperiod: Period = 9, slowperiod: int = 25, *, mode: Seed = "talib") -> Tensor:
    """Mass index: the sum over `slowperiod` rows of E / E(E), where E is the `ema` of high - low; about `slowperiod`.

    TA-Lib MASSI; Dorsey (1992), Technical Analysis of Stocks & Commodities 10:6. Warm-up: 2 * (fastperiod - 1) +
    slowperiod - 1 rows. Modes: "talib", "pandas". `fastperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.massi(x + 1, x - 2, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([nan, nan, nan, nan, 3., 3.])
    """
    highs, lows = together(high, low)
    once = averages.ema(highs - lows, fastperiod, mode)
    return windows.total(once.over(averages.ema(once, fastperiod, mode), 0), slowperiod).panel()


@indicator(lambda timeperiod, stddevperiod: max(stddevperiod - 1, 1) + timeperiod - 1)
def rvi(real: Tensor, timeperiod: Period = 14, stddevperiod: int = 10, *, mode: Smoothing = "talib") -> Tensor:
    """Relative volatility index: like `rsi`, of the standard deviation on rows where the price rose or fell; 0 to 100.

    50 where nothing moved. Differentiable through the deviation only: which rows rose is constant. TA-Lib RVI; Dorsey
    (1993), Technical Analysis of Stocks & Commodities 11:6. Warm-up: max(stddevperiod - 1, 1) + timeperiod - 1 rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rvi(x, timeperiod=2, stddevperiod=2).squeeze(-1)
        tensor([    nan,     nan, 66.6667, 88.8889, 47.0588, 81.6327])
    """
    x = Series.of(real)
    spread, change = windows.deviation(x, stddevperiod), x.change()
    known = spread.known & change.known
    rose = Series(spread.value.where(change.value > 0, 0), known)
    fell = Series(spread.value.where(change.value < 0, 0), known)
    up, down = averages.wilder(rose, timeperiod, mode), averages.wilder(fell, timeperiod, mode)
    return (100 * up.over(up + down, 0.5)).panel()

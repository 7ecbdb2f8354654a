"""True range and other volatility indicators (TA-Lib: volatility indicators)."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._rates import roc
from torchcommodity.ops.series import (
    Period,
    Seed,
    Smoothing,
    change,
    divide,
    ema,
    fill,
    rma,
    sma,
    std,
    total,
    true_range,
)


@series.operator
def trange(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """True range: max(high, previous close) - min(low, previous close).

    TA-Lib TRANGE; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: 1 row.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.trange(x + 1, x - 2, x).squeeze(-1)
        tensor([nan, 3., 3., 3., 3., 3.])
    """
    return true_range(high, low, close)


@series.operator
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
    ranges = true_range(high, low, close)
    if mode == "wilder":  # the first row has a range, without a previous close
        ranges = fill(ranges, high - low)
    return rma(ranges, timeperiod, mode)


@series.operator
def natr(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Normalized average true range: `atr` in percent of the close.

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
    return 100 * divide(atr(high, low, close, timeperiod, mode=mode), close, zero=0)


@series.operator
def adr(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Average daily range: `sma` of high - low.

    TA-Lib ADR. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adr(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([nan, 3., 3., 3., 3., 3.])
    """
    return sma(high - low, timeperiod)


@series.operator
def cvi(high: Tensor, low: Tensor, timeperiod: Period = 10, rocperiod: int = 10, *, mode: Seed = "talib") -> Tensor:
    """Chaikin volatility: rate of change of the `ema` of high - low, in percent.

    0 where the earlier average is 0. TA-Lib CVI; Chaikin. Warm-up: timeperiod + rocperiod - 1 rows. Modes: "talib",
    "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cvi(x + 1, x - 2, timeperiod=2, rocperiod=2).squeeze(-1)
        tensor([nan, nan, nan, 0., 0., 0.])
    """
    return roc(ema(high - low, timeperiod, mode), rocperiod)


@series.operator
def massi(high: Tensor, low: Tensor, fastperiod: Period = 9, slowperiod: int = 25, *, mode: Seed = "talib") -> Tensor:
    """Mass index: sum over `slowperiod` rows of E / E(E) with E the `ema` of high - low; about `slowperiod`.

    `slowperiod` without any range. TA-Lib MASSI; Dorsey (1992), Technical Analysis of Stocks & Commodities 10:6.
    Warm-up: 2 * (fastperiod - 1) + slowperiod - 1 rows. Modes: "talib", "pandas". `fastperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.massi(x + 1, x - 2, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([nan, nan, nan, nan, 3., 3.])
    """
    once = ema(high - low, fastperiod, mode)
    return total(divide(once, ema(once, fastperiod, mode), zero=1), slowperiod)


@series.operator
def rvi(real: Tensor, timeperiod: Period = 14, stddevperiod: int = 10, *, mode: Smoothing = "talib") -> Tensor:
    """Relative volatility index: like `rsi`, with standard deviations on rows where the price rose or fell; 0 to 100.

    50 without any change. Differentiable through the standard deviation only. TA-Lib RVI; Dorsey
    (1993), Technical Analysis of Stocks & Commodities 11:6. Warm-up: max(stddevperiod - 1, 1) + timeperiod - 1 rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rvi(x, timeperiod=2, stddevperiod=2).squeeze(-1)
        tensor([    nan,     nan, 66.6667, 88.8889, 47.0588, 81.6327])
    """
    spread, moves = std(real, stddevperiod), change(real)
    up, down = rma(spread * (moves > 0), timeperiod, mode), rma(spread * (moves < 0), timeperiod, mode)
    return 100 * divide(up, up + down, zero=0.5)

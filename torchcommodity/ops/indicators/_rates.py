"""Momentum as a change against a price so many rows before."""

from torch import Tensor

from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, together


def rate(x: Series, timeperiod: int) -> Series:
    """Relative change; zero where the price before was zero, as TA-Lib says."""
    before = x.delay(timeperiod)
    return (x - before).over(before, 0)


def ratio(x: Series, timeperiod: int) -> Series:
    return x.over(x.delay(timeperiod), 0)


@indicator(lambda timeperiod: timeperiod)
def mom(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Momentum: the price less that of `timeperiod` rows before.

    TA-Lib MOM. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mom(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.5000, 1.0000, 0.5000, 1.0000])
    """
    x = Series.of(real)
    return (x - x.delay(timeperiod)).panel()


@indicator(lambda timeperiod: timeperiod)
def roc(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Rate of change in per cent, 100 (x / x_before - 1), `timeperiod` rows before.

    0 where the price before was 0. TA-Lib ROC. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.roc(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 5.0000, 9.0909, 4.7619, 8.3333])
    """
    return (100 * rate(Series.of(real), timeperiod)).panel()


@indicator(lambda timeperiod: timeperiod)
def rocp(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Rate of change, x / x_before - 1, `timeperiod` rows before.

    No unit; 0 where the price before was 0. TA-Lib ROCP. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocp(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.0500, 0.0909, 0.0476, 0.0833])
    """
    return rate(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def rocr(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Ratio of the price to that of `timeperiod` rows before.

    No unit; 0 where the price before was 0. TA-Lib ROCR. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocr(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 1.0500, 1.0909, 1.0476, 1.0833])
    """
    return ratio(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def rocr100(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Ratio of the price to that of `timeperiod` rows before, in per cent.

    0 where the price before was 0. TA-Lib ROCR100. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocr100(x, timeperiod=2).squeeze(-1)
        tensor([     nan,      nan, 105.0000, 109.0909, 104.7619, 108.3333])
    """
    return (100 * ratio(Series.of(real), timeperiod)).panel()


@indicator(lambda: 0)
def bop(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Balance of power, (close - open) / (high - low): -1 to 1.

    0 where the row has no range. TA-Lib BOP; Livshin (2001), Technical Analysis of Stocks & Commodities 19:8. No
    warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.bop(x - 0.5, x + 1, x - 2, x).squeeze(-1)
        tensor([0.1667, 0.1667, 0.1667, 0.1667, 0.1667, 0.1667])
    """
    opens, highs, lows, closes = together(open, high, low, close)
    return (closes - opens).over((highs - lows).up(), 0).panel()

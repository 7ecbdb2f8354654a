"""Momentum: changes from an earlier price."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import divide, lag, positive_part


@series.operator
def mom(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Momentum: the price minus the price `timeperiod` rows ago.

    TA-Lib MOM. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mom(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.5000, 1.0000, 0.5000, 1.0000])
    """
    return real - lag(real, timeperiod)


@series.operator
def roc(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Rate of change in percent, 100 (x / y - 1) with the price y `timeperiod` rows ago.

    0 where y is 0. TA-Lib ROC. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.roc(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 5.0000, 9.0909, 4.7619, 8.3333])
    """
    return 100 * rocp(real, timeperiod)


@series.operator
def rocp(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Rate of change, x / y - 1 with the price y `timeperiod` rows ago.

    Dimensionless; 0 where y is 0. TA-Lib ROCP. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocp(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.0500, 0.0909, 0.0476, 0.0833])
    """
    earlier = lag(real, timeperiod)
    return divide(real - earlier, earlier, zero=0)


@series.operator
def rocr(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Ratio x / y to the price y `timeperiod` rows ago.

    Dimensionless; 0 where y is 0. TA-Lib ROCR. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocr(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 1.0500, 1.0909, 1.0476, 1.0833])
    """
    return divide(real, lag(real, timeperiod), zero=0)


@series.operator
def rocr100(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Ratio to the price y `timeperiod` rows ago in percent, 100 x / y.

    0 where y is 0. TA-Lib ROCR100. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rocr100(x, timeperiod=2).squeeze(-1)
        tensor([     nan,      nan, 105.0000, 109.0909, 104.7619, 108.3333])
    """
    return 100 * rocr(real, timeperiod)


@series.operator
def bop(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Balance of power, (close - open) / (high - low): -1 to 1.

    0 where high equals low. TA-Lib BOP; Livshin (2001), Technical Analysis of Stocks & Commodities 19:8. No
    warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.bop(x - 0.5, x + 1, x - 2, x).squeeze(-1)
        tensor([0.1667, 0.1667, 0.1667, 0.1667, 0.1667, 0.1667])
    """
    return divide(close - open, positive_part(high - low), zero=0)

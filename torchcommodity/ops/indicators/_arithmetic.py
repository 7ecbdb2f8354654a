"""Sums and arithmetic of two panels (TA-Lib: math operators)."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import total


@series.operator
def sum(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Sum over the window.

    TA-Lib SUM. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.sum(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 21.0000, 21.5000, 22.5000, 23.0000, 24.0000])
    """
    return total(real, timeperiod)


@series.operator
def cumsum(real: Tensor) -> Tensor:
    """Running sum; a missing value adds nothing.

    TA-Lib CUMSUM. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cumsum(x).squeeze(-1)
        tensor([10.0000, 21.0000, 31.5000, 43.5000, 54.5000, 67.5000])
    """
    return series.cumsum(real)


@series.operator
def add(real0: Tensor, real1: Tensor) -> Tensor:
    """Sum of two panels.

    TA-Lib ADD. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.add(x, x.square()).squeeze(-1)
        tensor([110.0000, 132.0000, 120.7500, 156.0000, 132.0000, 182.0000])
    """
    return real0 + real1


@series.operator
def sub(real0: Tensor, real1: Tensor) -> Tensor:
    """Difference of two panels.

    TA-Lib SUB. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.sub(x, x.square()).squeeze(-1)
        tensor([ -90.0000, -110.0000,  -99.7500, -132.0000, -110.0000, -156.0000])
    """
    return real0 - real1


@series.operator
def mult(real0: Tensor, real1: Tensor) -> Tensor:
    """Product of two panels.

    TA-Lib MULT. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mult(x, x.square()).squeeze(-1)
        tensor([1000.0000, 1331.0000, 1157.6250, 1728.0000, 1331.0000, 2197.0000])
    """
    return real0 * real1


@series.operator
def div(real0: Tensor, real1: Tensor) -> Tensor:
    """Quotient of two panels.

    NaN where the divisor is 0 (infinite in TA-Lib). TA-Lib DIV. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.div(x, x.square()).squeeze(-1)
        tensor([0.1000, 0.0909, 0.0952, 0.0833, 0.0909, 0.0769])
    """
    return real0 / real1

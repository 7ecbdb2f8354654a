"""Functions of each value by itself (TA-Lib: math transform). None has a warm-up."""

from math import log, pi

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import minimum, restrict


@series.operator
def acos(real: Tensor) -> Tensor:
    """Angle whose cosine is the value, in radians; NaN outside [-1, 1].

    TA-Lib ACOS.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.acos(torch.tensor([-1.0, 0.0, 1.0, 2.0]).unsqueeze(-1)).squeeze(-1)
        tensor([3.1416, 1.5708, 0.0000,    nan])
    """
    return pi / 2 - asin(real)


@series.operator
def asin(real: Tensor) -> Tensor:
    """Angle whose sine is the value, in radians; NaN outside [-1, 1].

    TA-Lib ASIN.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.asin(torch.tensor([-1.0, 0.0, 1.0, 2.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-1.5708,  0.0000,  1.5708,     nan])
    """
    return restrict(2 * series.atan(real / (1 + series.sqrt(1 - real * real))), abs(real) <= 1)


@series.operator
def atan(real: Tensor) -> Tensor:
    """Angle whose tangent is the value, in radians.

    TA-Lib ATAN.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.atan(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-0.7854,  0.0000,  0.7854])
    """
    return series.atan(real)


@series.operator
def ceil(real: Tensor) -> Tensor:
    """Smallest whole number that is not below the value.

    Its gradient is zero. TA-Lib CEIL.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.ceil(torch.tensor([-1.5, 0.5, 2.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-1.,  1.,  2.])
    """
    return series.ceil(real)


@series.operator
def cos(real: Tensor) -> Tensor:
    """Cosine of an angle in radians.

    TA-Lib COS.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.cos(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([0.5403, 1.0000, 0.5403])
    """
    return series.cos(real)


@series.operator
def cosh(real: Tensor) -> Tensor:
    """Hyperbolic cosine.

    TA-Lib COSH.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.cosh(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([1.5431, 1.0000, 1.5431])
    """
    return (series.exp(real) + series.exp(-real)) / 2


@series.operator
def exp(real: Tensor) -> Tensor:
    """Exponential.

    TA-Lib EXP.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.exp(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([0.3679, 1.0000, 2.7183])
    """
    return series.exp(real)


@series.operator
def floor(real: Tensor) -> Tensor:
    """Largest whole number that is not above the value.

    Its gradient is zero. TA-Lib FLOOR.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.floor(torch.tensor([-1.5, 0.5, 2.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-2.,  0.,  2.])
    """
    return series.floor(real)


@series.operator
def ln(real: Tensor) -> Tensor:
    """Natural logarithm; NaN where the value is not positive.

    TA-Lib LN.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.ln(torch.tensor([0.0, 1.0, 10.0]).unsqueeze(-1)).squeeze(-1)
        tensor([   nan, 0.0000, 2.3026])
    """
    return series.log(real)


@series.operator
def log10(real: Tensor) -> Tensor:
    """Logarithm to base 10; NaN where the value is not positive.

    TA-Lib LOG10.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.log10(torch.tensor([0.0, 1.0, 100.0]).unsqueeze(-1)).squeeze(-1)
        tensor([nan, 0., 2.])
    """
    return series.log(real) / log(10)


@series.operator
def sin(real: Tensor) -> Tensor:
    """Sine of an angle in radians.

    TA-Lib SIN.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.sin(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-0.8415,  0.0000,  0.8415])
    """
    return series.sin(real)


@series.operator
def sinh(real: Tensor) -> Tensor:
    """Hyperbolic sine.

    TA-Lib SINH.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.sinh(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-1.1752,  0.0000,  1.1752])
    """
    return (series.exp(real) - series.exp(-real)) / 2


@series.operator
def sqrt(real: Tensor) -> Tensor:
    """Square root; NaN where the value is negative.

    Its gradient at 0 is zero. TA-Lib SQRT.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.sqrt(torch.tensor([-1.0, 0.0, 4.0]).unsqueeze(-1)).squeeze(-1)
        tensor([nan, 0., 2.])
    """
    return restrict(series.sqrt(real), real >= 0)


@series.operator
def tan(real: Tensor) -> Tensor:
    """Tangent of an angle in radians.

    TA-Lib TAN.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.tan(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-1.5574,  0.0000,  1.5574])
    """
    return series.sin(real) / series.cos(real)


@series.operator
def tanh(real: Tensor) -> Tensor:
    """Hyperbolic tangent.

    TA-Lib TANH.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> indicators.tanh(torch.tensor([-1.0, 0.0, 1.0]).unsqueeze(-1)).squeeze(-1)
        tensor([-0.7616,  0.0000,  0.7616])
    """
    growth = series.exp(2 * minimum(real, 20))  # beyond 20 it is 1 to the last bit
    return (growth - 1) / (growth + 1)

"""Formulas on price panels that become operators: one native pass over time, forward, backward and row by row.

    from torchcommodity.ops.series import operator, sma, std

    @operator
    def zscore(x: Tensor, window: int = 20) -> Tensor:
        return (x - sma(x, window)) / std(x, window)

    zscore(prices, window=30)                  # (..., T, N)
    state = zscore.start(history, window=30)
    state, y = zscore.step(state, row)         # (..., N)

**A formula** is a function of panels, annotated `Tensor`, and of settings. It is written with the functions of this
module, `+ - * / **`, `abs`, comparisons, and `&`, `|` and `~` for conditions. It sees no values, so it must not branch
on one: use `where`.

**Missing values.** A row is missing where one of the panels is not finite. Arithmetic with a missing value is missing,
and so is a division by zero; a window that contains a missing value is missing; recursive averages stay as they are
over a missing row and continue with the next.

**Conditions** are 1 where they hold, 0 where not, and missing where a value is.

**Gradients.** Every operator is differentiable in its panels, to any order, in reverse and forward mode, and in its
periods where they may be Tensors. A missing output ignores its gradient; a missing value gets none.

**Precision.** Values are computed in float64, in float32 on devices without it (MPS), and returned in the dtype of the
panels.
"""

from torchcommodity.ops.series._averages import (
    dema,
    efficiency_ratio,
    hma,
    kama,
    slope,
    t3,
    tema,
    trima,
    true_range,
    zlema,
)
from torchcommodity.ops.series._operator import Operator, operator
from torchcommodity.ops.series._pointwise import (
    atan,
    ceil,
    cos,
    divide,
    equal,
    exp,
    fill,
    floor,
    is_valid,
    log,
    maximum,
    minimum,
    negative_part,
    positive_part,
    restrict,
    sign,
    sin,
    sqrt,
    where,
)
from torchcommodity.ops.series._recursive import ema, exponential, recur, recurrence, rma, smooth
from torchcommodity.ops.series._settings import Period, Seed, Smoothing
from torchcommodity.ops.series._time import (
    change,
    count,
    covariance,
    cumsum,
    forward_fill,
    highest,
    lag,
    lowest,
    mean_absolute_deviation,
    previous,
    products,
    rank,
    row_number,
    since_highest,
    since_lowest,
    skip,
    sma,
    std,
    total,
    var,
    weighted_sum,
    wma,
)

__all__ = [
    "Operator",
    "Period",
    "Seed",
    "Smoothing",
    "atan",
    "ceil",
    "change",
    "cos",
    "count",
    "covariance",
    "cumsum",
    "dema",
    "divide",
    "efficiency_ratio",
    "ema",
    "equal",
    "exp",
    "exponential",
    "fill",
    "floor",
    "forward_fill",
    "highest",
    "hma",
    "is_valid",
    "kama",
    "lag",
    "log",
    "lowest",
    "maximum",
    "mean_absolute_deviation",
    "minimum",
    "negative_part",
    "operator",
    "positive_part",
    "previous",
    "products",
    "rank",
    "recur",
    "recurrence",
    "restrict",
    "rma",
    "row_number",
    "sign",
    "sin",
    "since_highest",
    "since_lowest",
    "skip",
    "slope",
    "sma",
    "smooth",
    "sqrt",
    "std",
    "t3",
    "tema",
    "total",
    "trima",
    "true_range",
    "var",
    "weighted_sum",
    "where",
    "wma",
    "zlema",
]

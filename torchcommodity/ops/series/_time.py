"""Along time: earlier rows, changes, cumulative sums, and trailing windows, this row included.

A window is missing where it contains a missing value or is not yet full. Nothing is ever subtracted from a sum, so that
an outlier leaves no rounding error once it is out of the window.
"""

from torch import Tensor

from torchcommodity.ops.series._expression import statement
from torchcommodity.ops.series._pointwise import sqrt


def row_number(x: Tensor) -> Tensor:
    """The number of the row, from 0."""
    result: Tensor = statement("row", x)
    return result


def lag(x: Tensor, rows: int = 1) -> Tensor:
    """The value `rows` rows ago; missing in the first rows."""
    result: Tensor = statement("lag", x, attributes=(rows,)) if rows else x
    return result


def forward_fill(x: Tensor) -> Tensor:
    """The last value that is not missing."""
    result: Tensor = statement("forward_fill", x)
    return result


def previous(x: Tensor) -> Tensor:
    """The last value before this row that is not missing."""
    result: Tensor = statement("previous", x)
    return result


def change(x: Tensor) -> Tensor:
    """Change from the previous value; the changes across a gap sum to the total change."""
    result: Tensor = statement("change", x)
    return result


def count(x: Tensor) -> Tensor:
    """Number of values up to this row that are not missing."""
    result: Tensor = statement("count", x)
    return result


def cumsum(x: Tensor) -> Tensor:
    """Sum of the values up to this row; a missing value adds nothing."""
    result: Tensor = statement("cumsum", x)
    return result


def skip(x: Tensor, rows: int | Tensor) -> Tensor:
    """x without its first `rows` values."""
    result: Tensor = statement("skip", x, rows)
    return result


def total(x: Tensor, window: int) -> Tensor:
    """Sum of the window."""
    return _window("window_sum", x, window)


def sma(x: Tensor, window: int) -> Tensor:
    """Simple moving average: the mean of the window."""
    return _window("window_mean", x, window)


def weighted_sum(x: Tensor, window: int) -> Tensor:
    """Sum of the window with weights `window` for the newest value down to 1 for the oldest."""
    return _window("weighted_sum", x, window)


def wma(x: Tensor, window: int) -> Tensor:
    """Weighted moving average: weights `window` for the newest value down to 1 for the oldest."""
    return weighted_sum(x, window) / (window * (window + 1) / 2)


def products(x: Tensor, y: Tensor, window: int) -> Tensor:
    """Sum over the window of the products of deviations from the means; exactly 0 where x or y is constant."""
    result: Tensor = statement("window_products", x, y, attributes=(window,))
    return result


def covariance(x: Tensor, y: Tensor, window: int) -> Tensor:
    """Population covariance of the window."""
    return products(x, y, window) / window


def var(x: Tensor, window: int) -> Tensor:
    """Population variance of the window."""
    return products(x, x, window) / window


def std(x: Tensor, window: int) -> Tensor:
    """Population standard deviation of the window."""
    return sqrt(var(x, window))


def highest(x: Tensor, window: int) -> Tensor:
    """Largest value of the window; the gradient goes to the newest of equal ones."""
    return _window("highest", x, window)


def lowest(x: Tensor, window: int) -> Tensor:
    """Smallest value of the window; the gradient goes to the newest of equal ones."""
    return _window("lowest", x, window)


def since_highest(x: Tensor, window: int) -> Tensor:
    """Rows since the largest value of the window, the newest of equal ones; without a gradient."""
    return _window("since_highest", x, window)


def since_lowest(x: Tensor, window: int) -> Tensor:
    """Rows since the smallest value of the window, the newest of equal ones; without a gradient."""
    return _window("since_lowest", x, window)


def mean_absolute_deviation(x: Tensor, window: int) -> Tensor:
    """Mean absolute deviation from the mean of the window; takes a step per row of the window."""
    return _window("absolute_deviation", x, window)


def rank(x: Tensor, window: int) -> Tensor:
    """Number of the previous `window` values that are below the current one; without a gradient."""
    return _window("rank", x, window)


def _window(name: str, x: Tensor, window: int) -> Tensor:
    result: Tensor = statement(name, x, attributes=(window,))
    return result

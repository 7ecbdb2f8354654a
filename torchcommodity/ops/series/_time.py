"""Along time: earlier rows, changes and cumulative sums."""

from torch import Tensor

from torchcommodity.ops.series._expression import statement
from torchcommodity.ops.series._pointwise import where


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
    return lag(forward_fill(x))


def change(x: Tensor) -> Tensor:
    """Change from the previous value; the changes across a gap sum to the total change."""
    return x - previous(x)


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
    return where(count(x) > rows, x)

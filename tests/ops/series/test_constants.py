"""Statements about numbers alone leave only constants in a program."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import ceil, divide, maximum, minimum, restrict, where


@series.operator
def folded(x: Tensor, n: int = 3) -> Tensor:
    y = where(maximum(n, 2) >= 3, ceil(minimum(n, 2.5)), 7)
    return x * restrict(divide(y, 2) + 1, y > 0)


@series.operator
def missing(x: Tensor) -> Tensor:
    return x + divide(1, 0)


def test_statements_about_numbers_are_folded() -> None:
    assert folded.program() == "panels 1; input 0; constant 2.5; multiply %1 %2; return float %3"
    assert folded.program(n=2) == "panels 1; input 0; constant 4.5; multiply %1 %2; return float %3"


def test_a_missing_constant_is_not_folded() -> None:
    assert "divide" in missing.program()

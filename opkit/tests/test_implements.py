"""`implements`, `dispatch` and `override_coverage`, with tensor types as users write them."""

import json
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import LoggingTensor, MetadataTensor, ScalarTensor, dispatch, implements


class Diagonal:
    """A matrix stored as its diagonal, without a default."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def dense(self) -> Tensor:
        return torch.diag(self.values)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(cls, func, types, args, kwargs)


class Unit(Diagonal):
    """A subclass with one handler of its own."""


class Sine(Tensor):
    """A Tensor whose `exp` is wrong and whose `log` raises."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(cls, func, types, args, kwargs, default=super().__torch_function__)


class Unrelated:
    """Declines every function."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


@implements(Diagonal, torch.trace, torch.sum)
def _sum(input: Diagonal) -> Tensor:
    return input.values.sum()


@implements(Diagonal, torch.add)
def _add(input: Any, other: Any) -> Any:
    both = isinstance(input, Diagonal) and isinstance(other, Diagonal)
    return Diagonal(input.values + other.values) if both else NotImplemented


@implements(Unit, torch.trace)
def _trace(input: Unit) -> str:
    return "of the subclass"


@implements(Sine, torch.exp, torch.Tensor.exp)
def _exp(input: Sine, **_: Any) -> Tensor:
    return input.as_subclass(Tensor).sin()


@implements(Sine, torch.log)
def _log(input: Sine) -> Tensor:
    raise ValueError("Sine: log is not defined")


DIAGONAL, UNIT = Diagonal(torch.tensor([1.0, 2.0])), Unit(torch.tensor([1.0, 2.0]))


def test_dispatch_calls_the_handler_of_the_class_or_its_base() -> None:
    assert torch.trace(DIAGONAL) == torch.sum(DIAGONAL) == torch.sum(UNIT) == 3
    assert torch.trace(UNIT) == "of the subclass"
    assert torch.add(DIAGONAL, UNIT).values.tolist() == [2, 4]


def test_dispatch_without_a_handler_names_the_function_and_the_remedy() -> None:
    message = (
        r"torch.exp: Diagonal has no implementation of it; write one with @opkit.implements\(Diagonal, torch.exp\)"
    )
    with pytest.raises(TypeError, match=message):
        torch.exp(DIAGONAL)
    with pytest.raises(TypeError, match=r"torch.add: the implementation for Diagonal does not cover these arguments"):
        torch.add(DIAGONAL, torch.ones(2, 2))


def test_dispatch_leaves_an_unrelated_type_to_torch() -> None:
    for operands in ((DIAGONAL, Unrelated()), (Unrelated(), DIAGONAL), (MetadataTensor([1.0]), LoggingTensor([1.0]))):
        with pytest.raises(TypeError, match="returned NotImplemented"):
            torch.add(*operands)


def test_dispatch_of_a_type_without_a_default_declines_for_a_tensor_subclass() -> None:
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(MetadataTensor([1.0]), DIAGONAL)


def test_implements_extends_a_type_of_the_library() -> None:
    class Prices(MetadataTensor):
        """A subclass, so that the handler is not seen by other tests."""

    @implements(Prices, torch.sum, torch.Tensor.sum)
    def no_sum(input: Prices, *_: Any, **__: Any) -> Any:
        raise TypeError("prices have no sum")

    prices = Prices([1.0, 2.0], unit="$")
    assert (prices * 2).metadata["unit"] == "$"
    for call in (torch.sum, Prices.sum):
        with pytest.raises(TypeError, match="prices have no sum"):
            call(prices)


@pytest.mark.parametrize(
    ("kind", "functions", "message"),
    [
        (ScalarTensor, (), "functions must name at least one torch function"),
        (ScalarTensor, (torch.tensor,), "torch never calls __torch_function__ for tensor"),
        (ScalarTensor, (torch.Tensor.T,), "the getter of a property is torch.Tensor.T.__get__"),
        (Tensor, (torch.mean,), "got Tensor without one of its own, so the handler would never be called"),
        (torch.nn.Parameter, (torch.mean,), "got Parameter without one of its own"),
        (int, (torch.mean,), "got int without one of its own"),
        (DIAGONAL, (torch.mean,), "tensor_type must be a class"),
    ],
)
def test_implements_rejects_what_would_never_be_called(kind: Any, functions: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        implements(kind, *functions)


def test_override_coverage_lists_correct_wrong_raising_and_uncalled_functions() -> None:
    result = opkit.override_coverage(lambda x: x.as_subclass(Sine))
    assert {"torch.exp", "torch.Tensor.exp"} <= set(result.wrong)
    assert "torch.log" in result.raises
    assert "torch.Tensor.log" in result.correct
    assert len(result.not_called) > 100
    assert "raises      torch.log: Sine: log is not defined" in str(result)
    assert "wrong       torch.exp: Tensor (3, 3) torch.float32" in str(result)
    entries = json.loads(result.json())
    assert {"name": "torch.log", "status": "raises", "reason": "Sine: log is not defined"} in entries


def test_override_coverage_of_a_type_that_is_no_tensor() -> None:
    def make(x: Tensor) -> Diagonal:
        if x.dim() != 2:
            raise ValueError("expected a matrix")
        return Diagonal(x.diagonal())

    result = opkit.override_coverage(make, plain=Diagonal.dense)
    assert {"torch.trace", "torch.sum"} <= set(result.correct)
    assert "torch.exp" in result.raises
    assert "torch.Tensor.exp" in result.not_called


def test_override_coverage_of_a_wrong_constructor_says_why_nothing_was_called() -> None:
    result = opkit.override_coverage(opkit.ScalarTensor)  # it takes a size and a value
    assert not result.correct
    assert "no function was called; the most frequent reason: not for this type: " in str(result)
    assert "nan" not in str(result)

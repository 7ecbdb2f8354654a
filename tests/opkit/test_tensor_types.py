"""Tensor types by `__torch_function__`: scalar, logging and metadata tensors, alone and mixed."""

import logging
from typing import Any

import pytest
import torch
from override_coverage import coverage, same_numbers
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torchcommodity import opkit
from torchcommodity.opkit import LoggingTensor, MetadataTensor, ScalarTensor

UNWRITTEN = ("empty_like", "new_empty", "new_empty_strided", "resize_", "resize_as_", "new", "_empty_affine_quantized")
PACKED = ("fbgemm_pack_gemm_matrix_fp16",)  # as unwritten: its header has gaps
ITS_OWN = ("__reduce_ex__", "_base.__get__")  # a subclass pickles itself, and is a view of the tensor it was made of
NOT_COMPARED = tuple(f".{name}" for name in UNWRITTEN + PACKED + ITS_OWN)
TARGET = ScalarTensor(3, 0.5)
MATRIX = torch.arange(9.0).view(3, 3)
CLOSED = {
    "add": lambda s: torch.add(s, s),
    "add with alpha": lambda s: torch.add(s, s, alpha=3),
    "sub": lambda s: s - 2 * s,
    "number": lambda s: 3 * s / 2,
    "tensor number": lambda s: torch.tensor(3.0) * s,
    "matmul": lambda s: s @ s,
    "neg": lambda s: -s,
    "t": torch.t,
    "inv": torch.linalg.inv,
    "power": lambda s: torch.matrix_power(s, 3),
}
DENSE = {
    "matrix": lambda s: torch.add(MATRIX, s, alpha=2),
    "operator": lambda s: MATRIX - s,
    "scaled": lambda s: torch.matmul(s, MATRIX),
    "vector": lambda s: torch.matmul(torch.ones(3), s),
    "trace": torch.trace,
    "det": torch.det,
    "mean": torch.mean,
    "mean of rows": lambda s: torch.mean(s, 0),
    "exp": torch.exp,
    "cat": lambda s: torch.cat([s, MATRIX]),
    "eigvalsh": torch.linalg.eigvalsh,
    "product": lambda s: s * MATRIX,
    "plus number": lambda s: s + 1,
}


def written_out(f: Any) -> Tensor:
    return f(TARGET.dense())


@pytest.mark.parametrize("name", CLOSED)
def test_closed_operations_stay_scalar(name: str) -> None:
    result = CLOSED[name](TARGET)
    assert type(result) is ScalarTensor
    torch.testing.assert_close(result.dense(), written_out(CLOSED[name]))


@pytest.mark.parametrize("name", DENSE)
def test_other_operations_write_the_matrix_out(name: str) -> None:
    result = DENSE[name](TARGET)
    assert type(result) is Tensor
    torch.testing.assert_close(result, written_out(DENSE[name]))


def test_out_is_written() -> None:
    out = torch.empty(3, 3)
    assert torch.add(TARGET, MATRIX, out=out) is out
    assert torch.equal(out, TARGET.dense() + MATRIX)


def test_the_value_may_be_learned() -> None:
    value = torch.tensor(0.5, requires_grad=True)
    covariance = torch.cov(torch.randn(3, 20, generator=torch.Generator().manual_seed(0)))
    shrunk = 0.8 * covariance + 0.2 * ScalarTensor(3, value)
    (g,) = torch.autograd.grad(shrunk.logdet(), value)
    torch.testing.assert_close(g, 0.2 * shrunk.inverse().trace())


def test_bad_scalars_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="size must be >= 0; got -1"):
        ScalarTensor(-1, 1.0)
    with pytest.raises(ValueError, match=r"value must be one number; got \(2,\)"):
        ScalarTensor(2, torch.ones(2))
    with pytest.raises(ValueError, match="sizes must agree; got 3 and 2"):
        TARGET + ScalarTensor(2, 1.0)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        TARGET @ torch.ones(2, 2)


class Asked(Tensor):
    """Notes the order in which types are asked, and passes."""

    order: list[str] = []  # noqa: RUF012  # the test empties it

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Asked.order.append(cls.__name__)
        return NotImplemented


class AskedFirst(Asked):
    """A subclass is asked before its base."""


class Stranger:
    """Knows no Tensor of ours."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "stranger" if func is torch.mul else NotImplemented


def test_subclasses_are_asked_first_then_from_left_to_right() -> None:
    base, narrow = torch.ones(2).as_subclass(Asked), torch.ones(2).as_subclass(AskedFirst)
    Asked.order.clear()
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(base, narrow)
    assert Asked.order == ["AskedFirst", "Asked"]


def test_who_does_not_know_a_type_leaves_it_to_the_other() -> None:
    assert torch.mul(TARGET, Stranger()) == "stranger"
    assert torch.mul(MetadataTensor([1.0]), Stranger()) == "stranger"
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(TARGET, Stranger())


def test_scalar_and_metadata_mix() -> None:
    result = torch.add(MetadataTensor(MATRIX, unit="$"), TARGET)
    assert type(result) is MetadataTensor
    assert result.metadata["unit"] == "$"
    assert torch.equal(result.plain(), MATRIX + TARGET.dense())


def test_calls_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="torchcommodity.opkit"):
        y = torch.matmul(LoggingTensor(MATRIX), MATRIX[:, :2])
    assert type(y) is LoggingTensor
    assert [record.message.rsplit(",", 1)[0] for record in caplog.records] == ["torch.matmul: (3, 3), (3, 2) -> (3, 2)"]


def test_a_block_is_traced() -> None:
    with opkit.trace() as calls:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).relu()
    linear = next(call for call in calls if call.name.endswith("linear"))
    assert (linear.given, linear.made) == (((2, 3), (4, 3)), ((2, 4),))
    assert linear.seconds > 0
    assert "torch.Tensor.relu" in str(calls)
    before = len(calls)
    torch.ones(2).exp()
    assert len(calls) == before


def test_metadata_under_every_function() -> None:
    facts = {"unit": "$"}

    def right(got: Any, expected: Any) -> bool:
        marked = [x for x in tree_leaves(got) if isinstance(x, Tensor)]
        return all(type(x) is MetadataTensor and dict(x.metadata) == facts for x in marked) and (
            same_numbers(got, expected)
        )

    found = coverage(lambda x: MetadataTensor(x, **facts), right)
    found.wrong = [name for name in found.wrong if not name.endswith(NOT_COMPARED)]
    assert len(found.right) > 700, str(found)
    assert found.share >= 0.98, found.refused
    assert not found.wrong


def test_logging_under_every_function() -> None:
    found = coverage(LoggingTensor, same_numbers)
    found.wrong = [name for name in found.wrong if not name.endswith(NOT_COMPARED)]
    assert found.share >= 0.98, found.refused
    assert not found.wrong

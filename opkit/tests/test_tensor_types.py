"""ScalarTensor, LoggingTensor, MetadataTensor and `trace`, alone and mixed."""

import logging
import re
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import torch_opkit as opkit
from torch_opkit import LoggingTensor, MetadataTensor, ScalarTensor

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


def dense_result(f: Any) -> Tensor:
    return f(TARGET.dense())


@pytest.mark.parametrize("name", CLOSED)
def test_scalar_tensor_closed_operations(name: str) -> None:
    result = CLOSED[name](TARGET)
    assert type(result) is ScalarTensor
    torch.testing.assert_close(result.dense(), dense_result(CLOSED[name]))


@pytest.mark.parametrize("name", DENSE)
def test_scalar_tensor_dense_operations(name: str) -> None:
    result = DENSE[name](TARGET)
    assert type(result) is Tensor
    torch.testing.assert_close(result, dense_result(DENSE[name]))


def test_scalar_tensor_out_argument() -> None:
    out = torch.empty(3, 3)
    assert torch.add(TARGET, MATRIX, out=out) is out
    assert torch.equal(out, TARGET.dense() + MATRIX)


def test_scalar_tensor_value_has_a_gradient() -> None:
    value = torch.tensor(0.5, requires_grad=True)
    covariance = torch.cov(torch.randn(3, 20, generator=torch.Generator().manual_seed(0)))
    shrunk = 0.8 * covariance + 0.2 * ScalarTensor(3, value)
    (g,) = torch.autograd.grad(shrunk.logdet(), value)
    torch.testing.assert_close(g, 0.2 * shrunk.inverse().trace())


def test_scalar_tensor_rejects_bad_arguments() -> None:
    with pytest.raises(ValueError, match="size must be >= 0; got size=-1"):
        ScalarTensor(-1, 1.0)
    with pytest.raises(TypeError, match=r"ScalarTensor: size must be an int; got size=2\.5"):
        ScalarTensor(2.5, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"value must have one element; got shape \(2,\)"):
        ScalarTensor(2, torch.ones(2))
    with pytest.raises(ValueError, match="sizes must be equal; got 3 and 2"):
        TARGET + ScalarTensor(2, 1.0)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        TARGET @ torch.ones(2, 2)


class Recording(Tensor):
    """Records the order of calls to __torch_function__, and returns NotImplemented."""

    order: list[str] = []  # noqa: RUF012  # cleared by the test

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Recording.order.append(cls.__name__)
        return NotImplemented


class RecordingSubclass(Recording):
    """Called before its base class."""


class OtherType:
    """Handles `torch.mul` only."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "other" if func is torch.mul else NotImplemented


def test_torch_function_calls_subclasses_first() -> None:
    base, derived = torch.ones(2).as_subclass(Recording), torch.ones(2).as_subclass(RecordingSubclass)
    Recording.order.clear()
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(base, derived)
    assert Recording.order == ["RecordingSubclass", "Recording"]


def test_torch_function_passes_on_an_unknown_type() -> None:
    assert torch.mul(TARGET, OtherType()) == "other"
    assert torch.mul(MetadataTensor([1.0]), OtherType()) == "other"
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(TARGET, OtherType())


def test_scalar_tensor_and_metadata_tensor_mix() -> None:
    result = torch.add(MetadataTensor(MATRIX, unit="$"), TARGET)
    assert type(result) is MetadataTensor
    assert result.metadata["unit"] == "$"
    assert torch.equal(result.plain(), MATRIX + TARGET.dense())


def test_logging_tensor_logs_shapes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="torch_opkit"):
        y = torch.matmul(LoggingTensor(MATRIX), MATRIX[:, :2])
    assert type(y) is LoggingTensor
    assert [record.message.rsplit(",", 1)[0] for record in caplog.records] == ["torch.matmul: (3, 3), (3, 2) -> (3, 2)"]


@pytest.mark.slow
@pytest.mark.process
def test_logging_tensor_without_configuration_prints() -> None:
    code = "import torch, torch_opkit as opkit; print(opkit.LoggingTensor(torch.ones(2, 3)).sum(1) + 1)"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    calls = [re.sub(r", \d+ us$", "", line) for line in run.stdout.splitlines()]
    assert calls == ["torch.Tensor.sum: (2, 3) -> (2,)", "torch.Tensor.add: (2,) -> (2,)", "LoggingTensor([4., 4.])"]
    assert not run.stderr


@pytest.mark.parametrize(
    ("level", "printed", "logged"), [("NOTSET", 1, 0), ("INFO", 0, 1), ("DEBUG", 0, 1), ("WARNING", 0, 0)]
)
def test_logging_tensor_prints_or_logs_but_not_both(
    level: str, printed: int, logged: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(getattr(logging, level), logger="torch_opkit"):
        LoggingTensor(MATRIX).exp()
    assert capsys.readouterr().out.count("torch.Tensor.exp: (3, 3) -> (3, 3)") == printed
    assert len(caplog.records) == logged


def test_trace_records_calls_in_the_block() -> None:
    with opkit.trace() as calls:
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).relu()
    linear = next(call for call in calls if call.name.endswith("linear"))
    assert (linear.input_shapes, linear.output_shapes) == (((2, 3), (4, 3)), ((2, 4),))
    assert linear.seconds > 0
    assert "torch.Tensor.relu" in str(calls)
    before = len(calls)
    torch.ones(2).exp()
    assert len(calls) == before


def test_metadata_tensor_under_every_torch_function() -> None:
    metadata = {"unit": "$"}

    def is_correct(result: Any, expected: Any) -> bool:
        tensors = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        return all(type(x) is MetadataTensor and dict(x.metadata) == metadata for x in tensors) and (
            opkit.same_values(result, expected)
        )

    result = opkit.override_coverage(lambda x: MetadataTensor(x, **metadata), is_correct=is_correct)
    assert len(result.correct) > 700, str(result)
    assert result.share >= 0.98, str(result)
    assert not result.wrong, str(result)


def test_logging_tensor_under_every_torch_function() -> None:
    result = opkit.override_coverage(LoggingTensor)
    assert result.share >= 0.98, str(result)
    assert not result.wrong, str(result)


def test_scalar_tensor_under_every_torch_function() -> None:
    result = opkit.override_coverage(lambda x: ScalarTensor(x.shape[-1], x.flatten()[0]), plain=ScalarTensor.dense)
    assert len(result.correct) > 400, str(result)
    assert not result.wrong, str(result)


def test_override_coverage_refuses_what_makes_no_tensors() -> None:
    with pytest.raises(TypeError, match=r"override_coverage: make must be a function of a Tensor.*; got make='int'"):
        opkit.override_coverage(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoggingTensor("abc"), "LoggingTensor: data must be a Tensor, or numbers .*; got data='str'"),
        (lambda: MetadataTensor("abc"), "MetadataTensor: data must be a Tensor, or numbers .*; got data='str'"),
        (lambda: ScalarTensor(2, [1.0]), r"ScalarTensor: value must be a number or a Tensor .*; got value=\[1.0\]"),  # type: ignore[arg-type]
    ],
)
def test_tensor_types_refuse_data_that_are_no_numbers(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        make()

"""compile: values, graph breaks, recompilations and what cannot be compiled, for models of any make.

Most tests use Dynamo with the backend "eager": graph breaks and recompilations are the same, without a C++ compiler.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from foreign_models import BATCHES
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import models
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import benchmark_inputs, compile
from torchcommodity.training import ModelInputs

MLP = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.fixture
def eager_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, **x: original(model, **(x | {"backend": "eager"})))


class Branch(nn.Module):
    """A graph break: the branch needs a value."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y


class Counting(nn.Module):
    """Compiled again in every call: the graph depends on a number that changes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 4), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layer(x) * self.calls


class InPlace(nn.Module):
    """Writes into its argument."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2)


class Wrong(nn.Module):
    """Returns another value when it is compiled."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if torch.compiler.is_compiling() else x


def test_compile_to_the_same_model_reports_no_difference(
    forecaster: Forecaster, inputs: ModelInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    result = compile(forecaster, [benchmark_inputs(inputs, 150, 1, 21)], rounds=5)
    assert result.max_difference == 0
    assert result.compile_seconds > 0
    assert result.speedup.low <= result.speedup.ratio <= result.speedup.high
    assert "nothing was compiled" in result.notes[0]


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # of torch 2.13
def test_compile_with_inductor_compares_outputs_and_gradients() -> None:
    result = compile(MLP, [(torch.ones(3, 4), torch.ones(3, 2))], loss_fn=F.mse_loss, rounds=5)
    assert {"output", "loss", "gradient.0.weight", "gradient.2.bias"} < {row.name for row in result.differences}
    assert result.max_difference < 1e-5
    assert result.training
    assert result.model.training
    assert (result.graph_breaks, result.recompilations) == ((), ())
    assert result.compile_seconds > 0.1


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("name", BATCHES)
def test_compile_accepts_every_form_of_batch(eager_backend: None, name: str) -> None:
    make, batch, loss_fn = BATCHES[name]
    result = compile(make(), [batch], rounds=5)
    assert result.max_difference == 0
    assert result.differences
    assert any(row.name == "loss" for row in compile(make(), [batch], loss_fn=loss_fn, rounds=5).differences)


@pytest.mark.slow
@pytest.mark.compile
def test_compile_passes_backend_and_options_on() -> None:
    calls: list[dict[str, object]] = []

    def backend(graph: Any, inputs: Any, *, options: Any = None) -> Any:
        calls.append(options)
        return graph.forward

    result = compile(MLP, [torch.ones(2, 4)], backend=backend, options={"level": 2}, rounds=5)
    assert calls == [{"level": 2}]
    assert result.max_difference == 0
    with pytest.raises(
        ValueError, match=r"compile: give either a mode or options, .*; got mode='max-autotune', options="
    ):
        compile(MLP, [torch.ones(2, 4)], mode="max-autotune", options={"epilogue_fusion": True})
    with pytest.raises(ValueError, match=r"compile: options must be settings of the backend; got .*no_such"):
        compile(MLP, [torch.ones(2, 4)], options={"no_such": True})


def test_compile_counts_recompilations_by_shape(eager_backend: None) -> None:
    result = compile(MLP, [torch.ones(size, 4) for size in (2, 3, 3, 5)], dynamic=False, rounds=5)
    assert result.batches == ("float32 (2, 4)", "float32 (3, 4)", "float32 (5, 4)")
    assert [x.batch for x in result.recompilations] == ["float32 (3, 4)", "float32 (5, 4)"]
    assert "size mismatch at index 0" in result.recompilations[0].reason
    assert "2 recompilations" in str(result)
    assert json.loads(result.json())["recompilations"][1]["batch"] == "float32 (5, 4)"
    once = compile(nn.Sequential(nn.Linear(4, 2)), [torch.ones(size, 4) for size in (2, 3)], dynamic=True, rounds=5)
    assert once.recompilations == ()


@pytest.mark.slow
@pytest.mark.compile
def test_compile_names_the_line_of_a_graph_break(eager_backend: None) -> None:
    (graph_break,) = compile(Branch(), [torch.ones(3)], rounds=5).graph_breaks
    assert graph_break.location.partition("test_compile.py:")[2] == str(Branch.forward.__code__.co_firstlineno + 2)
    assert "data-dependent branching" in graph_break.reason
    assert "torch.cond" in graph_break.fix


@pytest.mark.slow
@pytest.mark.compile
def test_compile_notices_a_model_that_is_compiled_again_in_every_call(eager_backend: None) -> None:
    result = compile(Counting(), [torch.ones(2, 4)], rounds=5)
    assert all(x.batch == "the timed calls" for x in result.recompilations)
    assert "self.calls ==" in result.recompilations[0].reason
    assert "outputs are random or change from call to call" in str(result)


@pytest.mark.slow
@pytest.mark.compile
def test_compile_reports_a_difference(eager_backend: None) -> None:
    (row,) = compile(Wrong(), [torch.full((3,), 4.0)], rounds=5).differences
    assert row == ("output", 1.0, 0.25)


@pytest.mark.slow
@pytest.mark.compile
def test_compile_of_a_model_that_writes_into_its_batch_compares_copies(eager_backend: None) -> None:
    x = torch.ones(3)
    result = compile(InPlace(), [x], rounds=5)
    assert torch.equal(x, torch.ones(3))
    assert result.max_difference == 0
    assert "the model writes into its batch" in result.notes[-1]


@pytest.mark.slow
@pytest.mark.compile
def test_compile_does_not_compare_random_outputs(eager_backend: None) -> None:
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout())
    result = compile(model, [torch.ones(3, 4)], loss_fn=torch.mean, rounds=5)
    assert result.differences == ()
    assert any("outputs are random" in note for note in result.notes)


@pytest.mark.slow
@pytest.mark.compile
def test_compile_that_fails_says_why_and_where(eager_backend: None) -> None:
    compile(Branch(), [torch.ones(3)], rounds=5)  # its code is not reused
    with pytest.raises(RuntimeError) as error:
        compile(Branch(), [torch.ones(3)], fullgraph=True, rounds=5)
    line = Branch.forward.__code__.co_firstlineno + 2
    assert str(error.value).startswith("compile: Branch cannot be compiled: data-dependent branching")
    assert f"test_compile.py:{line}" in str(error.value)
    assert "\n" not in str(error.value)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mode": (lambda: compile(MLP, [torch.ones(2, 4)], mode="fast"), ValueError, "mode must be one of default, reduce"),
    "rounds": (lambda: compile(MLP, [torch.ones(2, 4)], rounds=4), ValueError, "rounds must be >= 5"),
    "empty": (lambda: compile(MLP, []), ValueError, "batches must hold at least one batch"),
    "shapes": (lambda: compile(MLP, [torch.ones(2, 3)]), ValueError, r"does not run on float32 \(2, 3\): mat1"),
    "tensor": (lambda: compile(MLP, torch.ones(2, 4)), TypeError, "batches must be an iterable of batches"),
    "function": (lambda: compile(torch.relu, [torch.ones(2)]), TypeError, "model must be an nn.Module"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_compile_refuses_in_words(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=f"^compile: .*{message}"):
        call()


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("name", ["har-garch", "har-attention", "garch-lstm"])
def test_compile_of_a_model_of_the_library(eager_backend: None, name: str, inputs: ModelInputs) -> None:
    config = models.model_config(name, {"har": {"horizons": (5, 21), "warmup": 63}})
    result = compile(models.build_model(config, 2), [benchmark_inputs(inputs, 150, 1, 21)], rounds=5, fullgraph=True)
    assert result.max_difference == 0
    assert result.graph_breaks == ()

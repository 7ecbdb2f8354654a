"""profile: stages, operators, memory, files, and what is refused, for models of any make."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from foreign_models import BATCHES, Encoder, SmallResNet
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from torchcommodity import models
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import benchmark_inputs, profile
from torchcommodity.training import ModelInputs

MLP = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
ROWS = [(torch.ones(16, 4), torch.ones(16, 2))]


def test_profile_of_a_forecaster_has_its_stages(forecaster: Forecaster, inputs: ModelInputs, tmp_path: Path) -> None:
    batches = [benchmark_inputs(inputs, 200, 1, 21)]
    result = profile(forecaster, batches, steps=2, trace=tmp_path / "trace.json", stacks=tmp_path / "stacks.txt")
    assert {"econometric part", "network", "quantiles"} < result.stages.keys()
    assert sum(result.stages.values()) == pytest.approx(1)
    assert all(share > 0 for share in result.stages.values())
    assert any(cost.name == "commodity::lstm" and "[2, 200, 9]" in cost.shapes for cost in result.operators)
    assert (result.threads, result.steps, result.training) == (1, 2, False)
    assert result.peak_bytes > 200 * 2 * 8
    assert sum(cost.share for cost in result.operators) == pytest.approx(1)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    stack, _, time = (tmp_path / "stacks.txt").read_text().splitlines()[0].rpartition(" ")
    assert ";" in stack
    assert int(time) > 0


def test_profile_of_a_training_step_has_layers_backward_optimizer_and_data_loader() -> None:
    model = SmallResNet()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    loader = DataLoader(TensorDataset(torch.rand(12, 3, 8, 8), torch.zeros(12, dtype=torch.long)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    result = profile(model.eval(), loader, loss_fn=F.cross_entropy, optimizer=optimizer, steps=4, warmup=1)
    stages = ["data loader", "stem", "blocks.0", "blocks.1", "head", "rest of forward", "loss", "backward"]
    assert list(result.stages) == [*stages, "optimizer step", "other"]
    convolution = next(cost for cost in result.operators if cost.name == "aten::convolution_backward")
    assert "foreign_models.py" in convolution.location
    assert convolution.bytes > 0
    assert not any("torchcommodity/optimize" in cost.location for cost in result.operators)
    assert "4 training steps on cpu" in str(result)
    assert json.loads(result.json())["largest"] == list(result.largest)
    assert len(result.largest) == 3
    assert all("To reduce it: " in text for text in result.largest)
    # nothing is changed
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert not model.training
    assert not optimizer.state_dict()["state"]
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("name", BATCHES)
def test_profile_accepts_every_form_of_batch(name: str) -> None:
    make, batch, loss_fn = BATCHES[name]
    assert profile(make(), [batch], steps=1, stacks=False).steps == 1
    assert "backward" in profile(make(), [batch], loss_fn=loss_fn, steps=1, stacks=False).stages


def test_profile_sorts_by_memory() -> None:
    result = profile(Encoder(), [BATCHES["mapping"][1]], steps=1)
    ranked = [cost.bytes for cost in result.ranked("memory")]
    assert ranked == sorted(ranked, reverse=True)
    assert ranked[0] > 0
    assert "encoder" in str(result)


def test_profile_of_an_iterator_that_ends_says_how_many_steps_were_measured() -> None:
    result = profile(MLP, iter(ROWS * 4), steps=5, warmup=2, stacks=False)
    assert result.steps == 2
    assert result.notes == ("the iterator of batches ended: 2 of 5 steps were measured",)
    with pytest.raises(ValueError, match=r"batches must hold more than the 2 of wait and warmup; .* got batches=2"):
        profile(MLP, iter(ROWS * 2), stacks=False)


def test_profile_says_that_the_model_writes_into_its_batch() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2))
    (note,) = profile(model, [torch.ones(3, 4)], steps=1, stacks=False).notes
    assert "the step writes into its batch (batch)" in note
    (note,) = profile(MLP, ROWS, steps=1, warmup=0, stacks=False).notes
    assert "no warm-up" in note


def endless() -> Iterator[Tensor]:
    while True:
        yield torch.ones(2, 3)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "empty": (lambda: profile(MLP, []), ValueError, "batches must hold at least one batch"),
    "one tensor": (lambda: profile(MLP, torch.ones(3, 4)), TypeError, r"such as a DataLoader or \[batch\]"),
    "one tuple": (lambda: profile(MLP, ROWS[0]), TypeError, "batches must be an iterable of batches"),
    "shapes": (
        lambda: profile(MLP, endless()),
        ValueError,
        r"the model does not run on float32 \(2, 3\): mat1 and mat2 shapes cannot be multiplied",
    ),
    "loss": (
        lambda: profile(MLP, [(torch.ones(3, 4), torch.ones(5, 2))], loss_fn=F.l1_loss),
        ValueError,
        r"loss_fn does not run on the output float32 \(3, 2\) and target float32 \(5, 2\)",
    ),
    "loss of shape": (lambda: profile(MLP, [torch.ones(3, 4)], loss_fn=torch.abs), ValueError, "a scalar Tensor"),
    "no gradient": (
        lambda: profile(MLP, [torch.ones(3, 4)], loss_fn=lambda y: y.detach().sum()),
        ValueError,
        "opkit.diagnose",
    ),
    "function": (lambda: profile(torch.relu, ROWS), TypeError, "model must be an nn.Module or a Forecaster; got"),
    "class": (lambda: profile(nn.Linear, ROWS), TypeError, "model must be an nn.Module or a Forecaster; got"),
    "steps": (lambda: profile(MLP, ROWS, steps=0), ValueError, "steps must be >= 1; got steps=0"),
    "optimizer": (
        lambda: profile(MLP, ROWS, optimizer=torch.optim.SGD(MLP.parameters())),
        ValueError,
        "an optimizer needs a loss_fn",
    ),
    "other optimizer": (
        lambda: profile(MLP, ROWS, loss_fn=F.l1_loss, optimizer=torch.optim.SGD(nn.Linear(2, 2).parameters())),
        ValueError,
        "the optimizer must have parameters of the model",
    ),
    "folder": (lambda: profile(MLP, ROWS, trace="no/such/trace.json"), ValueError, "folder of trace and stacks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_profile_refuses_in_words(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=f"^profile: .*{message}"):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("name", models.MODELS)
def test_profile_of_every_model_of_the_library(name: str, inputs: ModelInputs) -> None:
    config = models.model_config(name, {"har": {"horizons": (5, 21), "warmup": 63}})
    result = profile(
        models.build_model(config, 2), [benchmark_inputs(inputs, 150, 1, 21)], steps=1, warmup=1, stacks=False
    )
    assert result.stages["econometric part"] > 0
    assert ("network" in result.stages) == (name != "har-garch")


def test_profile_table_refuses_an_unknown_order() -> None:
    result = profile(torch.nn.Linear(2, 2), [torch.rand(3, 2)], steps=2)
    with pytest.raises(ValueError, match=r"Profile.table: sort must be 'time' or 'memory'; got sort='cpu_time_total'"):
        result.table("cpu_time_total")  # type: ignore[arg-type]

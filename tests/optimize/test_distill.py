"""Distillation."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster, fit
from torchcommodity.models import HarLstmConfig, build_model
from torchcommodity.optimize import distill, model_size
from torchcommodity.training import FitConfig, ModelInputs, TrainConfig, from_toml, to_toml


def with_network(forecaster: Forecaster, hidden: int) -> Forecaster:
    """The forecaster with a network of other size, which corrects nothing yet."""
    config = HarLstmConfig(forecaster.model.har.config, hidden=hidden)
    model = build_model(config, 2, seed=0)
    model.har.load_state_dict(forecaster.model.har.state_dict())
    settings = replace(from_toml(forecaster.record.settings), model=config)
    return replace(forecaster, model=model.eval(), record=replace(forecaster.record, settings=to_toml(settings)))


@pytest.mark.slow
def test_distill_brings_the_student_closer_to_the_teacher_than_the_baseline(
    forecaster: Forecaster, inputs: ModelInputs, tmp_path: Path
) -> None:
    before = with_network(forecaster, 3)
    result = distill(forecaster, before, inputs, weight=1.0, epochs=6, learning_rate=0.03)
    student = result.model
    assert result.improved
    assert result.validated
    assert min(result.distances) < 0.9 * result.distances[0]
    assert model_size(student).parameters < model_size(forecaster).parameters
    for name, x in before.model.har.state_dict().items():  # the econometric part
        assert torch.equal(student.model.har.state_dict()[name].nan_to_num(), x.nan_to_num())
    assert student.record.note.endswith(f"distilled from HarLstm, epoch {result.epoch} of 6")
    student.save(tmp_path / "student.safetensors")
    assert Forecaster.load(tmp_path / "student.safetensors").model.config == student.model.config


def test_distill_rejects_other_forecasts_and_weight_out_of_range(
    forecaster: Forecaster, inputs: ModelInputs, panel: Panel
) -> None:
    har = replace(forecaster.model.har.config, horizons=(5, 42))
    other = fit(panel, FitConfig(HarLstmConfig(har, hidden=3), TrainConfig(epochs=0)))
    with pytest.raises(ValueError, match=r"distill: the student must have the horizons of the teacher, \(5, 21\); got"):
        distill(forecaster, other, inputs)
    with pytest.raises(ValueError, match=r"distill: weight must be in \[0, 1\]; got weight=2"):
        distill(forecaster, forecaster, inputs, weight=2)
    with pytest.raises(ValueError, match=r"distill: inputs must have rows for windows of training and, a longest"):
        distill(forecaster, forecaster, inputs.before(63 + 252 + 30))


def small_student() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3))


def wide_teacher() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.5), nn.Tanh(), nn.Linear(32, 3))


BATCHES = [(x, x.sum(-1)) for x in torch.randn(6, 16, 6, generator=torch.Generator().manual_seed(0))]
CLASSES = [(x, (y > 0).long()) for x, y in BATCHES]


@pytest.mark.parametrize(
    ("batches", "settings"),
    [
        (BATCHES, {"loss": "quantile", "levels": (0.1, 0.5, 0.9)}),
        (CLASSES, {"loss": "temperature", "temperature": 4.0}),
        ([x for x, _ in BATCHES], {"loss": "temperature"}),  # no targets
        (BATCHES, {"loss": lambda student, teacher, target: (student - teacher).square().mean()}),
    ],
    ids=["quantile", "temperature", "no targets", "callable"],
)
def test_distill_brings_any_student_closer_to_any_teacher(batches: Any, settings: Any) -> None:
    teacher, student = wide_teacher(), small_student()
    before = copy.deepcopy(student.state_dict())
    result = distill(
        teacher, student, batches[:4], validation=batches[4:], weight=0.8, epochs=8, learning_rate=0.02, **settings
    )
    assert result.improved
    assert result.validated
    assert result.distances[result.epoch] < 0.8 * result.distances[0]
    assert len(result.losses) == 8
    assert teacher.training
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(torch.equal(x, before[name]) for name, x in student.state_dict().items())
    assert not result.model.training


def test_distill_temperature_loss_equals_hintons_formula() -> None:
    teacher, student, (x, y) = wide_teacher().eval(), small_student(), CLASSES[0]
    settings: Any = {"epochs": 1, "loss": "temperature", "temperature": 3.0, "weight": 0.25}
    result = distill(teacher, student, [(x, y)], **settings)
    p, q = (teacher(x) / 3).softmax(-1), (student(x) / 3).softmax(-1)
    soft = 9 * (p * (p / q).log()).sum(-1).mean()
    expected = 0.25 * soft + 0.75 * nn.functional.cross_entropy(student(x), y)
    assert result.losses[0] == pytest.approx(expected.item(), rel=1e-5)
    assert result.distances[0] == pytest.approx(soft.item(), rel=1e-5)


def test_distill_returns_and_reports_a_student_that_did_not_improve() -> None:
    teacher = wide_teacher()
    twin = copy.deepcopy(teacher)
    settings: Any = {"loss": lambda student, teacher, target: (student - teacher).square().mean()}
    result = distill(teacher, twin, BATCHES, epochs=2, learning_rate=1.0, **settings)
    assert not result.improved
    assert "none of 2 epochs came closer to the teacher on the training batches" in str(result)
    assert all(torch.equal(x, twin.state_dict()[name]) for name, x in result.model.state_dict().items())


@pytest.mark.parametrize("argument", ["batches", "validation"])
def test_distill_names_the_batch_whose_loss_is_not_finite(argument: str) -> None:
    x, y = CLASSES[0]
    damaged = [*CLASSES[:2], (torch.full_like(x, torch.nan), y), *CLASSES[2:]]
    batches = {"batches": CLASSES} | {argument: damaged}
    with pytest.raises(
        ValueError, match=rf"^distill: the loss must be finite; check the batch {argument}\[2\] for NaN"
    ):
        distill(wide_teacher(), small_student(), loss="temperature", **batches)


def test_distill_rejects_other_shapes_nan_and_mixed_arguments(forecaster: Forecaster, inputs: ModelInputs) -> None:
    teacher, student = wide_teacher(), small_student()
    with pytest.raises(ValueError, match=r"distill: student and teacher must return the same shape; adapt"):
        distill(teacher, nn.Linear(6, 2), CLASSES, loss="temperature")
    with pytest.raises(ValueError, match="distill: the loss must be finite; check the"):
        distill(teacher, student, [(torch.full((2, 6), torch.nan), torch.zeros(2).long())], loss="temperature")
    with pytest.raises(ValueError, match='distill: loss="quantile" needs levels'):
        distill(teacher, student, BATCHES)
    with pytest.raises(TypeError, match=r"distill: batches must be readable once per epoch; pass a list"):
        distill(teacher, student, iter(CLASSES), loss="temperature")
    with pytest.raises(TypeError, match=r"distill: batches of prices \(ModelInputs\) need a Forecaster"):
        distill(teacher, student, inputs)
    config: Any = HarLstmConfig(forecaster.model.har.config)
    with pytest.raises(
        TypeError, match=r"distill: model must be an nn\.Module or a Forecaster; got model='HarLstmConfig'"
    ):
        distill(forecaster, config, inputs)


def test_distill_names_outputs_and_targets_that_a_loss_cannot_take() -> None:
    pixels = [(torch.randn(2, 3, 4, 4), torch.randint(5, (2, 4, 4)))]
    with pytest.raises(ValueError, match=r"distill: the target must be classes \(\.\.\.\) or probabilities"):
        distill(nn.Conv2d(3, 5, 1), nn.Conv2d(3, 5, 1), pixels, loss="temperature")
    with pytest.raises(
        TypeError, match=r'distill: loss="quantile" needs models that return a Tensor or \.logits; for others pass'
    ):
        distill(nn.LSTM(3, 1), nn.LSTM(3, 1), [torch.randn(2, 4, 3)], levels=[0.5])
    with pytest.raises(ValueError, match=r"distill: loss\(student_output, .* and target int64 \(2, 4, 4\): .* 2 pos"):
        distill(nn.Conv2d(3, 5, 1), nn.Conv2d(3, 5, 1), pixels, loss=lambda student, teacher: student.mean())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            100 * torch.randn(32, 3),
            r"a target \(\.\.\., C\) must hold probabilities, >= 0 with the sum 1; for regression",
        ),
        (torch.full((32, 3), torch.nan), r"must hold probabilities"),
        (torch.ones(32, 3, dtype=torch.long), r"must hold probabilities"),
        (torch.full((32,), 3), r"must hold classes, integers in \[0, 2\], or -100 for none"),
        (torch.rand(32), r"must hold classes, integers in \[0, 2\], or -100 for none; got dtype=torch\.float32"),
    ],
    ids=["regression", "missing", "one-hot of integers", "class out of range", "regression of one"],
)
def test_distill_by_temperature_refuses_targets_that_are_no_classes(target: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=f"^distill: .*{message}"):
        distill(nn.Linear(4, 3), nn.Linear(4, 3), [(torch.randn(32, 4), target)], loss="temperature", epochs=1)


@pytest.mark.parametrize(
    "target",
    [torch.randint(3, (32,)), torch.full((32,), -100).scatter(0, torch.tensor([1]), 2), torch.rand(32, 3).softmax(-1)],
)
def test_distill_by_temperature_takes_classes_and_probabilities(target: Tensor) -> None:
    batches = [(torch.randn(32, 4), target)]
    assert distill(nn.Linear(4, 3), nn.Linear(4, 3), batches, loss="temperature", epochs=1).losses[0] > 0

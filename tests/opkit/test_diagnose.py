"""`opkit.diagnose`: the kind and line of each fault, and no errors in correct models."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import broken_models as broken
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import opkit

MakeCase = Callable[[], tuple[nn.Module, Any, Callable[..., Any]]]
mse = F.mse_loss


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(16, 3, generator=generator), torch.randn(16, 1, generator=generator)


def fault_location(source: Any) -> str:
    """File and line of the `# fault` comment; empty without one."""
    if source is broken.DetachedInFunction:
        source = broken._activate_detached
    lines, first = inspect.getsourcelines(source)
    numbers = [first + i for i, line in enumerate(lines) if "# fault" in line]
    return f"{inspect.getsourcefile(source)}:{numbers[0]}" if numbers else ""


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "model"), broken.BROKEN, ids=lambda x: getattr(x, "__name__", x))
def test_diagnose_finds_the_fault_and_its_line(kind: str, model: type[nn.Module]) -> None:
    torch.manual_seed(0)
    diagnosis = opkit.diagnose(model(), batch(), mse)
    assert {finding.kind for finding in diagnosis.errors} == {kind}, str(diagnosis)
    if fault_location(model):
        assert diagnosis[0].location == fault_location(model), str(diagnosis)
    assert diagnosis[0].fix


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "loss"), broken.LOSSES, ids=lambda x: getattr(x, "__name__", x))
def test_diagnose_finds_a_fault_of_the_loss(kind: str, loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    diagnosis = opkit.diagnose(broken.TwoLayers(), batch(), loss)
    assert {finding.kind for finding in diagnosis.errors} == {kind}, str(diagnosis)
    assert not fault_location(loss) or diagnosis[0].location == fault_location(loss)


def images() -> Tensor:
    return torch.randn(16, 3, 16, 16)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x)).relu_()
        return self.head((x + self.body(x)).mean((-1, -2)))


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.cell, self.head = kind(3, 8, num_layers=2, dropout=0.1, batch_first=True), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 20)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(7))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.embedding(tokens), mask=self.mask)).transpose(1, 2)


class Logged(broken.TwoLayers):
    """Detaches for a log, clones, views and indexes, none of which is an error."""

    def activate(self, x: Tensor) -> Tensor:
        self.logged = x.detach().mean().item()
        y = x.clone().view(-1, 2, 4)
        y[:, 0] = y[:, 0].tanh()
        return y.flatten(1) * (x > 0)


class StopGradient(broken.TwoLayers):
    """A stop-gradient on one of two paths."""

    def activate(self, x: Tensor) -> Tensor:
        return x / x.detach().abs().amax(-1, keepdim=True)


class StraightThrough(broken.TwoLayers):
    """Rounds, with a straight-through gradient."""

    def activate(self, x: Tensor) -> Tensor:
        return x + (x.round() - x).detach()


class TiedWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.output = nn.Linear(3, 3, bias=False), nn.Linear(3, 1)
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.hidden.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.tied(self.hidden(x).tanh()))


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.settings, self.sizes = {"rate": 0.1}, [1, 2, 3]
        self.levels = torch.linspace(0.05, 0.95, 19)
        self.head = nn.Linear(3, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.gelu(layer(x)) + y * self.levels[0]
        return self.head(x)


def forecaster() -> tuple[nn.Module, Any, Callable[..., Any]]:
    from torchcommodity.losses import pinball
    from torchcommodity.models import HarConfig, HarLstm, HarLstmConfig

    config = HarLstmConfig(HarConfig(warmup=50))
    prices = 50 * torch.exp(0.02 * torch.randn(4, 300, 3).cumsum(1))
    levels = torch.tensor(config.har.levels)
    return HarLstm(3, config), (prices, torch.randn(4, 4, 3) * 0.05), lambda q, y: pinball(q, y, levels)


def classify(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target)


CORRECT: dict[str, MakeCase] = {
    "two layers": lambda: (broken.TwoLayers(), batch(), mse),
    "linear": lambda: (nn.Linear(3, 1), batch(), mse),
    "relu network": lambda: (nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1)), batch(), mse),
    "sigmoid network": lambda: (nn.Sequential(nn.Linear(3, 8), nn.Sigmoid(), nn.Linear(8, 1)), batch(), mse),
    "deep tanh": lambda: (
        nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(3, 3), nn.Tanh())], nn.Linear(3, 1)), batch(), mse,
    ),
    "dropout": lambda: (nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)), batch(), mse),
    "batch norm": lambda: (nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)), batch(), mse),
    "layer norm": lambda: (nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 1)), batch(), mse),
    "residual network": lambda: (Residual(), (images(), torch.randint(5, (16,))), classify),
    "plain convolutions": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 5)),
        (images(), torch.randint(5, (16,))), classify,
    ),
    "lstm": lambda: (Recurrent(nn.LSTM), (torch.randn(8, 12, 3), torch.randn(8, 1)), mse),
    "gru": lambda: (Recurrent(nn.GRU), (torch.randn(8, 12, 3), torch.randn(8, 1)), mse),
    "transformer": lambda: (Language(), (torch.randint(20, (8, 7)), torch.randint(20, (8, 7))), classify),
    "attention with weights": lambda: (
        nn.MultiheadAttention(8, 2, batch_first=True),
        ((torch.randn(4, 5, 8),) * 3, torch.randn(4, 5, 8)), lambda output, target: mse(output[0], target),
    ),
    "autoencoder": lambda: (
        nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 3)), batch()[0], lambda y: (y - 1).square().mean(),
    ),
    "logged": lambda: (Logged(), batch(), mse),
    "stop-gradient": lambda: (StopGradient(), batch(), mse),
    "straight-through": lambda: (StraightThrough(), batch(), mse),
    "tied weights": lambda: (TiedWeights(), batch(), mse),
    "two inputs": lambda: (TwoInputs(), ((batch()[0], batch()[0]), batch()[1]), mse),
    "small batch": lambda: (broken.TwoLayers(), (torch.ones(1, 3), torch.zeros(1, 1)), mse),
    "forecaster": forecaster,
}  # fmt: skip


@pytest.mark.parametrize("name", CORRECT)
def test_diagnose_finds_no_errors_in_a_correct_model(name: str) -> None:
    torch.manual_seed(0)
    model, inputs, loss = CORRECT[name]()
    diagnosis = opkit.diagnose(model, inputs, loss)
    assert diagnosis.ok, str(diagnosis)
    assert str(diagnosis).startswith("ok: ")


def test_diagnose_leaves_the_model_unchanged() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    opkit.diagnose(model, batch(), mse)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in model.modules())


def test_diagnose_notes_some_frozen_layers() -> None:
    model = broken.TwoLayers()
    model.first.requires_grad_(False)
    diagnosis = opkit.diagnose(model, batch(), mse)
    assert diagnosis.ok
    assert [(finding.kind, finding.severity) for finding in diagnosis] == [("frozen", "note")]


def test_diagnose_notes_a_layer_with_zero_gradients() -> None:
    model = broken.TwoLayers()
    torch.nn.init.zeros_(model.last.weight)  # the layer before a head initialized to zero learns from step two on
    (note,) = opkit.diagnose(model, batch(), mse)
    assert (note.kind, note.severity, note.names) == ("zero_gradient", "note", ("first.weight", "first.bias"))


def test_diagnosis_prints_text_and_json() -> None:
    diagnosis = opkit.diagnose(broken.Detached(), batch(), mse)
    assert "error: detach" in str(diagnosis)
    assert "first.weight, first.bias" in str(diagnosis)
    content = json.loads(diagnosis.json())
    assert (content["ok"], content["findings"][0]["kind"]) == (False, "detach")

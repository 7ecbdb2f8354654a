"""The gradient doctor: each fault is found by its name and on its line, and the healthy are left alone."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import broken_models as sick
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import opkit

Maker = Callable[[], tuple[nn.Module, Any, Callable[..., Any]]]
mse = F.mse_loss


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(16, 3, generator=generator), torch.randn(16, 1, generator=generator)


def marked(thing: Any) -> str:
    """Where the source of this thing says `# here`; nothing if it does not."""
    if thing is sick.Detour:
        thing = sick._cleaned
    lines, first = inspect.getsourcelines(thing)
    return next((f"{inspect.getsourcefile(thing)}:{first + i}" for i, line in enumerate(lines) if "# here" in line), "")


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "model"), sick.FAULTS, ids=lambda x: getattr(x, "__name__", x))
def test_a_fault_is_found_alone_and_on_its_line(kind: str, model: type[nn.Module]) -> None:
    torch.manual_seed(0)
    found = opkit.diagnose(model(), batch(), mse)
    assert {finding.kind for finding in found.faults} == {kind}, str(found)
    if marked(model):
        assert found[0].where == marked(model), str(found)
    assert found[0].remedy


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(("kind", "loss"), sick.LOSSES, ids=lambda x: getattr(x, "__name__", x))
def test_a_fault_of_the_loss_is_found(kind: str, loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    found = opkit.diagnose(sick.Two(), batch(), loss)
    assert {finding.kind for finding in found.faults} == {kind}, str(found)
    assert not marked(loss) or found[0].where == marked(loss)


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


class Logged(sick.Two):
    """What is detached for a log is no fault, nor is a clone, a view or an index."""

    def between(self, x: Tensor) -> Tensor:
        self.seen = x.detach().mean().item()
        y = x.clone().view(-1, 2, 4)
        y[:, 0] = y[:, 0].tanh()
        return y.flatten(1) * (x > 0)


class Target(sick.Two):
    """A stop-gradient on one of two ways."""

    def between(self, x: Tensor) -> Tensor:
        return x / x.detach().abs().amax(-1, keepdim=True)


class Straight(sick.Two):
    """A straight-through estimate rounds, and yet learns."""

    def between(self, x: Tensor) -> Tensor:
        return x + (x.round() - x).detach()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside, self.outside = nn.Linear(3, 3, bias=False), nn.Linear(3, 1)
        self.again = nn.Linear(3, 3, bias=False)
        self.again.weight = self.inside.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.outside(self.again(self.inside(x).tanh()))


class Holder(nn.Module):
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


HEALTHY: dict[str, Maker] = {
    "two layers": lambda: (sick.Two(), batch(), mse),
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
    "stop-gradient": lambda: (Target(), batch(), mse),
    "straight-through": lambda: (Straight(), batch(), mse),
    "tied weights": lambda: (Tied(), batch(), mse),
    "two inputs": lambda: (Holder(), ((batch()[0], batch()[0]), batch()[1]), mse),
    "small batch": lambda: (sick.Two(), (torch.ones(1, 3), torch.zeros(1, 1)), mse),
    "our forecaster": forecaster,
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_the_healthy_are_left_alone(name: str) -> None:
    torch.manual_seed(0)
    model, given, loss = HEALTHY[name]()
    found = opkit.diagnose(model, given, loss)
    assert found.healthy, str(found)
    assert str(found).startswith("healthy")


def test_nothing_of_the_model_changes() -> None:
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


def test_frozen_layers_beside_others_are_a_note() -> None:
    model = sick.Two()
    model.first.requires_grad_(False)
    found = opkit.diagnose(model, batch(), mse)
    assert found.healthy
    assert [(finding.kind, finding.severity) for finding in found] == [("frozen", "note")]


def test_layers_without_any_gradient_are_a_note() -> None:
    model = sick.Two()
    torch.nn.init.zeros_(model.last.weight)  # a head that begins at zero: the layer before it waits a step
    (note,) = opkit.diagnose(model, batch(), mse)
    assert (note.kind, note.severity, note.what) == ("zero_gradient", "note", ("first.weight", "first.bias"))


def test_a_diagnosis_reads_as_text_and_as_json() -> None:
    found = opkit.diagnose(sick.Detached(), batch(), mse)
    assert "fault: detach" in str(found)
    assert "first.weight, first.bias" in str(found)
    data = json.loads(found.json())
    assert (data["healthy"], data["findings"][0]["kind"]) == (False, "detach")

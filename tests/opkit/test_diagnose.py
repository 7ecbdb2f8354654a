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
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

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
    if source is broken.UsesZeroBackward:
        source = broken.ZeroBackward
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


class AnyInputs(nn.Module):
    def __init__(self, loss: bool = False) -> None:
        super().__init__()
        self.layer, self.loss = nn.Linear(3, 1), loss

    def forward(self, *args: Tensor) -> Tensor:
        first, second = args
        output: Tensor = self.layer(first + second)
        return output.square().mean() if self.loss else output


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


class Experts(nn.Module):
    """Each sample goes to one of many experts, so a few samples leave some experts without a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(3, 24), nn.ModuleList(nn.Linear(3, 1) for _ in range(24))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).max(-1, keepdim=True)
        outputs = [(chosen == i) * weights * expert(x) for i, expert in enumerate(self.experts)]
        return torch.stack(outputs).sum(0)


class Heads(nn.Module):
    """Two heads, of which a batch uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.heads = nn.Linear(3, 8), nn.ModuleDict({"oil": nn.Linear(8, 1), "gas": nn.Linear(8, 1)})

    def forward(self, x: Tensor) -> Tensor:
        return self.heads["oil"](self.body(x).tanh())


class LowRank(nn.Module):
    """An adapter whose second factor starts at zero: the first has no gradient in the first step."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.down, self.up = nn.Linear(3, 1), nn.Linear(3, 2, bias=False), nn.Linear(2, 1, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


class Clipped(broken.TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        for parameter in self.parameters():
            parameter.data.clamp_(-0.1, 0.1)
        return x.tanh()


class Checkpointed(broken.TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return checkpoint(torch.tanh, x, use_reentrant=False)


class Stateful(broken.TwoLayers):
    """Keeps its state without the graph, and a log."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Tensor | None = None
        self.log: list[float] = []

    def activate(self, x: Tensor) -> Tensor:
        state = x.tanh() if self.state is None else (x + self.state).tanh()
        self.state = state.detach()
        self.log.append(state.mean().item())
        return state


class WithLoss(broken.TwoLayers):
    """Returns its loss beside its output, from keyword arguments."""

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        output = super().forward(x)
        return {"loss": mse(output, labels), "output": output}


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
    "sparse embedding": lambda: (
        nn.Sequential(nn.Embedding(20, 3, sparse=True), nn.Linear(3, 1)), (torch.randint(20, (8,)), torch.randn(8, 1)),
        mse,
    ),
    "experts": lambda: (Experts(), batch(), mse),
    "one head of two": lambda: (Heads(), batch(), mse),
    "low-rank adapter": lambda: (LowRank(), batch(), mse),
    "clipped weights": lambda: (Clipped(), batch(), mse),
    "checkpoint": lambda: (Checkpointed(), batch(), mse),
    "stateful": lambda: (Stateful(), batch(), mse),
    "lazy": lambda: (nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.LazyLinear(1)), batch(), mse),
    "sum of losses": lambda: (broken.TwoLayers(), batch(), broken.sum_loss),
    "complex": lambda: (nn.Linear(3, 3, dtype=torch.cfloat), batch()[0].to(torch.cfloat), lambda y: y.abs().mean()),
    "forecaster": forecaster,
}  # fmt: skip


@pytest.mark.parametrize("name", CORRECT)
def test_diagnose_finds_no_errors_in_a_correct_model(name: str) -> None:
    torch.manual_seed(0)
    model, inputs, loss = CORRECT[name]()
    diagnosis = opkit.diagnose(model, inputs, loss)
    assert diagnosis.ok, str(diagnosis)
    assert str(diagnosis).startswith("ok: ")


def loss_of_model(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return mse(model(x), y)


def signatures() -> dict[str, MakeCase]:
    model, (x, y) = broken.TwoLayers(), batch()
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    closure: Any = lambda: mse(model(x), y)  # noqa: E731
    return {
        "output and target": lambda: (model, [x, y], mse),
        "output": lambda: (model, x, lambda output: output.square().mean()),
        "output of a pair": lambda: (model, (x, y), lambda output: output.square().mean()),
        "model and batch": lambda: (model, (x, y), lambda model, batch: mse(model(batch[0]), batch[1])),
        "model, inputs and target": lambda: (model, (x, y), loss_of_model),
        "batch": lambda: (model, {"x": x, "y": y}, lambda batch: mse(model(batch["x"]), batch["y"])),
        "nothing": lambda: (model, None, closure),
        "keywords": lambda: (model, (x, y), lambda *, output, target: mse(output, target)),
        "inputs by name": lambda: (model, ({"x": x}, y), mse),
        "data loader": lambda: (model, loader, nn.MSELoss()),
        "iterator": lambda: (model, iter(loader), mse),
        "no loss function": lambda: (WithLoss(), {"x": x, "labels": y}, None),  # type: ignore[return-value]
        "no loss function, arguments": lambda: (WithLoss(), (x, y), None),  # type: ignore[return-value]
        "two inputs": lambda: (TwoInputs(), (x, x, y), mse),
        "any inputs": lambda: (AnyInputs(), (x, x), lambda output: output.square().mean()),
        "any inputs and a target": lambda: (AnyInputs(), (x, x, y), mse),
        "any inputs, no loss function": lambda: (AnyInputs(loss=True), (x, x), None),  # type: ignore[return-value]
        "a wrapper": lambda: (nn.DataParallel(model), (x, y), lambda output: output.square().mean()),
    }


@pytest.mark.parametrize("name", signatures())
def test_diagnose_takes_losses_of_any_signature(name: str) -> None:
    diagnosis = opkit.diagnose(*signatures()[name]())
    assert diagnosis.ok, str(diagnosis)


def test_diagnose_refuses_a_batch_that_does_not_fit_the_loss() -> None:
    with pytest.raises(ValueError, match=r"loss_fn takes \(output, target, weight\), but the batch has 1 targets"):
        opkit.diagnose(broken.TwoLayers(), batch(), lambda output, target, weight: output.mean())
    for empty in ([], (), {}):
        with pytest.raises(
            ValueError, match=f"batch must hold the inputs of the model; got an empty {type(empty).__name__}"
        ):
            opkit.diagnose(broken.TwoLayers(), empty, mse)
    with pytest.raises(TypeError, match=r"loss_fn must be a function, .*; got 'mse'"):
        opkit.diagnose(broken.TwoLayers(), batch(), "mse")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"loss_fn must be .*; got the class MSELoss"):
        opkit.diagnose(broken.TwoLayers(), batch(), nn.MSELoss)
    with pytest.raises(TypeError, match=r"model must be an nn\.Module; got function"):
        opkit.diagnose(lambda x: x, batch(), mse)  # type: ignore[arg-type]


def test_diagnose_names_values_that_are_not_finite() -> None:
    x, y = batch()
    (finding,) = opkit.diagnose(broken.TwoLayers(), (x, y.log()), mse)
    assert (finding.kind, finding.names) == ("input_not_finite", ("batch[1]",))
    model = broken.TwoLayers()
    model.last.weight.data.fill_(torch.nan)
    (finding,) = opkit.diagnose(model, (x, y), mse)
    assert (finding.kind, finding.names) == ("parameter_not_finite", ("last.weight",))


def test_diagnose_names_disabled_gradients() -> None:
    with torch.no_grad():
        assert opkit.diagnose(broken.TwoLayers(), batch(), mse).errors[0].kind == "no_grad"
    with torch.inference_mode():
        model = broken.TwoLayers()
    assert opkit.diagnose(model, batch(), mse).errors[0].kind == "inference_tensor"


def test_diagnosis_tells_a_crash_from_a_fault() -> None:
    assert opkit.diagnose(broken.Crashes(), batch(), mse).crashed
    assert not opkit.diagnose(broken.Detached(), batch(), mse).crashed


def test_diagnose_restores_attributes_and_gradients() -> None:
    model = Stateful()
    mse(model(batch()[0]), batch()[1]).backward()
    state, log, gradient = model.state, list(model.log), model.first.weight.grad
    assert gradient is not None
    before = gradient.clone()
    opkit.diagnose(model, batch(), mse)
    assert model.state is state
    assert model.log == log
    assert model.first.weight.grad is gradient
    assert gradient.equal(before)


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

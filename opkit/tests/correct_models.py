"""Models without a fault that `diagnose` must call correct, some of which look faulty."""

from collections.abc import Callable
from typing import Any

import torch
from broken_models import TwoLayers, sum_loss
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

MakeCase = Callable[[], tuple[nn.Module, Any, Callable[..., Any]]]
mse = F.mse_loss


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(16, 3, generator=generator), torch.randn(16, 1, generator=generator)


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


class Logged(TwoLayers):
    """Detaches for a log, clones, views and indexes, none of which is an error."""

    def activate(self, x: Tensor) -> Tensor:
        self.logged = x.detach().mean().item()
        y = x.clone().view(-1, 2, 4)
        y[:, 0] = y[:, 0].tanh()
        return y.flatten(1) * (x > 0)


class StopGradient(TwoLayers):
    """A stop-gradient on one of two paths."""

    def activate(self, x: Tensor) -> Tensor:
        return x / x.detach().abs().amax(-1, keepdim=True)


class StraightThrough(TwoLayers):
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


class Clipped(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        for parameter in self.parameters():
            parameter.data.clamp_(-0.1, 0.1)
        return x.tanh()


class Checkpointed(TwoLayers):
    def activate(self, x: Tensor) -> Tensor:
        return checkpoint(torch.tanh, x, use_reentrant=False)


class Stateful(TwoLayers):
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


class WithLoss(TwoLayers):
    """Returns its loss beside its output, from keyword arguments."""

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        output = super().forward(x)
        return {"loss": mse(output, labels), "output": output}


def classify(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target)


CORRECT: dict[str, MakeCase] = {
    "two layers": lambda: (TwoLayers(), batch(), mse),
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
    "small batch": lambda: (TwoLayers(), (torch.ones(1, 3), torch.zeros(1, 1)), mse),
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
    "sum of losses": lambda: (TwoLayers(), batch(), sum_loss),
    "complex": lambda: (nn.Linear(3, 3, dtype=torch.cfloat), batch()[0].to(torch.cfloat), lambda y: y.abs().mean()),
}  # fmt: skip

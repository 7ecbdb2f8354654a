"""Recurrent layers: one step, and whole sequences trained, against PyTorch written out and against its own LSTM."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor
from torch.nn import functional as F

from torchcommodity import nn, ops


def eager_cell(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The cell of PyTorch's tutorial, as its Python says it."""
    gates = F.linear(torch.cat([h, x], 1), weight, bias).chunk(3, 1)
    c = c + F.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(c) * torch.sigmoid(gates[1]), c


def our_cell(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return ops.lltm_cell(x, (h, c), weight, bias)


def eager_sequence(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    h, rows = x.new_zeros(len(x), weight.shape[0] // 3), []
    c = h
    for step in x.unbind(1):
        h, c = eager_cell(step, h, c, weight, bias)
        rows.append(h)
    return torch.stack(rows, 1)


def our_sequence(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    zero = x.new_zeros(len(x), weight.shape[0] // 3)
    return ops.lltm(x, (zero, zero), weight, bias)[0]


def random(*shapes: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return lambda: tuple(0.1 * torch.randn(shape, generator=generator) for shape in shapes)


def backward(f: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Call]:
    def prepare(*inputs: Tensor) -> Call:
        leaves = [x.clone().requires_grad_() for x in inputs]
        outputs = f(*leaves)
        grads = [torch.ones_like(y) for y in outputs]
        return lambda: torch.autograd.grad(outputs, leaves, grads, retain_graph=True)

    return prepare


def training(f: Callable[..., Tensor]) -> Callable[..., Call]:
    def prepare(*inputs: Tensor) -> Call:
        leaves = [x.clone().requires_grad_() for x in inputs]
        return lambda: torch.autograd.grad(f(*leaves).sum(), leaves)

    return prepare


def layer(made: torch.nn.Module) -> Callable[..., Call]:
    def prepare(x: Tensor, *_: Tensor) -> Call:
        leaves = [x.clone().requires_grad_(), *made.parameters()]
        return lambda: torch.autograd.grad(made(leaves[0])[0].sum(), leaves)

    return prepare


CELL = random((64, 1024), (64, 128), (64, 128), (384, 1152), (384,))
SEQUENCE = random((32, 60, 16), (192, 80), (192,))
THEIRS = torch.nn.LSTM(16, 64, batch_first=True)
OURS = nn.LSTM(16, 64, batch_first=True)
LOOP, LSTM = {"torch loop over rows": training(eager_sequence)}, {"torch.nn.LSTM": layer(THEIRS)}

ROWS = (
    Row(
        "lltm_cell",
        "forward, B=64, in=1024, hidden=128",
        CELL,
        our_cell,
        {"eager torch": lambda *x: lambda: eager_cell(*x)},
        target=1.2,
    ),
    Row(
        "lltm_cell",
        "backward, same",
        CELL,
        our_cell,
        {"eager torch": backward(eager_cell)},
        timed=backward(our_cell),
        target=1.2,
    ),
    Row(
        "lltm",
        "forward and backward, T=60, B=32, in=16, hidden=64",
        SEQUENCE,
        our_sequence,
        LOOP,
        timed=training(our_sequence),
        target=4,
    ),
    Row("lltm", "same", SEQUENCE, our_sequence, LSTM, timed=training(our_sequence), target=1),
    Row(
        "lstm",
        "nn.LSTM, forward and backward, same",
        SEQUENCE,
        lambda x, *_: OURS(x)[0],
        LSTM,
        timed=layer(OURS),
    ),
)

"""LLTM and LSTM: one cell, and sequences."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor
from torch.nn import functional as F

from torchcommodity import ops

State = tuple[Tensor, Tensor]


def tutorial_step(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> State:
    """The LLTM of PyTorch's extension tutorial, in eager mode."""
    gates = F.linear(torch.cat([h, x], dim=1), weight, bias).chunk(3, dim=1)
    input_gate, output_gate, candidate = torch.sigmoid(gates[0]), torch.sigmoid(gates[1]), F.elu(gates[2])
    c = c + candidate * input_gate
    return torch.tanh(c) * output_gate, c


def tutorial_loop(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rows = []
    for row in x.unbind(1):
        h, c = tutorial_step(row, h, c, weight, bias)
        rows.append(h)
    return torch.stack(rows, 1)


def cell_step(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> State:
    return ops.lltm_cell(x, (h, c), weight, bias)


def lstm_cell_step(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> State:
    return ops.lstm_cell(x, (h, c), *weights)


def lltm_sequence(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return ops.lltm(x, (h, c), weight, bias)[0]


def lstm_sequence(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> Tensor:
    return ops.lstm(x, (h, c), *weights)[0]


def backward(step: Callable[..., State], *tensors: Tensor, data: bool = True) -> Call:
    """Gradients of the weights, as in training on data, or of all tensors."""
    inputs = [x.clone().requires_grad_(not data) for x in tensors[:3]]
    weights = [w.clone().requires_grad_() for w in tensors[3:]]
    loss = torch.stack([y.sum() for y in step(*inputs, *weights)]).sum()
    leaves = weights if data else [*inputs, *weights]
    return lambda: torch.autograd.grad(loss, leaves, retain_graph=True)


def training_step(layer: Callable[..., Tensor], x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> Call:
    leaves = [w.clone().requires_grad_() for w in weights]
    return lambda: torch.autograd.grad(layer(x, h, c, *leaves).sum(), leaves)


def torch_layer(x: Tensor, hidden: int) -> tuple[torch.nn.LSTM, Callable[[], Tensor]]:
    layer = torch.nn.LSTM(x.shape[-1], hidden, batch_first=True)
    return layer, lambda: layer(x)[0]


def torch_forward(x: Tensor, h: Tensor, *others: Tensor) -> Call:
    _, call = torch_layer(x, h.shape[-1])
    return torch.no_grad()(call)


def torch_training_step(x: Tensor, h: Tensor, *others: Tensor) -> Call:
    layer, call = torch_layer(x, h.shape[-1])
    weights = list(layer.parameters())
    return lambda: torch.autograd.grad(call().sum(), weights)


def torch_cell(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> State:
    """The function behind torch.nn.LSTMCell."""
    h, c = torch._VF.lstm_cell(x, (h, c), *weights)
    return h, c


def cell_training_step(step: Callable[..., State], *tensors: Tensor) -> Call:
    leaves = [w.clone().requires_grad_() for w in tensors[3:]]
    return lambda: torch.autograd.grad(step(*tensors[:3], *leaves)[0].sum(), leaves)


def tensors(*shapes: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return lambda: tuple(torch.randn(shape, generator=generator) / shape[-1] ** 0.5 for shape in shapes)


def lstm_tensors(*rows: int, hidden: int) -> Callable[[], tuple[Tensor, ...]]:
    """Input (B, T, F) or (B, F), states, and the weights of torch.nn.LSTM."""
    state, gates = (rows[0], hidden), 4 * hidden
    return tensors(rows, state, state, (gates, rows[-1]), (gates, hidden), (gates,), (gates,))


CELL = tensors((64, 1024), (64, 128), (64, 128), (384, 1152), (384,))
LLTM = tensors((32, 60, 16), (32, 64), (32, 64), (192, 80), (192,))


def lstm_rows(batch: int, steps: int, features: int, hidden: int) -> tuple[Row, Row]:
    setting, inputs = f"T={steps} B={batch} in={features} hidden={hidden}", (batch, steps, features)
    arguments = lstm_tensors(*inputs, hidden=hidden)
    goal = 2 if hidden <= 32 else 1
    return (
        Row("lstm", setting, arguments, lstm_sequence, {"nn.LSTM": torch_forward}, goal=goal),
        Row(
            "lstm",
            f"{setting}, forward+backward",
            arguments,
            lstm_sequence,
            {"nn.LSTM": torch_training_step},
            timed=lambda *x: training_step(lstm_sequence, *x),
            goal=goal,
        ),
    )


def lstm_cell_rows(batch: int, features: int, hidden: int) -> tuple[Row, Row]:
    setting, arguments = f"B={batch} in={features} hidden={hidden}", lstm_tensors(batch, features, hidden=hidden)
    return (
        Row(
            "lstm_cell",
            f"{setting}, forward",
            arguments,
            lstm_cell_step,
            {"nn.LSTMCell": lambda *x: torch.no_grad()(lambda: torch_cell(*x))},
            goal=1,
        ),
        Row(
            "lstm_cell",
            f"{setting}, forward+backward",
            arguments,
            lstm_cell_step,
            {"nn.LSTMCell": lambda *x: cell_training_step(torch_cell, *x)},
            timed=lambda *x: cell_training_step(lstm_cell_step, *x),
            goal=1,
        ),
    )


ROWS = (
    Row(
        "lltm_cell",
        "B=64 in=1024 hidden=128, forward",
        CELL,
        cell_step,
        {"eager torch LLTM": lambda *x: lambda: tutorial_step(*x)},
        goal=1.2,
    ),
    Row(
        "lltm_cell",
        "B=64 in=1024 hidden=128, backward, on data",
        CELL,
        cell_step,
        {"eager torch LLTM": lambda *x: backward(tutorial_step, *x)},
        timed=lambda *x: backward(cell_step, *x),
        goal=1.2,
    ),
    Row(
        "lltm_cell",
        "B=64 in=1024 hidden=128, backward",
        CELL,
        cell_step,
        {"eager torch LLTM": lambda *x: backward(tutorial_step, *x, data=False)},
        timed=lambda *x: backward(cell_step, *x, data=False),
        goal=1.2,
    ),
    *lstm_cell_rows(batch=1, features=5, hidden=32),
    *lstm_cell_rows(batch=32, features=5, hidden=64),
    *lstm_cell_rows(batch=64, features=1024, hidden=128),
    Row(
        "lltm",
        "T=60 B=32 in=16 hidden=64, forward+backward",
        LLTM,
        lltm_sequence,
        {"Python loop": lambda *x: training_step(tutorial_loop, *x)},
        timed=lambda *x: training_step(lltm_sequence, *x),
        goal=4,
    ),
    Row(
        "lltm",
        "T=60 B=32 in=16 hidden=64, forward+backward",
        LLTM,
        lltm_sequence,
        {"nn.LSTM": torch_training_step},
        timed=lambda *x: training_step(lltm_sequence, *x),
        goal=1,
    ),
    *lstm_rows(batch=64, steps=252, features=13, hidden=8),
    *lstm_rows(batch=32, steps=60, features=5, hidden=16),
    *lstm_rows(batch=64, steps=60, features=5, hidden=32),
    *lstm_rows(batch=32, steps=252, features=5, hidden=64),
    *lstm_rows(batch=32, steps=60, features=16, hidden=64),
    *lstm_rows(batch=32, steps=60, features=16, hidden=128),
)

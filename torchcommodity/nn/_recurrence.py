"""What recurrent layers share: initial weights and states, and the layouts of a sequence."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torch_opkit.arguments import raise_invalid

RecurrenceState = tuple[Tensor, Tensor]


def init_uniform(module: nn.Module, hidden_size: int) -> None:
    """Initialize as torch's recurrent layers: uniform in +-1 / sqrt(hidden_size)."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))


def to_batch_first(layer: str, input: Tensor, features: int, batch_first: bool) -> Tensor:  # -> (B, T, F)
    """Check the input of a layer, and move its batch axis first; add one to a single sequence."""
    if isinstance(input, nn.utils.rnn.PackedSequence):
        raise_invalid(
            layer,
            "packed sequences are not supported; pad with NaN, which leaves the state unchanged",
            TypeError,
            input="PackedSequence",
        )
    if not isinstance(input, Tensor) or input.dim() not in (2, 3) or input.shape[-1] != features:
        raise_invalid(layer, f"input must be a Tensor (B, T, F), (T, B, F) or (T, F) with F = {features}", input=input)
    return input.unsqueeze(0) if input.dim() == 2 else input if batch_first else input.transpose(0, 1)


def check_row(cell: str, input: Any, features: int) -> None:
    """Check the input of a cell: one row of features, with a batch axis or without."""
    if not isinstance(input, Tensor) or input.dim() not in (1, 2) or input.shape[-1] != features:
        raise_invalid(cell, f"input must be a Tensor (B, F) or (F,) with F = {features}", input=input)


def zero_state(x: Tensor, *shape: int) -> RecurrenceState:
    """h and c of zeros, in the dtype and on the device of the input."""
    zeros = x.new_zeros(shape)
    return zeros, zeros


def initial_state(
    layer: str, x: Tensor, hx: RecurrenceState | None, layers: int, hidden: int
) -> RecurrenceState:  # (layers, B, H) each
    """`hx`, checked, or zeros."""
    if hx is None:
        return zero_state(x, layers, x.shape[0], hidden)
    items: Sequence[Any] = hx if isinstance(hx, (tuple, list)) else ()  # a caller may pass anything
    if not (len(items) == 2 and all(isinstance(state, Tensor) for state in items)):
        got = hx if isinstance(hx, Tensor) else tuple(type(state).__name__ for state in items) or type(hx).__name__
        raise_invalid(layer, "hx must be a pair of Tensors, (h, c)", TypeError, hx=got)
    h, c = (state.unsqueeze(1) if state.dim() == 2 else state for state in hx)
    for name, state in {"h": h, "c": c}.items():
        if tuple(state.shape) != (layers, x.shape[0], hidden):
            raise_invalid(layer, f"{name} must be {(layers, int(x.shape[0]), hidden)}", **{name: state})
    return h, c


def from_batch_first(
    x: Tensor, states: list[RecurrenceState], single: bool, batch_first: bool
) -> tuple[Tensor, RecurrenceState]:
    """Output and states in the layout of the input; `single`: without the batch axis."""
    h, c = torch.stack([h for h, _ in states]), torch.stack([c for _, c in states])
    if single:
        return x.squeeze(0), (h.squeeze(1), c.squeeze(1))
    return x if batch_first else x.transpose(0, 1), (h, c)


def start(layer: nn.Module, history: Tensor) -> dict[str, Tensor]:
    """The state of a layer after the rows of `history`, which may have none."""
    if getattr(layer, "bidirectional", False):
        raise_invalid("LSTM.start", "a bidirectional layer looks ahead and has no live updates", bidirectional=True)
    with torch.no_grad():
        _, (h, c) = layer(history)
    return {"h": h, "c": c}


def update(layer: nn.Module, state: dict[str, Tensor], rows: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The state after more rows, and the output at these rows."""
    if not isinstance(state, dict) or state.keys() != {"h", "c"}:
        keys = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise_invalid(f"{type(layer).__name__}.update", "state must be the dict that start returned", state=keys)
    with torch.no_grad():
        output, (h, c) = layer(rows, (state["h"], state["c"]))
    return {"h": h, "c": c}, output


def step(layer: nn.Module, state: dict[str, Tensor], row: Tensor, time: int) -> tuple[dict[str, Tensor], Tensor]:
    """The state after one row, and the output at it; both without the time axis."""
    state, output = update(layer, state, row.unsqueeze(time))
    return state, output.squeeze(time)

"""What recurrent layers share: initial weights and states, and the layouts of a sequence."""

import math

import torch
from torch import Tensor, nn

from torchcommodity.opkit.arguments import raise_invalid

State = tuple[Tensor, Tensor]


def init_uniform(module: nn.Module, hidden_size: int) -> None:
    """Initialize as torch's recurrent layers: uniform in +-1 / sqrt(hidden_size)."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))


def to_batch_first(layer: str, input: Tensor, features: int, batch_first: bool) -> Tensor:  # -> (B, T, F)
    """Check the input of a layer, and move its batch axis first; add one to a single sequence."""
    if isinstance(input, nn.utils.rnn.PackedSequence):
        raise_invalid(
            layer, "packed sequences are not supported; pad with NaN, which leaves the state unchanged", TypeError
        )
    if not isinstance(input, Tensor) or input.dim() not in (2, 3) or input.shape[-1] != features:
        raise_invalid(layer, f"input must be a Tensor (B, T, F), (T, B, F) or (T, F) with F = {features}", input=input)
    return input.unsqueeze(0) if input.dim() == 2 else input if batch_first else input.transpose(0, 1)


def zero_state(x: Tensor, *shape: int) -> State:
    """h and c of zeros, in the dtype and on the device of the input."""
    zeros = x.new_zeros(shape)
    return zeros, zeros


def initial_state(layer: str, x: Tensor, hx: State | None, layers: int, hidden: int) -> State:  # (layers, B, H) each
    """`hx`, checked, or zeros."""
    if hx is None:
        return zero_state(x, layers, x.shape[0], hidden)
    h, c = (state.unsqueeze(1) if state.dim() == 2 else state for state in hx)
    for name, state in {"h": h, "c": c}.items():
        if tuple(state.shape) != (layers, x.shape[0], hidden):
            raise_invalid(layer, f"{name} must be {(layers, int(x.shape[0]), hidden)}", **{name: state})
    return h, c


def from_batch_first(x: Tensor, states: list[State], single: bool, batch_first: bool) -> tuple[Tensor, State]:
    """Output and states in the layout of the input; `single`: without the batch axis."""
    h, c = torch.stack([h for h, _ in states]), torch.stack([c for _, c in states])
    if single:
        return x.squeeze(0), (h.squeeze(1), c.squeeze(1))
    return x if batch_first else x.transpose(0, 1), (h, c)

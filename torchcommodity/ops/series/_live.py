"""Live updates: the state of a program between rows, as a plain dict of Tensors."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops._series.program import MAX_INPUTS
from torchcommodity.ops._series.series_step import series_step

State = dict[str, Tensor]


def start(operator: str, program: str, panels: list[Tensor], parameters: list[Tensor]) -> State:
    """The state after the rows of `panels`."""
    state = {"operator": _encode(operator), "program": _encode(program)}
    shape = (*panels[0].shape[:-2], 1, panels[0].shape[-1])
    state |= {f"parameter{i}": value.detach().expand(shape).contiguous() for i, value in enumerate(parameters)}
    return _advance(state, panels, None)[0]


def update(operator: str, state: State, rows: list[Tensor]) -> tuple[State, Tensor]:
    """The state after more rows, and their outputs."""
    _check_state(operator, state, rows[0])
    return _advance(state, rows, state["values"])


def _advance(state: State, panels: list[Tensor], values: Tensor | None) -> tuple[State, Tensor]:
    parameters = [state[f"parameter{i}"].expand(panels[0].shape) for i in range(len(state)) if f"parameter{i}" in state]
    inputs = [x.detach() for x in [*panels, *parameters]]
    y, values = series_step(inputs + [None] * (MAX_INPUTS - len(inputs)), values, _decode(state["program"]))
    return state | {"values": values}, y


def _check_state(operator: str, state: State, row: Tensor) -> None:
    name = f"{operator}.step"
    if not isinstance(state, dict) or not {"operator", "program", "values"} <= state.keys():
        expected = f"state must be a dict of Tensors from {operator}.start"
        raise_invalid(
            name, expected, TypeError, state=sorted(state) if isinstance(state, dict) else type(state).__name__
        )
    if _decode(state["operator"]) != operator:
        raise_invalid(name, f"state must come from {operator}.start", operator=_decode(state["operator"]))
    values = state["values"]
    if values.shape[:-2] != row.shape[:-2] or values.shape[-1] != row.shape[-1]:
        series = (*values.shape[:-2], values.shape[-1])
        raise_invalid(name, f"a row must have the shape {series} of the history", row=row.squeeze(-2))


def _encode(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _decode(text: Tensor) -> str:
    return bytes(text.tolist()).decode()

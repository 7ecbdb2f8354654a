"""More rows of a program from a state; without a native kernel the state is the whole history."""

import torch
from torch import Tensor

from torchcommodity.ops._series.interpret import interpret


def series_step(inputs: list[Tensor | None], state: Tensor | None, program: str) -> tuple[Tensor, Tensor]:
    """Outputs of the rows in `inputs`, and the state after them.

    Args:
        inputs: Panels (..., k, N), at most 8, padded with None.
        state: State after the rows before, None if there are none; it is not written to.
        program: Statements, separated by "; ".

    Returns:
        Outputs as of `series_program`, and the state (..., S, N).
    """
    present = [x for x in inputs if x is not None]
    if hasattr(torch.ops.commodity, "series_step") and present[0].device.type == "cpu":
        half = present[0].dtype in (torch.float16, torch.bfloat16)
        native = [x.float() if half and x is not None else x for x in inputs]
        with torch.no_grad():
            y, values = torch.ops.commodity.series_step(*native, state, program)
        return y.to(present[0].dtype) if half and y.is_floating_point() else y, values
    rows = present[0].shape[-2]
    history = (
        torch.stack([x.double() for x in present], -3).flatten(-3, -2) if state is None else _append(state, present)
    )
    panels = history.unflatten(-2, (len(present), -1)).unbind(-3)
    y = interpret([x.to(present[0]) for x in panels], program)
    return y[..., y.shape[-2] - rows :, :], history


def _append(state: Tensor, rows: list[Tensor]) -> Tensor:
    past = state.unflatten(-2, (len(rows), -1))
    return torch.cat([past, torch.stack([x.to(past) for x in rows], -3)], -2).flatten(-3, -2)

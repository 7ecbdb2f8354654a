"""More rows of a program from a state; without a native kernel the state is the whole history."""

import torch
from torch import Tensor

from torch_opkit import HALF_DTYPES, widest
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS


def series_step(inputs: list[Tensor], state: Tensor | None, program: str) -> tuple[Tensor, Tensor]:
    """Outputs of the rows in `inputs`, and the state after them.

    Args:
        inputs: Panels (..., k, N), at most 8.
        state: State after the rows before, None if there are none; it is not written to.
        program: Statements, separated by "; ".

    Returns:
        Outputs as of `series_program`, and the state (..., S, N).
    """
    if not hasattr(torch.ops.commodity, "series_step") or inputs[0].device.type != "cpu":
        rows = torch.stack([widest(x.detach()) for x in inputs], -3)
        past = rows[..., :0, :] if state is None else state.unflatten(-2, (len(inputs), -1))
        history = torch.cat([past, rows], -2)
        y = interpret([x.to(inputs[0]) for x in history.unbind(-3)], program)
        return y[..., y.shape[-2] - rows.shape[-2] :, :], history.flatten(-3, -2)
    half = inputs[0].dtype in HALF_DTYPES
    native = [x.detach().float() if half else x.detach() for x in inputs]
    absent = [None] * (MAX_INPUTS - len(inputs))
    y, values = torch.ops.commodity.series_step(*native, *absent, state, program)
    return y.to(inputs[0].dtype) if half and y.is_floating_point() else y, values

"""One step of a recurrent cell, given its arithmetic: what `lstm_cell` and `lltm_cell` share."""

import torch
from torch import Tensor

from torchcommodity.ops._recurrent.sequence import CellStep, CellStepBackward

CellOutputs = tuple[Tensor, Tensor, Tensor, Tensor]  # h', c', and for the backward pass the gates and missing samples
CellGradients = tuple[Tensor, Tensor, Tensor]  # of gates, h and c


def fake(input: Tensor, h: Tensor, c: Tensor, weight: Tensor) -> CellOutputs:
    """The outputs of a step without values; `weight` has a row for each gate of each unit."""
    samples = h.shape[:-1]
    gates, missing = h.new_empty((*samples, weight.shape[0])), h.new_empty(samples, dtype=torch.bool)
    return h.new_empty(h.shape), c.new_empty(c.shape), gates, missing


def run(step: CellStep, gates: Tensor, missing: Tensor, h: Tensor, c: Tensor) -> CellOutputs:
    """The definition: a sample with missing input leaves h and c unchanged, and its gates are zero."""
    (h_next, c_next), is_missing = step(gates, c), missing.unsqueeze(-1)
    gates = gates.masked_fill(is_missing, 0)
    return torch.where(is_missing, h, h_next), torch.where(is_missing, c, c_next), gates, missing


def run_backward(
    step: CellStep,
    step_backward: CellStepBackward,
    grad_h: Tensor | None,
    grad_c: Tensor | None,
    grad_gates: Tensor | None,  # of a second derivative
    gates: Tensor,
    missing: Tensor,
    c: Tensor,
) -> CellGradients:
    """Gradients of the gates, of c, and of h apart from the product with the weights; None is zero."""
    grad_h, grad_c = (torch.zeros_like(c) if grad is None else grad for grad in (grad_h, grad_c))
    c_next, is_missing = run(step, gates, missing, c, c)[1], missing.unsqueeze(-1)
    d_gates, d_c = step_backward(gates, c, c_next, grad_h, grad_c)
    d_gates = (d_gates if grad_gates is None else d_gates + grad_gates).masked_fill(is_missing, 0)
    return d_gates, grad_h.masked_fill(~is_missing, 0), torch.where(is_missing, grad_c, d_c)


def needed(likes: tuple[Tensor, ...], needs: list[bool]) -> tuple[Tensor, ...]:
    """Gradients of `likes` without values; one that is not needed is empty."""
    return tuple(x.new_empty(x.shape if need else (0,)) for x, need in zip(likes, needs, strict=True))


def where_needed(gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
    """The gradients that are needed, and None for the others."""
    return tuple(gradient if need else None for gradient, need in zip(gradients, needs, strict=True))

"""One step of a recurrent cell, given its arithmetic: what `lstm_cell` and `lltm_cell` share."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._recurrent import sequence
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


def gate_gradients(
    backward_operator: Op, grads: tuple[Tensor | None, ...], gates: Tensor, missing: Tensor, c: Tensor
) -> CellGradients:
    """Gradients of the gates, of c, and of h apart from the product with the weights."""
    grad_h, grad_c = (torch.zeros_like(c) if grad is None else grad for grad in grads[:2])
    d_gates, d_h, d_c = backward_operator(grad_h, grad_c, gates, missing, c)
    if grads[2] is not None:  # of a second derivative
        d_gates = d_gates + grads[2].masked_fill(missing.unsqueeze(-1), 0)
    return d_gates, d_h, d_c


def make_backward_operator(name: str, gates: int, step: CellStep, step_backward: CellStepBackward) -> Op:
    """Register the operator `name`_backward of a cell with so many gates."""

    def reference(grad_h: Tensor, grad_c: Tensor, gates: Tensor, missing: Tensor, c: Tensor) -> CellGradients:
        return _run_backward(step, step_backward, grad_h, grad_c, gates, missing, c)

    def fake(gates: Tensor, c: Tensor) -> CellGradients:
        return gates.new_empty(gates.shape), c.new_empty(c.shape), c.new_empty(c.shape)

    def backward(
        *grads: Tensor, grad_h: Tensor, grad_c: Tensor, gates: Tensor, missing: Tensor, c: Tensor
    ) -> tuple[Tensor | None, ...]:
        # second derivatives are rarely needed: differentiate the definition in plain PyTorch
        def definition(grad_h: Tensor, grad_c: Tensor, gates: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            return _run_backward(step, step_backward, grad_h, grad_c, gates, missing, c)

        d_grad_h, d_grad_c, d_gates, d_c = sequence.differentiate(definition, (grad_h, grad_c, gates, c), grads)
        return d_grad_h, d_grad_c, d_gates, None, d_c

    operator = Op(
        f"commodity::{name}_backward",
        reference=reference,
        fake=fake,
        backward=backward,
        cases=lambda: _backward_cases(operator, gates),
        time=None,
    )
    return operator


def _run_backward(
    step: CellStep,
    step_backward: CellStepBackward,
    grad_h: Tensor,
    grad_c: Tensor,
    gates: Tensor,
    missing: Tensor,
    c: Tensor,
) -> CellGradients:
    c_next, is_missing = run(step, gates, missing, c, c)[1], missing.unsqueeze(-1)
    d_gates, d_c = step_backward(gates, c, c_next, grad_h, grad_c)
    d_h = grad_h.masked_fill(~is_missing, 0)
    return d_gates.masked_fill(is_missing, 0), d_h, torch.where(is_missing, grad_c, d_c)


def _backward_cases(operator: Op, gates: int) -> Cases:
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(2, size, dtype=torch.double, generator=generator) for size in (4, 4, 4 * gates, 4)]
    return Cases(
        function=lambda grad_h, grad_c, gates, c: operator(grad_h, grad_c, gates, gates.isnan().any(-1), c),
        samples=(Sample(*tensors),),
    )

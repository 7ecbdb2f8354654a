"""One step of a recurrent cell from its gates on: the operators, given the cell's arithmetic."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._recurrent import sequence
from torchcommodity.ops._recurrent.sequence import CellState, CellStep, CellStepBackward

CellGradients = tuple[Tensor, Tensor, Tensor]  # of gates, h and c


def make_operator(
    name: str, gates: int, step: CellStep, step_backward: CellStepBackward, cases: Callable[[], Cases]
) -> Op:
    """Register the operators `name` and `name`_backward of a cell with so many gates; return the first."""
    backward_operator = make_backward_operator(name, gates, step, step_backward)

    def reference(gates: Tensor, missing: Tensor, h: Tensor, c: Tensor) -> CellState:
        return run(step, gates, missing, h, c)

    def fake(h: Tensor, c: Tensor) -> CellState:
        return h.new_empty(h.shape), c.new_empty(c.shape)

    def backward(
        grad_h: Tensor, grad_c: Tensor, *, gates: Tensor, missing: Tensor, c: Tensor
    ) -> tuple[Tensor | None, ...]:
        d_gates, d_h, d_c = backward_operator(grad_h, grad_c, gates, missing, c)
        return d_gates, None, d_h, d_c

    return Op(
        f"commodity::{name}",
        reference=reference,
        fake=fake,
        backward=backward,
        cases=cases,
        time=None,
        mask_nan_grad=False,
    )


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


def run(step: CellStep, gates: Tensor, missing: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The definition: a sample with missing input leaves h and c unchanged."""
    (h_next, c_next), is_missing = step(gates, c), missing.unsqueeze(-1)
    return torch.where(is_missing, h, h_next), torch.where(is_missing, c, c_next)


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

"""The Jacobian of a case twice: by autograd, and by one-sided differences, which agree except at a kink."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcommodity.opkit._contract.case import Case, Tensors, float_tensors

STEP = 1e-6  # relative to an input of size one or more
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Jacobian:
    """Derivatives of all output elements (rows) by all elements of one input (columns)."""

    index: int  # of the tensor
    analytic: Tensor | None  # None: autograd gives no gradient for this input
    left: Tensor
    right: Tensor

    @property
    def numeric(self) -> Tensor:
        return (self.left + self.right) / 2

    @property
    def wrong(self) -> Tensor:
        """Where autograd differs from both differences and does not lie between them, as it may at a kink."""
        analytic = torch.zeros_like(self.left) if self.analytic is None else self.analytic
        lower, upper = torch.minimum(self.left, self.right), torch.maximum(self.left, self.right)
        slack = TOLERANCE * (1 + self.numeric.abs()) + TOLERANCE * self.numeric.abs().median()
        return ~((analytic >= lower - slack) & (analytic <= upper + slack)) & (lower.isfinite() & upper.isfinite())


def jacobians(case: Case) -> list[Jacobian]:
    """One for each floating-point input; outputs that are NaN count as zero."""
    inputs = tuple(x.detach().clone() for x in case.inputs())
    analytic = _by_autograd(case)
    numeric = [_by_differences(case, inputs, i) for i in range(len(inputs))]
    indices = case.float_indices
    return [Jacobian(index, by_autograd, *sides) for index, by_autograd, sides in zip(indices, analytic, numeric)]


def flat_outputs(case: Case, inputs: Tensors) -> Tensor:
    outputs = [y.flatten().double() for y in float_tensors(case.outputs(*inputs))]
    return torch.cat(outputs).nan_to_num(0.0)


def _by_autograd(case: Case) -> list[Tensor | None]:
    leaves = case.leaves()
    flat = flat_outputs(case, leaves)
    rows = [torch.autograd.grad(y, leaves, retain_graph=True, allow_unused=True) for y in flat if y.requires_grad]
    return [None if _all_none(column) else _stack(column, x) for column, x in zip(zip(*rows), leaves)]


def _all_none(gradients: tuple[Tensor | None, ...]) -> bool:
    return all(g is None for g in gradients)


def _stack(gradients: tuple[Tensor | None, ...], x: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(x).flatten() if g is None else g.flatten() for g in gradients]).double()


def _by_differences(case: Case, inputs: Tensors, i: int) -> tuple[Tensor, Tensor]:
    """Left and right differences by each element of input i: (outputs, elements)."""
    with torch.no_grad():
        here, sides = flat_outputs(case, inputs), []
        for sign in (-1, 1):
            columns = []
            for k in range(inputs[i].numel()):
                x = inputs[i].clone()
                step = sign * STEP * max(1.0, abs(x.view(-1)[k].item()))
                x.view(-1)[k] += step
                columns.append((flat_outputs(case, (*inputs[:i], x, *inputs[i + 1 :])) - here) / step)
            sides.append(torch.stack(columns, -1) if columns else here.new_zeros(len(here), 0))
    return sides[0], sides[1]

"""What compilers and exporters are given: a module that calls the doors of one operator, or of many."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from torchcommodity.opkit._check.layouts import batched
from torchcommodity.opkit._check.resize import resized
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject, floats


class Doors(torch.nn.Module):
    """`forward(*inputs)` calls the door of each subject with its own tensors, and returns all outputs."""

    def __init__(self, subjects: Sequence[Subject]) -> None:
        super().__init__()
        self.subjects = tuple(subjects)

    def forward(self, *inputs: Tensor) -> Outputs:
        outputs: list[Tensor] = []
        supply = iter(inputs)
        for subject in self.subjects:
            outputs += subject.call(*[None if x is None else next(supply) for x in subject.tensors])
        return tuple(outputs)

    def loss(self, *inputs: Tensor) -> Tensor:
        known = [y.nan_to_num(0.0) for y in floats(self(*inputs))]
        return torch.stack([y.sin().sum().double() for y in known]).sum()

    def gradients(self, call: Any, inputs: Outputs) -> Outputs:
        """Of `call`, which is `loss` or a compiled form of it."""
        leaves = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        floating = [x for x in leaves if x.requires_grad]
        return torch.autograd.grad(call(*leaves), floating, materialize_grads=True)

    def inputs(self, batch: int | None = None, rows: int | None = None) -> Outputs:
        """The tensors of the samples, or of the samples in another size. Contiguous, as AOTInductor wants them."""
        sized = [resized(subject, batch=batch, rows=rows) for subject in self.subjects]
        return tuple(x.contiguous() for subject in sized for x in subject.tensors if isinstance(x, Tensor))

    @property
    def rows(self) -> int:
        """The longest time of the samples."""
        return max(subject.rows for subject in self.subjects)

    def dynamic(self, time: bool = True) -> tuple[dict[int, Any], ...]:
        """For each input the axes that may change: the batch, and time."""
        return tuple(axes for subject in self.subjects for axes in _dynamic(subject, time))


def _dynamic(subject: Subject, time: bool) -> list[dict[int, Any]]:
    try:
        _, carriers = batched(subject)
    except Skip:
        carriers = []
    axes: list[dict[int, Any]] = []
    for i, x in enumerate(subject.tensors):
        if isinstance(x, Tensor):
            changing = [0] * (i in carriers)
            if time and i in subject.panels:
                changing.append(x.dim() + subject.time[0])
            axes.append({axis: Dim.DYNAMIC for axis in changing if x.shape[axis] > 1})
    return axes


def exported(doors: Doors, strict: bool = False, time: bool = True) -> ExportedProgram:
    torch._dynamo.reset()  # `scan` compiles its body: the shapes of an earlier export would leak into this one
    return torch.export.export(doors, doors.inputs(), dynamic_shapes=(doors.dynamic(time),), strict=strict)

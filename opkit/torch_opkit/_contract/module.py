"""The module that compilers and exporters receive: it calls the public functions of one or many operators."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from torch_opkit._contract.case import Case, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.edges import batch_layout
from torch_opkit._contract.resize import resize


class CaseModule(torch.nn.Module):
    """`forward(*inputs)` calls the public function of each case with its own tensors, and returns all outputs."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.cases = tuple(cases)

    def forward(self, *inputs: Tensor) -> Tensors:
        outputs: list[Tensor] = []
        remaining = iter(inputs)
        for case in self.cases:
            outputs += case.call(*[None if x is None else next(remaining) for x in case.tensors])
        return tuple(outputs)

    def loss(self, *inputs: Tensor) -> Tensor:
        outputs = [y.nan_to_num(0.0) for y in float_tensors(self(*inputs))]
        return torch.stack([y.sin().sum().double() for y in outputs]).sum()

    def gradients(self, loss: Any, inputs: Tensors) -> Tensors:
        """Gradients of `loss`, which is `self.loss` or a compiled form of it."""
        leaves = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
        floating = [x for x in leaves if x.requires_grad]
        return torch.autograd.grad(loss(*leaves), floating, materialize_grads=True)

    def inputs(self, batch: int | None = None, rows: int | None = None) -> Tensors:
        """Tensors of the samples, resized if asked, and contiguous as AOTInductor expects them."""
        resized = [resize(case, batch=batch, rows=rows) for case in self.cases]
        return tuple(x.contiguous() for case in resized for x in case.tensors if isinstance(x, Tensor))

    @property
    def rows(self) -> int:
        """Number of rows of the longest sample."""
        return max(case.rows for case in self.cases)

    def dynamic_shapes(self, time: bool = True) -> tuple[dict[int, Any], ...]:
        """Dynamic axes of each input: the batch and, with `time`, the time axis."""
        axes: list[dict[int, Any]] = []
        for case in self.cases:
            try:
                _, batched = batch_layout(case)
            except SkipCheck:
                batched = []
            for i, x in enumerate(case.tensors):
                if isinstance(x, Tensor):
                    dynamic = [0] * (i in batched)
                    if time and i in case.panel_indices:
                        dynamic.append(x.dim() + case.time[0])
                    axes.append({axis: Dim.DYNAMIC for axis in dynamic if x.shape[axis] > 1})
        return tuple(axes)


def export_program(module: CaseModule, strict: bool = False, time: bool = True) -> ExportedProgram:
    shapes = (module.dynamic_shapes(time),)
    return torch.export.export(module, module.inputs(), dynamic_shapes=shapes, strict=strict)

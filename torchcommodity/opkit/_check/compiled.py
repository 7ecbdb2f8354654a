"""`torch.compile`: forward, backward, other shapes, together with `torch.func`."""

from typing import Any

import torch
from torch import func

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.gradients import GRADIENTS, differentiable
from torchcommodity.opkit._check.graphs import Doors
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Subject
from torchcommodity.opkit._check.values import VALUES

SHAPES = ((2, 1), (3, 2), (5, 4), (7, 9))  # batches, and how many times the rows of the sample
GRAPHS = 2  # one for the first shape, one for all others


@row(
    "The door breaks the graph. TORCH_LOGS=graph_breaks says where; decide by shapes and settings, never by values.",
    after=(*VALUES, "traced", "aot_dispatch"),
    compiled=True,
)
def compile_forward(subject: Subject) -> None:
    """`torch.compile(fullgraph=True)` agrees with eager mode."""
    torch._dynamo.reset()
    doors = Doors([subject])
    same(torch.compile(doors, fullgraph=True)(*doors.inputs()), subject.call(), 1e-10, "compiled: the result")


@row(
    "The backward formula runs differently when it is traced: no branch on values, no NumPy, no `torch.compiler`.",
    after=(*GRADIENTS, "compile_forward"),
    compiled=True,
)
def compile_backward(subject: Subject) -> None:
    """Compiled gradients agree with eager ones."""
    doors = Doors([differentiable(subject)])
    torch._dynamo.reset()
    compiled = doors.gradients(torch.compile(doors.loss, fullgraph=True), doors.inputs())
    same(compiled, doors.gradients(doors.loss, doors.inputs()), 1e-10, "compiled: the gradient")


@row(
    "Each new shape compiles again. Do not make a shape a Python number (`int(x.shape[0])`, `range(T)`) at the door.",
    after=("compile_forward",),
    compiled=True,
)
def compile_shapes(subject: Subject) -> None:
    """Four shapes of batch and time need two graphs, and give the right result."""
    torch._dynamo.reset()
    doors, graphs = Doors([subject]), []

    def counting(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph

    compiled = torch.compile(doors, fullgraph=True, backend=counting)
    for batch, times in SHAPES:
        inputs = doors.inputs(batch, times * subject.rows)
        same(compiled(*inputs), doors(*inputs), 1e-12, f"compiled for {[tuple(x.shape) for x in inputs]}")
    assert len(graphs) <= GRAPHS, f"{len(graphs)} graphs for {len(SHAPES)} shapes"


@row(
    "Under compile(func.grad(...)) something else runs: make door and formulas of operators only.",
    after=("compile_backward", "func_grad"),
    compiled=True,
)
def compile_func_grad(subject: Subject) -> None:
    """`torch.compile` of `torch.func.grad` agrees with eager autograd."""
    subject = differentiable(subject)
    torch._dynamo.reset()
    every = tuple(range(len(subject.floating)))
    got = torch.compile(func.grad(subject.loss, every), fullgraph=True)(*subject.inputs())
    same(got, subject.gradients(), 1e-10, "compile(func.grad)")

"""`torch.compile`: forward, backward, dynamic shapes, and together with `torch.func`."""

from typing import Any

import torch
from torch import func

from torch_opkit._contract.case import Case, Fault
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.gradients import GRADIENTS, require_gradient
from torch_opkit._contract.module import CaseModule
from torch_opkit._contract.values import VALUES
from torch_opkit._op import Op

SHAPES = ((2, 1), (3, 2), (5, 4), (7, 9))  # batch size, and time as a multiple of the sample's rows
BATCHES = ((2, 1), (3, 1), (5, 1), (7, 1))  # of a foreign operator: a loop over rows in Python is unrolled, and legal
MAX_GRAPHS = 2  # one for the first shape, one for all others


@register(
    "The public function breaks the graph. TORCH_LOGS=graph_breaks says where; branch on shapes and settings, never "
    "on values.",
    depends_on=(*VALUES, "no_data_dependence", "aot_dispatch"),
    compiled=True,
)
def compile_forward(case: Case) -> None:
    """`torch.compile(fullgraph=True)` agrees with eager mode."""
    torch._dynamo.reset()
    module = CaseModule([case])
    compiled = torch.compile(module, fullgraph=True)
    assert_close(compiled(*module.inputs()), case.call(), 1e-10, "compiled result")


@register(
    "The backward formula differs when it is traced: no branch on values, no NumPy, no `torch.compiler`.",
    depends_on=(*GRADIENTS, "compile_forward"),
    compiled=True,
)
def compile_backward(case: Case) -> None:
    """Compiled gradients agree with eager gradients."""
    module = CaseModule([require_gradient(case)])
    torch._dynamo.reset()
    # a function of PyTorch's operators cannot be wrong in Inductor's kernels, which take long to build: only in tracing
    tracing_only = not isinstance(case.op, Op) and case.op.plain
    backend = "aot_eager_decomp_partition" if tracing_only else "inductor"
    compiled = module.gradients(torch.compile(module.loss, fullgraph=True, backend=backend), module.inputs())
    assert_close(compiled, module.gradients(module.loss, module.inputs()), 1e-10, "compiled gradient")


@register(
    "Each new shape recompiles. The public function must not turn a shape into a Python number (`int(x.shape[0])`, "
    "`range(T)`).",
    depends_on=("compile_forward",),
    compiled=True,
)
def compile_shapes(case: Case) -> None:
    """Four shapes of batch and time compile two graphs, and give the right result."""
    torch._dynamo.reset()
    module, graphs = CaseModule([case]), []

    def count_graphs(graph: object, _: object) -> Any:
        graphs.append(graph)
        return graph

    compiled = torch.compile(module, fullgraph=True, backend=count_graphs)
    for batch, times in SHAPES if isinstance(case.op, Op) else BATCHES:
        inputs = module.inputs(batch, times * case.rows)
        assert_close(compiled(*inputs), module(*inputs), 1e-12, f"compiled for {[tuple(x.shape) for x in inputs]}")
    message = f"expected {MAX_GRAPHS} graphs for {len(SHAPES)} shapes; got {len(graphs)}"
    if len(graphs) > MAX_GRAPHS:
        raise Fault("recompiles", message)


@register(
    "compile(func.grad(...)) gives another gradient: make the public function and the formulas of operators only.",
    depends_on=("compile_backward", "func_grad"),
    compiled=True,
)
def compile_func_grad(case: Case) -> None:
    """`torch.compile` of `torch.func.grad` agrees with eager autograd."""
    case = require_gradient(case)
    torch._dynamo.reset()
    argnums = tuple(range(len(case.float_indices)))
    # What may go wrong is tracing; the two checks above judge the kernels of Inductor, which take long to build.
    inputs = [x.detach() for x in case.inputs()]  # a sample may require a gradient, which would be a second one
    actual = torch.compile(func.grad(case.loss, argnums), fullgraph=True, backend="aot_eager")(*inputs)
    assert_close(actual, case.gradients(), 1e-10, "compile(func.grad)")

"""Processor time of the first and of the second derivative of every operator, on one thread.

python benchmarks/second_derivatives.py                              # to standard output
python benchmarks/second_derivatives.py --page docs/results/speed.md
python benchmarks/second_derivatives.py --only lstm rolling_var

The inputs are the samples of the contract, repeated to the size that is given; of several samples, the one with the
largest ratio is shown. The second derivative is the backward pass through the first one.
"""

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import torch
from markdown import environment, format_table, replace_table
from torch import Tensor

from torch_opkit import OPERATORS, Op
from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._contract.resize import resize
from torch_opkit._contract.runner import build_cases
from torchcommodity import ops as ops  # registers the operators

HEADS = ("operator", "inputs, float32", "forward, ms", "first derivative, ms", "second, ms", "second / first")


def differentiable_operators() -> list[Op]:
    """By name; a backward pass or a tangent that is an operator belongs to its forward pass."""
    own = [op for op in OPERATORS.values() if op.qualified_name.startswith("commodity::")]
    return sorted(
        (op for op in own if op.backward and not op.name.endswith(("_backward", "_tangent"))), key=lambda op: op.name
    )


def resized(case: Case, size: tuple[int, int, int]) -> Case:
    """The sample with this batch, rows and assets; as it is if its arguments fit no other size."""
    try:
        larger = resize(case, batch=size[0], rows=size[1], assets=size[2]) if case.op.time else case
        larger.call()
    except (SkipCheck, ValueError, RuntimeError, TypeError):
        larger = case
    return larger.map_tensors(lambda x: x.float() if x.is_floating_point() else x)


def median_time(call: Callable[[], object], runs: int) -> float:
    """Median milliseconds of processor time after a first call, of as many runs as half a second holds."""
    call()
    times = list[float]()
    while len(times) < 1 or (len(times) < runs and sum(times) < 0.5):
        start = process_time()
        call()
        times.append(process_time() - start)
    return 1e3 * median(times)


def times(case: Case, runs: int) -> tuple[float, float, float] | None:
    """Milliseconds of the forward pass and of both derivatives; None if the sample has no second derivative."""
    leaves = [x.detach().clone().requires_grad_() for x in case.inputs()]
    with torch.no_grad():
        forward = median_time(case.call, runs)
    outputs = [y for y in case.outputs(*leaves) if y.is_floating_point() and y.requires_grad]
    cotangents = [torch.ones_like(y).requires_grad_() for y in outputs]

    def first(create_graph: bool = False) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(
            outputs, leaves, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True
        )

    gradients = [g for g in first(create_graph=True) if g is not None and g.requires_grad]
    weights = [torch.ones_like(g) for g in gradients]

    def second() -> object:
        return torch.autograd.grad(gradients, [*leaves, *cotangents], weights, retain_graph=True, allow_unused=True)

    return (forward, median_time(first, runs), median_time(second, runs)) if gradients else None


def row(op: Op, size: tuple[int, int, int], runs: int) -> list[str]:
    """The sample with the largest ratio of both derivatives."""
    rows = list[tuple[float, list[str]]]()
    for case in (resized(case, size) for case in build_cases(op)):
        gc.collect()
        if (result := times(case, runs)) is not None:
            _, first, second = result
            shapes = " ".join(str(tuple(x.shape)) for x in case.inputs())
            cells = [f"`{op.name}`", shapes, *(f"{ms:.2f}" for ms in result), f"{second / first:.1f}"]
            rows.append((second / first, cells))
    return max(rows)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="Operators to time")
    parser.add_argument("--size", nargs=3, type=int, default=(8, 500, 20), metavar=("BATCH", "ROWS", "ASSETS"))
    parser.add_argument("--runs", type=int, default=7, help="Timed runs, fewer where they take long")
    parser.add_argument("--page", type=Path, help="Markdown page whose table `second-derivatives` is replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = list[list[str]]()
    for op in differentiable_operators():
        if arguments.only is None or op.name in arguments.only:
            rows.append(row(op, tuple(arguments.size), arguments.runs))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    rows.sort(key=lambda cells: float(cells[-1]), reverse=True)
    setting = f"Medians of processor time on one thread, torch {torch.__version__}"
    table = f"{format_table(HEADS, rows)}\n\n{environment(setting)}"
    if arguments.page:
        replace_table(arguments.page, "second-derivatives", table)
    else:
        print(table)


if __name__ == "__main__":
    main()

"""A program of `ops.series` over panels: all statements in one native pass over time."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._series import series_program_backward
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS, count_outputs, parse
from torchcommodity.ops._series.series_program_backward import PROGRAMS, sample_inputs


def series_program(*inputs: Tensor, program: str) -> Tensor:
    """Run a program.

    Args:
        inputs: Panels (..., T, N) of one shape, dtype and device, at most 8: those of the program, then its parameters.
        program: Statements, separated by "; "; see `ops.series.Operator.program`.

    Returns:
        The output (..., T, N), or all of them (..., K, T, N), of the dtype of the inputs unless the program says
        otherwise. Causal; a row is NaN where one of the outputs is missing.

    Raises:
        ValueError, TypeError: If an input is not a floating-point panel, they differ, or there are too many.
    """
    names = [f"x{i}" for i in range(len(inputs))]
    if not 1 <= len(inputs) <= MAX_INPUTS:
        raise_invalid("series_program", f"there must be 1 to {MAX_INPUTS} inputs", inputs=len(inputs))
    check_panel("series_program", **dict(zip(names, inputs)))
    if any(x.shape != inputs[0].shape for x in inputs):
        raise_invalid("series_program", "inputs must have one shape", **dict(zip(names, inputs)))
    return run_program(inputs, program)


def run_program(inputs: Sequence[Tensor], program: str) -> Tensor:
    """`series_program` without its checks."""
    y: Tensor = operator(*inputs, *[None] * (MAX_INPUTS - len(inputs)), program)
    return y


def _reference(
    x0: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    x3: Tensor | None,
    x4: Tensor | None,
    x5: Tensor | None,
    x6: Tensor | None,
    x7: Tensor | None,
    program: str,
) -> Tensor:
    inputs = [x for x in (x0, x1, x2, x3, x4, x5, x6, x7) if x is not None]
    return interpret(inputs, program)


def _fake(x0: Tensor, program: str) -> Tensor:
    dtype, outputs = str(parse(program)[-1].attributes[0]), count_outputs(program)
    shape = x0.shape if outputs == 1 else (*x0.shape[:-2], outputs, *x0.shape[-2:])
    return x0.new_empty(shape, dtype=x0.dtype if dtype == "float" else getattr(torch, dtype))


def _backward(
    grad: Tensor,
    *,
    x0: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    x3: Tensor | None,
    x4: Tensor | None,
    x5: Tensor | None,
    x6: Tensor | None,
    x7: Tensor | None,
    program: str,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    inputs = (x0, x1, x2, x3, x4, x5, x6, x7)
    wanted = [i for i, (x, needed) in enumerate(zip(inputs, needs_input_grad)) if needed and x is not None]
    stacked = series_program_backward.operator(grad, *inputs, program, wanted)
    gradients = iter([stacked] if len(wanted) == 1 else stacked.unbind(-3))
    return tuple(next(gradients) if i in wanted else None for i in range(MAX_INPUTS))


def _cases() -> Cases:
    x = sample_inputs()
    return Cases(
        function=series_program,
        samples=tuple(Sample(*x[: text.count("input ")], program=text) for text in PROGRAMS),
        bad=(
            Bad(Sample(x[0], x[1][:-1], program=PROGRAMS[0]), "series_program: inputs must have one shape"),
            Bad(Sample(x[0].long(), program=PROGRAMS[0]), "x0 must be floating-point", TypeError),
        ),
    )


@cache
def lookback(program: str) -> int:
    """Number of rows before the first output, found on a panel that rises faster and faster; parameters are 3."""
    with ThreadPoolExecutor(1) as thread:  # there a formula that asks for it finds numbers, also in torch.export
        return thread.submit(_first_output, program).result()


def _first_output(program: str) -> int:
    statements = parse(program)
    inputs = 1 + max(int(s.attributes[0]) for s in statements if s.name == "input")
    panels = int(statements[0].attributes[0])
    text = program.replace(f"return {statements[-1].attributes[0]}", "return float")
    for rows in (64, 512, 4096, 32768):
        t = torch.arange(rows, dtype=torch.double).unsqueeze(-1)
        rising = [(100 + t + t * t / 100) * (1 + k * 1e-6) for k in range(panels)]
        y = run_program([*rising, *[torch.full_like(t, 3)] * (inputs - panels)], text)
        missing = y.reshape(-1, rows)[0].isnan()
        if not missing.all():
            return int(missing.logical_not().nonzero()[0])
    return 0


operator: Any = Op(
    "commodity::series_program",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,  # the backward operator recomputes which outputs are missing
    cases=_cases,
    warmup=lookback,
)

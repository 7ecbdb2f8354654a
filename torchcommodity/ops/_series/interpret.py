"""Run a program in plain PyTorch: the definition that native kernels are checked against, and what ONNX gets."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_opkit import widest
from torchcommodity.ops._series.program import Statement, parse
from torchcommodity.ops._series.statements import LOOKING_BACK, STATEMENTS, Masked

MISSING = {"int8": 0, "int16": 0, "int64": -1}

Registers = dict[int, Masked]


def interpret(inputs: Sequence[Tensor], program: str) -> Tensor:
    """Outputs (..., T, N) of a program, or (..., K, T, N) if it has K > 1 outputs."""
    statements = parse(program)
    values = [widest(x) for x in inputs]
    masks, panels = [x.isfinite() for x in values], int(statements[0].attributes[0])
    masks[:panels] = [torch.stack(masks[:panels]).all(0)] * panels  # a row missing in one panel is missing in all
    sources = [Masked(x.where(mask, 0), mask) for x, mask in zip(values, masks)]
    registers: Registers = {}
    loop: list[int] = []
    for i, statement in enumerate(statements[1:-1], 1):
        if loop or statement.name == "feedback":
            loop.append(i)
            if statement.name == "assign" and statements[i + 1].name != "assign":
                _run_loop(loop, statements, registers, sources[0])
                loop = []
        elif statement.name == "input":
            registers[i] = sources[int(statement.attributes[0])]
        else:
            registers[i] = _run(statement, registers, sources[0])
    dtype = str(statements[-1].attributes[0])
    outputs = [registers[i] for i in statements[-1].operands]
    valid = torch.stack([y.valid for y in outputs]).all(0)  # a row missing in one output is missing in all
    columns = [y.value.where(valid, MISSING.get(dtype, torch.nan)) for y in outputs]
    y = columns[0] if len(columns) == 1 else torch.stack(columns, -3)
    return y.to(inputs[0].dtype if dtype == "float" else getattr(torch, dtype))


def _run(statement: Statement, registers: Registers, like: Masked) -> Masked:
    if statement.name == "constant":
        return _constant(statement, like)
    return STATEMENTS[statement.name](*(registers[i] for i in statement.operands), *statement.attributes)


def _constant(statement: Statement, like: Masked) -> Masked:
    return Masked(torch.full_like(like.value, statement.attributes[0]), torch.ones_like(like.valid))  # type: ignore[arg-type]


def _run_loop(loop: list[int], statements: tuple[Statement, ...], registers: Registers, like: Masked) -> None:
    """The body of a loop row by row; a register that is fed a missing value keeps its own.

    A statement that looks back sees all rows up to this one, and its last result counts; others see this row only.
    """
    history: dict[int, list[Masked]] = {i: [] for i in loop}
    operands = {j for i in loop for j in statements[i].operands}
    rows_of = history | {j: _rows(registers[j]) for j in operands - history.keys()}
    states: Registers = {}
    for t, row in enumerate(_rows(like)):
        for i in loop:
            statement = statements[i]
            if statement.name == "feedback":
                history[i].append(states.setdefault(i, _constant(statement, row)))
            elif statement.name == "assign":
                old, new = (rows_of[j][t] for j in statement.operands)
                states[statement.operands[0]] = STATEMENTS["fill"](new, old)
            elif statement.name in LOOKING_BACK:
                rows = {j: _stack(rows_of[j][: t + 1]) for j in statement.operands}
                result = _run(statement, rows, Masked(*(x[..., : t + 1, :] for x in like)))
                history[i].append(Masked(*(x[..., -1:, :] for x in result)))
            else:
                history[i].append(_run(statement, {j: rows_of[j][t] for j in statement.operands}, row))
    empty = Masked(*(x[..., :0, :] for x in like))
    registers |= {i: _stack(rows) if rows else empty for i, rows in history.items()}


def _rows(x: Masked) -> list[Masked]:
    """Every row; their gradients are put together once, where those of slices would each fill all rows."""
    return [Masked(*row) for row in zip(*(y.split(1, -2) for y in x))] if x.value.shape[-2] else []


def _stack(rows: list[Masked]) -> Masked:
    return Masked(*(torch.cat(parts, -2) for parts in zip(*rows)))

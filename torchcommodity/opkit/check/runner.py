"""`check`: the whole contract, judged on one operator."""

from collections.abc import Sequence

import torch

from torchcommodity.opkit.cases import Cases, Sample
from torchcommodity.opkit.check.rows import ROWS, Report, Result, Row, judged
from torchcommodity.opkit.check.subject import Subject
from torchcommodity.opkit.op import Op


def check(op: Op, *, only: str | Sequence[str] | None = None, compiled: bool = True) -> Report:
    """Judge every promise that an operator makes by standing in the registry.

    Args:
        op: the operator. What its `cases` do not supply is skipped, aloud; without any, samples are guessed.
        only: names of rows; a row that one of them builds on is judged too.
        compiled: with the rows that compile (Inductor, AOTInductor, ONNX): seconds each.

    Returns:
        A `Report`: iterable, with `ok`, `failures`, `rows`; it prints as a table that says how to mend each failure.

    Raises:
        ValueError: `only` names no row.
    """
    subjects = subjects_of(op)
    results: dict[str, Result] = {}
    for row in _chosen(only, compiled):
        results[row.name] = _unjudged(row, results) or judged(row, subjects)
    return Report(op.qualified_name, tuple(results.values()))


def subjects_of(op: Op) -> tuple[Subject, ...]:
    cases = op.cases() if op.cases else guessed(op)
    return tuple(Subject(op, cases, sample) for sample in cases.samples)


def guessed(op: Op) -> Cases:
    """For a record without cases: panels of positive numbers for its tensors, small numbers for its settings."""
    generator = torch.Generator().manual_seed(0)
    kinds = {"Tensor": None, "int": 3, "float": 0.5, "bool": False}
    required = [a for a in op.overload._schema.arguments if not a.has_default_value()]
    values = [kinds.get(str(a.type)) for a in required]
    tensors = [0.5 + torch.rand(2, 11, 3, dtype=torch.double, generator=generator) for v in values if v is None]
    return Cases(door=lambda *x: op(*_woven(values, x)), samples=(Sample(*tensors),))


def _woven(values: Sequence[object], tensors: Sequence[object]) -> list[object]:
    supply = iter(tensors)
    return [next(supply) if value is None else value for value in values]


def _chosen(only: str | Sequence[str] | None, compiled: bool) -> list[Row]:
    names = set(ROWS) if only is None else {only} if isinstance(only, str) else set(only)
    if unknown := names - set(ROWS):
        raise ValueError(f"check: only must name rows of the contract; got {sorted(unknown)}; rows: {', '.join(ROWS)}")
    if only is None:
        return [row for row in ROWS.values() if compiled or not row.compiled]
    while more := {before for name in names for before in ROWS[name].after} - names:
        names |= more
    return [row for row in ROWS.values() if row.name in names]


def _unjudged(row: Row, results: dict[str, Result]) -> Result | None:
    """A promise that rests on a broken one, or on one that was itself not judged for that reason."""
    for name in row.after:
        before = results[name]
        if before.status == "fail" or before.cause.startswith("not judged"):
            return Result(row.name, "skip", 0.0, cause=f"not judged: it rests on {name}, which failed")
    return None

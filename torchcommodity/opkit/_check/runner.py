"""`check`: the whole contract, judged on one operator."""

from collections.abc import Sequence
from typing import Any

import torch

from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._check.foreign import as_foreign, called, foreign
from torchcommodity.opkit._check.rows import ROWS, Report, Result, Row, judged
from torchcommodity.opkit._check.subject import Subject
from torchcommodity.opkit._op import Op


def check(
    op: Any,
    *,
    cases: Cases | Sequence[Sample] | None = None,
    only: str | Sequence[str] | None = None,
    compiled: bool = True,
) -> Report:
    """Judge every promise that an operator makes by standing in the registry.

    Args:
        op: a record; or an operator of any other make: `torch.library.custom_op`, `triton_op` or `TORCH_LIBRARY`, an
            `autograd.Function`, a plain function. Of these is skipped what only records promise.
        cases: samples, or more; None: those of the record. What they do not supply is skipped, aloud; without any,
            samples are guessed. The oracle of an operator of another make is the definition of its values.
        only: names of rows; a row that one of them builds on is judged too.
        compiled: with the rows that compile (Inductor, AOTInductor, ONNX): seconds each.

    Returns:
        A `Report`: iterable, with `ok`, `failures`, `rows`; it prints as a table that says how to mend each failure.

    Raises:
        ValueError: `only` names no row, or guessed samples do not fit.
        TypeError: `op` is nothing that can be called.
    """
    given = Cases(function=called(op), samples=tuple(cases)) if isinstance(cases, Sequence) else cases
    known = op if isinstance(op, Op) else foreign(op, given)
    subjects = subjects_of(known, given)
    results: dict[str, Result] = {}
    rows = _chosen(only, compiled)
    for row in rows if isinstance(known, Op) else map(as_foreign, rows):
        results[row.name] = _unjudged(row, results) or judged(row, subjects)
    return Report(known.qualified_name, tuple(results.values()))


def subjects_of(op: Any, given: Cases | None = None) -> tuple[Subject, ...]:
    cases = given or (op.cases() if op.cases else guessed(op))
    return tuple(Subject(op, cases, sample) for sample in cases.samples)


def guessed(op: Op) -> Cases:
    """For a record without cases: panels of positive numbers for its tensors, small numbers for its settings."""
    generator = torch.Generator().manual_seed(0)
    kinds = {"Tensor": None, "int": 3, "float": 0.5, "bool": False}
    required = [a for a in op.overload._schema.arguments if not a.has_default_value()]
    values = [kinds.get(str(a.type)) for a in required]
    tensors = [0.5 + torch.rand(2, 11, 3, dtype=torch.double, generator=generator) for v in values if v is None]
    return Cases(function=lambda *x: op(*_woven(values, x)), samples=(Sample(*tensors),))


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

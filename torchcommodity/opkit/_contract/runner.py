"""`check`: run the contract on one operator."""

from collections.abc import Sequence
from typing import Any

import torch

from torchcommodity.opkit._cases import Cases, Sample
from torchcommodity.opkit._contract.case import Case
from torchcommodity.opkit._contract.checks import CHECKS, Check, run_check
from torchcommodity.opkit._contract.foreign import as_callable, wrap_foreign
from torchcommodity.opkit._contract.report import Report, Result
from torchcommodity.opkit._contract.support import adapt_check
from torchcommodity.opkit._op import Op

DEFAULTS = {"Tensor": None, "int": 3, "float": 0.5, "bool": False}  # None: a random panel


def check(
    op: Any,
    *,
    cases: Cases | Sequence[Sample] | None = None,
    only: str | Sequence[str] | None = None,
    compiled: bool = True,
) -> Report:
    """Check that an operator meets the contract.

    Args:
        op: an `Op` record; or any other operator: `torch.library.custom_op`, `triton_op` or `TORCH_LIBRARY`, an
            `autograd.Function`, a function. For these, checks of what only records guarantee are skipped.
        cases: `Cases`, or samples alone; default: the cases of the record. Checks without data are reported as
            skipped; without any cases, samples are guessed from the signature. For an operator without a record, the
            oracle defines its values.
        only: names of checks; checks that they depend on run too.
        compiled: include the checks that compile (Inductor, AOTInductor, ONNX), which take seconds each.

    Returns:
        A `Report` with `ok`, `failures` and `results`. It prints as a table that says how to fix each failure.

    Raises:
        ValueError: `only` names an unknown check, or guessed samples do not work.
        TypeError: `op` is not callable.

    Example:
        >>> from torchcommodity import opkit, ops
        >>> report = opkit.check(opkit.OPERATORS["commodity::linear_recurrence"], only="causal")
        >>> report.ok, report["causal"].status
        (True, 'pass')
    """
    if isinstance(cases, Sequence):
        cases = Cases(function=as_callable(op), samples=tuple(cases))
    checks = _select(only, compiled)
    if not isinstance(op, Op):
        op, checks = wrap_foreign(op, cases), [adapt_check(check) for check in checks]
    samples = build_cases(op, cases)
    results: dict[str, Result] = {}
    for check in checks:
        results[check.name] = _blocked(check, results) or run_check(check, samples)
    return Report(op.qualified_name, tuple(results.values()))


def build_cases(op: Any, cases: Cases | None = None) -> tuple[Case, ...]:
    """One case per sample: of `cases`, of the record, or guessed."""
    cases = cases or (op.cases() if op.cases else _guess_cases(op))
    return tuple(Case(op, cases, sample) for sample in cases.samples)


def _guess_cases(op: Op) -> Cases:
    """Cases for a record without any: panels of positive numbers for tensors, small numbers for settings."""
    generator = torch.Generator().manual_seed(0)
    required = [a for a in op.overload._schema.arguments if not a.has_default_value()]
    values = [DEFAULTS.get(str(a.type)) for a in required]
    tensors = [0.5 + torch.rand(2, 11, 3, dtype=torch.double, generator=generator) for v in values if v is None]

    def call(*tensors: object) -> Any:
        remaining = iter(tensors)
        return op(*[next(remaining) if value is None else value for value in values])

    return Cases(function=call, samples=(Sample(*tensors),))


def _select(only: str | Sequence[str] | None, compiled: bool) -> list[Check]:
    names = set(CHECKS) if only is None else {only} if isinstance(only, str) else set(only)
    if unknown := names - set(CHECKS):
        raise ValueError(f"check: only must name checks of the contract, {', '.join(CHECKS)}; got {sorted(unknown)}")
    if only is None:
        return [check for check in CHECKS.values() if compiled or not check.compiled]
    while more := {name for check in names for name in CHECKS[check].depends_on} - names:
        names |= more
    return [check for check in CHECKS.values() if check.name in names]


def _blocked(check: Check, results: dict[str, Result]) -> Result | None:
    """Skip a check if one that it depends on failed, or was itself blocked."""
    for name in check.depends_on:
        dependency = results[name]
        if dependency.status == "fail" or dependency.cause.startswith("not run"):
            return Result(check.name, "skip", 0.0, cause=f"not run: it depends on {name}, which failed")
    return None

"""The numbers: against the reference, against independent implementations, against what was published."""

import torch
from torch import Tensor

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Skip, Subject, as_tuple, floats

BASE = ("inputs_kept", "no_alias", "memory")
VALUES = (*BASE, "values_float64")


def narrowed(x: Tensor) -> Tensor:
    return x.float() if x.is_floating_point() else x


def widened(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


@row(
    "The kernel computes something else than the reference, which is the definition. Mend whichever is wrong.",
    after=BASE,
)
def values_float64(subject: Subject) -> None:
    """float64 agrees with the reference to 1e-10, missing values included."""
    assert subject.arguments, "the operator has no arguments"
    same(subject.call(), subject.defined(), 1e-10, "the result")


@row(
    "float32 loses digits, or does not come back as float32. Accumulate in double, or shift before you square.",
    after=VALUES,
)
def values_float32(subject: Subject) -> None:
    """float32 in, float32 out, to 1e-5 of the reference in float64."""
    narrow = subject.mapped(narrowed)
    got, expected = narrow.call(), narrow.mapped(widened).defined()
    assert all(y.dtype == torch.float32 for y in floats(got)), f"float32 in, {[y.dtype for y in got]} out"
    pairs = [(x, y) for x, y in zip(got, expected) if x.is_floating_point()]
    same([x.double() for x, _ in pairs], [y for _, y in pairs], 1e-5, "the result in float32")


@row(
    "The operator and the independent implementation disagree: check the definition first, then both.",
    after=VALUES,
    once=True,
)
def oracle(subject: Subject) -> None:
    """Agrees with an independent implementation."""
    cases = subject.cases
    if cases.oracle is None:
        raise Skip("the record names no oracle")
    for sample in cases.oracle_samples or cases.samples:
        try:
            expected = cases.oracle(*sample.tensors, **sample.settings)
        except ImportError as missing:
            raise Skip(f"the oracle is not installed: {missing}") from missing
        same(
            Subject(subject.op, cases, sample).call(),
            as_tuple(expected),
            cases.oracle_tolerance,
            f"{sample}: the result",
        )


@row("The result is not what was published. Check the definition against the source.", after=VALUES, once=True)
def golden(subject: Subject) -> None:
    """Agrees with published numbers."""
    if not subject.cases.golden:
        raise Skip("the record has no golden numbers")
    for case in subject.cases.golden:
        got = Subject(subject.op, subject.cases, case.sample).call()
        expected = as_tuple(case.expected)
        same(got[: len(expected)], expected, case.tolerance, f"{case.sample} against {case.source}: the result")

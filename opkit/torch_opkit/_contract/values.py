"""Values: against the reference, against an independent implementation, against published numbers."""

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, Fault, SkipCheck, as_tuple, float_tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.source import locate
from torch_opkit._op import Op

BASE = ("deterministic", "settings", "inputs_unchanged", "no_aliasing", "uninitialized_memory")
PRECISION = "A part computes in float32: no `.float()`, no constants of float32, `dtype=x.dtype` for new tensors."
VALUES = (*BASE, "values_float64")


def to_float(x: Tensor) -> Tensor:
    return x.float() if x.is_floating_point() else x


def to_double(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


def _assert_keeps_double(case: Case) -> None:
    """float64 must not pass through float32: its outputs would all have the bits of a float32."""
    narrow = [y.dtype for y in float_tensors(case.call()) if y.dtype != torch.double]
    if narrow and all(x.dtype == torch.double for x in case.inputs()):
        raise Fault("precision_lost", f"float64 in, {narrow[0]} out", PRECISION, locate(case.op))
    jittered = case.map_tensors(lambda x: x * (1 + 1e-10) if x.is_floating_point() else x)
    outputs = [y for y in float_tensors(jittered.call()) if y.dtype == torch.double and y.isfinite().sum() > 3]
    for y in outputs:
        finite = y[y.isfinite()]
        if torch.equal(finite.float().double(), finite) and not torch.equal(finite.bfloat16().double(), finite):
            message = "float64 in, float64 out, but every element has the bits of a float32"
            raise Fault("precision_lost", message, PRECISION, locate(case.op))


@register(
    "The kernel differs from the reference, which is the definition. Fix whichever is wrong.",
    depends_on=BASE,
)
def values_float64(case: Case) -> None:
    """float64 agrees with the reference to 1e-10, missing values included."""
    assert case.arguments, "the operator has no arguments"
    if not isinstance(case.op, Op):
        _assert_keeps_double(case)
    assert_close(case.call(), case.call_reference(), 1e-10, "result")


@register(
    "float32 loses digits, or does not come back as float32. Accumulate in double, or shift before you square.",
    depends_on=VALUES,
)
def values_float32(case: Case) -> None:
    """float32 in and out agrees with the reference in float64 to 1e-5."""
    single = case.map_tensors(to_float)
    actual = single.call()
    dtypes = [y.dtype for y in float_tensors(actual)]
    assert all(dtype == torch.float32 for dtype in dtypes), f"float32 input: expected float32 outputs; got {dtypes}"
    if not isinstance(case.op, Op):
        return  # how many digits are right depends on the level: the finding of large_level and long_series
    expected = single.map_tensors(to_double).call_reference()
    pairs = [(x, y) for x, y in zip(actual, expected) if x.is_floating_point()]
    assert_close([x.double() for x, _ in pairs], [y for _, y in pairs], 1e-5, "result in float32")


@register(
    "The operator and the independent implementation differ: check the definition first, then both.",
    depends_on=VALUES,
    first_sample_only=True,
)
def oracle(case: Case) -> None:
    """Agrees with an independent implementation."""
    cases = case.cases
    if cases.oracle is None:
        raise SkipCheck("there is no oracle")
    for sample in cases.oracle_samples or cases.samples:
        try:
            expected = cases.oracle(*sample.tensors, **sample.settings)
        except ImportError as error:
            raise SkipCheck(f"the oracle is not installed: {error}") from error
        actual = Case(case.op, cases, sample).call()
        assert_close(actual, as_tuple(expected), cases.oracle_tolerance, f"{sample}: result")


@register(
    "The result differs from the published one. Check the definition against the source.",
    depends_on=VALUES,
    first_sample_only=True,
)
def golden(case: Case) -> None:
    """Agrees with published numbers."""
    if not case.cases.golden:
        raise SkipCheck("there are no golden numbers")
    for example in case.cases.golden:
        actual = Case(case.op, case.cases, example.sample).call()
        expected = as_tuple(example.expected)
        label = f"{example.sample} against {example.source}: result"
        assert_close(actual[: len(expected)], expected, example.tolerance, label)

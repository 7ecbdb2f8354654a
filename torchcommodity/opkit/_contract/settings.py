"""Each setting does something: another value of it changes the result."""

import dis
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from torchcommodity.opkit._cases import Sample
from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.checks import register
from torchcommodity.opkit._contract.compare import assert_bitwise_equal
from torchcommodity.opkit._contract.determinism import outputs_and_gradients
from torchcommodity.opkit._contract.fault import Fault
from torchcommodity.opkit._contract.source import locate, python_functions
from torchcommodity.opkit._op import Op


@register(
    "The result does not depend on a setting: it is not read, or a constant or an earlier call's value stands for it.",
    depends_on=("deterministic",),
    first_sample_only=True,
)
def settings(case: Case) -> None:
    """Another value of a setting changes the result, unless it does not change the reference's either."""
    pairs = list(_pairs(case))
    if not pairs and not isinstance(case.op, Op):
        raise SkipCheck('no setting has two values: pass settings={"window": [3, 5]}')
    for name, one, other in pairs:
        if _same_result(one, other) and _should_change(name, one, other):
            values = f"{one.sample.settings.get(name)!r} and {other.sample.settings[name]!r}"
            message = f"{name}={values} give the same result, to the last bit"
            raise Fault("setting_ignored", message, location=locate(case.op))


def _pairs(case: Case) -> Iterator[tuple[str, Case, Case]]:
    """Samples with the same tensors whose settings differ in one name."""
    samples = case.cases.samples
    for other in samples:
        one = next((s for s in samples if s is not other and len(_differences(s, other)) == 1), None)
        if one is not None:
            yield _differences(one, other)[0], Case(case.op, case.cases, one), Case(case.op, case.cases, other)


def _differences(one: Sample, other: Sample) -> list[str]:
    """Names of the settings that differ; none if the tensors do."""
    if len(one.tensors) != len(other.tensors) or any(x is not y for x, y in zip(one.tensors, other.tensors)):
        return []
    names = [*one.settings, *(name for name in other.settings if name not in one.settings)]
    return [name for name in names if not _equal(one.settings.get(name), other.settings.get(name))]


def _equal(one: Any, other: Any) -> bool:
    return one is other if isinstance(one, Tensor) or isinstance(other, Tensor) else bool(one == other)


def _same_result(one: Case, other: Case) -> bool:
    try:
        assert_bitwise_equal(outputs_and_gradients(one), outputs_and_gradients(other), "result")
    except Exception:  # different, or one of the values is refused
        return False
    return True


def _should_change(name: str, one: Case, other: Case) -> bool:
    """Whether it should have changed the result: as the reference says, or else what the code suggests.

    A flag that the code reads may be about memory or speed, such as `inplace`; one that it never reads is forgotten.
    """
    try:
        assert_bitwise_equal(one.call_reference(), other.call_reference(), "result of the reference")
    except SkipCheck:
        is_flag = isinstance(other.sample.settings[name], (bool, str)) or other.sample.settings[name] is None
        return not is_flag or not _is_read(name, one.op)
    except Exception:  # the reference changes, or refuses a value
        return True
    return False


def _is_read(name: str, op: Any) -> bool:
    """Whether Python code of the operator reads a parameter."""
    functions = python_functions(op)
    codes = [functions[part].__code__ for part in ("forward", "setup_context") if part in functions]
    return any(_loads(name, code) for code in codes)


def _loads(name: str, code: Any) -> bool:
    reads = any(i.opname.startswith("LOAD") and name in _names(i.argval) for i in dis.get_instructions(code))
    return reads or any(_loads(name, constant) for constant in code.co_consts if hasattr(constant, "co_code"))


def _names(argument: Any) -> tuple[Any, ...]:
    return argument if isinstance(argument, tuple) else (argument,)  # Python 3.13 loads two names at once

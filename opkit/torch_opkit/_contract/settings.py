"""Each setting does something: another value of it changes the result."""

import dis
from types import CodeType

from torch import Tensor

from torch_opkit._cases import Sample
from torch_opkit._contract.case import Case, Fault, SkipCheck
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_bitwise_equal
from torch_opkit._contract.determinism import outputs_and_gradients
from torch_opkit._contract.source import locate, python_functions
from torch_opkit._op import Op


@register(
    "The result does not depend on a setting: it is not read, or a constant or an earlier call's value stands for it.",
    depends_on=("deterministic",),
    first_sample_only=True,
)
def settings(case: Case) -> None:
    """Another value of a setting changes the result, unless it does not change the reference's either."""
    samples, pairs = case.cases.samples, list[tuple[str, Case, Case]]()
    for sample in samples:  # with the same tensors, and settings that differ in one name
        partner = next((s for s in samples if s is not sample and len(_differences(s, sample)) == 1), None)
        if partner is not None:
            (name,) = _differences(partner, sample)
            pairs.append((name, Case(case.op, case.cases, partner), Case(case.op, case.cases, sample)))
    if not pairs and not isinstance(case.op, Op):
        raise SkipCheck('no setting has two values: pass settings={"window": [3, 5]}')
    for name, one, other in pairs:
        try:
            assert_bitwise_equal(outputs_and_gradients(one), outputs_and_gradients(other), "result")
        except Exception:  # different, or one of the values is refused
            continue
        if _should_change(name, one, other):
            values = f"{one.sample.settings.get(name)!r} and {other.sample.settings[name]!r}"
            message = f"{name}={values} give the same result, to the last bit"
            raise Fault("setting_ignored", message, location=locate(case.op))


def _differences(one: Sample, other: Sample) -> list[str]:
    """Names of the settings that differ; none if the tensors do."""
    if len(one.tensors) != len(other.tensors) or any(x is not y for x, y in zip(one.tensors, other.tensors)):
        return []
    differences = []
    for name in dict.fromkeys((*one.settings, *other.settings)):
        x, y = one.settings.get(name), other.settings.get(name)
        is_same = x is y if isinstance(x, Tensor) or isinstance(y, Tensor) else bool(x == y)
        if not is_same:
            differences.append(name)
    return differences


def _should_change(name: str, one: Case, other: Case) -> bool:
    """Whether it should have changed the result: as the reference says, or else what the code suggests.

    A flag that the code reads may be about memory or speed, such as `inplace`; one that it never reads is forgotten.
    """
    try:
        assert_bitwise_equal(one.call_reference(), other.call_reference(), "result of the reference")
    except SkipCheck:
        is_flag = isinstance(other.sample.settings[name], (bool, str)) or other.sample.settings[name] is None
        functions = python_functions(one.op)
        codes = [functions[part].__code__ for part in ("forward", "setup_context") if part in functions]
        return not is_flag or not any(_loads(name, code) for code in codes)
    except Exception:  # the reference changes, or refuses a value
        return True
    return False


def _loads(name: str, code: CodeType) -> bool:
    """Whether the code, or a function in it, reads a variable."""
    for instruction in dis.get_instructions(code):
        argument = instruction.argval
        names = argument if isinstance(argument, tuple) else (argument,)  # Python 3.13 loads two names at once
        if instruction.opname.startswith("LOAD") and name in names:
            return True
    return any(_loads(name, constant) for constant in code.co_consts if isinstance(constant, CodeType))

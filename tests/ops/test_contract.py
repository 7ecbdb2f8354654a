"""The contract of every operator, one test per operator and check; `test_compiled.py` has the checks that compile."""

import functools

import pytest

import torch_opkit as opkit
from torch_opkit import CHECKS
from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
EAGER = [check.name for check in CHECKS.values() if not check.compiled]
# of an operator that is only the derivative of others, these are higher derivatives of those, or a long Python loop of
# its reference, and slow; so is what depends on them, since a check runs those that it depends on
HIGHER = {"aot_dispatch", "gradcheck", "long_series"}
for _check in CHECKS.values():  # in the order in which they depend on each other
    if HIGHER.intersection(_check.depends_on):
        HIGHER.add(_check.name)


def is_higher(name: str, check: str) -> bool:
    return name.endswith(("_backward", "_tangent")) and check in HIGHER


@functools.cache
def report(name: str, higher: bool) -> opkit.Report:
    """Of all checks if those of higher derivatives are asked for, which depend on others."""
    checks = [check for check in EAGER if higher or not is_higher(name, check)]
    return opkit.check(opkit.OPERATORS[f"commodity::{name}"], only=checks)


PARAMETERS = [
    pytest.param(name, check, marks=[pytest.mark.slow] if is_higher(name, check) else [])
    for name in NAMES
    for check in EAGER
]


@pytest.mark.parametrize(("name", "check"), PARAMETERS)
def test_contract(name: str, check: str) -> None:
    result = report(name, is_higher(name, check))[check]
    if result.status == "skip":
        pytest.skip(result.cause)
    assert result.status == "pass", str(result)

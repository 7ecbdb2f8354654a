"""The contract over the registry: operator x check. Checks that compile are in `test_compiled.py`, for all at once."""

import functools

import pytest

from torchcommodity import opkit, ops
from torchcommodity.opkit import CHECKS

assert ops.NATIVE is not None  # importing the operators fills the registry
OURS = sorted(name for name in opkit.OPERATORS if name.startswith("commodity::"))
CHEAP = [check.name for check in CHECKS.values() if not check.compiled]


@functools.cache
def report(name: str) -> opkit.Report:
    return opkit.check(opkit.OPERATORS[name], compiled=False)


@pytest.mark.parametrize("check", CHEAP)
@pytest.mark.parametrize("name", OURS)
def test_the_contract_holds(name: str, check: str) -> None:
    result = report(name)[check]
    if result.status == "skip":
        pytest.skip(result.cause)
    assert result.status == "pass", str(result)

"""The contract over the registry: operator x row. The rows that compile are in `test_ops_compiled.py`, all in one."""

import functools

import pytest

from torchcommodity import opkit, ops
from torchcommodity.opkit import ROWS

assert ops.NATIVE is not None  # importing the operators fills the registry
OURS = sorted(name for name in opkit.OPERATORS if name.startswith("commodity::"))
CHEAP = [row.name for row in ROWS.values() if not row.compiled]


@functools.cache
def report(name: str) -> opkit.Report:
    return opkit.check(opkit.OPERATORS[name], compiled=False)


@pytest.mark.parametrize("row", CHEAP)
@pytest.mark.parametrize("name", OURS)
def test_the_contract_holds(name: str, row: str) -> None:
    result = report(name)[row]
    if result.status == "skip":
        pytest.skip(result.cause)
    assert result.status == "pass", str(result)

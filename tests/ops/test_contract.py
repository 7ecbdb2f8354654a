"""The contract of every operator, one test per operator and check; `test_compiled.py` has the checks that compile."""

import functools

import pytest

from torchcommodity import opkit, ops
from torchcommodity.opkit import CHECKS

assert ops.NATIVE is not None  # importing ops registers the operators
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
CHECK_NAMES = [check.name for check in CHECKS.values() if not check.compiled]
SLOW = {
    "dcc_correlation",
    "dcc_correlation_backward",
    "lltm_backward",
    "lstm_backward",
    "parabolic_sar_backward",
    "seasonal_decompose_backward",
    "series_program",
    "series_program_backward",
    "stl",
    "stl_backward",
    "technical_indicators_backward",
}  # the whole contract takes about 10 s each


@functools.cache
def report(name: str) -> opkit.Report:
    return opkit.check(opkit.OPERATORS[f"commodity::{name}"], compiled=False)


@pytest.mark.parametrize("check", CHECK_NAMES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES])
def test_contract(name: str, check: str) -> None:
    result = report(name)[check]
    if result.status == "skip":
        pytest.skip(result.cause)
    assert result.status == "pass", str(result)


@pytest.mark.parametrize("name", sorted(SLOW))
def test_contract_causality(name: str) -> None:
    """What `make test` checks of the slow operators: the values, and that they depend on no later row."""
    report = opkit.check(opkit.OPERATORS[f"commodity::{name}"], only="causal")
    assert report.ok, str(report)

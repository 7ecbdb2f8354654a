"""The contract of every operator, one test per operator and check; `test_compiled.py` has the checks that compile."""

import functools

import pytest

import torch_opkit as opkit
from torch_opkit import CHECKS
from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
EAGER = [check.name for check in CHECKS.values() if not check.compiled]
# not of an operator that is only the derivative of others: gradcheck is their second derivative, and nobody takes more
HIGHER = {
    "aot_dispatch",
    "causal_gradient",
    "forward_mode",
    "func_grad",
    "gradgradcheck",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp_formula",
    "per_sample_gradients",
}


def checks_of(name: str) -> list[str]:
    return [check for check in EAGER if not (name.endswith(("_backward", "_tangent")) and check in HIGHER)]


@functools.cache
def report(name: str) -> opkit.Report:
    return opkit.check(opkit.OPERATORS[f"commodity::{name}"], only=checks_of(name))


@pytest.mark.parametrize(("name", "check"), [(name, check) for name in NAMES for check in checks_of(name)])
def test_contract(name: str, check: str) -> None:
    result = report(name)[check]
    if result.status == "skip":
        pytest.skip(result.cause)
    assert result.status == "pass", str(result)

"""Every operator in float32 on a device without float64, against the CPU in float64."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from torchcommodity import opkit, ops
from torchcommodity.ops import indicators

assert ops.NATIVE is not None  # importing ops registers the operators
FOLDER = Path(__file__).parent
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
pytestmark = pytest.mark.slow


def run(script: str, names: Sequence[str] = ()) -> dict[str, list[str]]:
    """The differences by name, from a process of its own, where the device is registered."""
    output = subprocess.run(
        [sys.executable, FOLDER / script, *names], check=True, capture_output=True, text=True
    ).stdout
    differences: dict[str, list[str]] = json.loads(output)
    return differences


@pytest.fixture(scope="module")
def differences() -> dict[str, list[str]]:
    return run("operators.py")


@pytest.mark.parametrize("name", NAMES)
def test_operator_without_float64_agrees_with_cpu(differences: dict[str, list[str]], name: str) -> None:
    assert not differences[name], "\n".join(differences[name])


def test_functions_and_indicators_without_float64_agree_with_cpu() -> None:
    loops = {name for name in indicators.__all__ if name.startswith("ht_")} | {"mama", "sar", "sarext"}
    names = [name for name in indicators.__all__ if name not in loops | {"lookback"}]
    composed = ["log_returns", "rolling_beta", "rolling_covariance", "rolling_kurt", "rolling_median", "rolling_zscore"]
    assert not [name for name, differences in run("functions.py", [*composed, *names]).items() if differences]

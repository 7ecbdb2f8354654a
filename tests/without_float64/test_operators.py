"""All of `ops` in float32 on a device without float64, against the CPU in float64: library.py as a process."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torch_opkit as opkit
from torchcommodity import ops

assert ops.NATIVE is not None  # importing ops registers the operators
SCRIPT = Path(__file__).with_name("library.py")
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def failures(once: Callable[..., Path]) -> dict[str, Any]:
    """What differs, by group; in a process of its own, where the device is registered."""

    def run(path: Path) -> None:
        process = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        path.write_text(process.stdout)

    results: dict[str, Any] = json.loads(once("operators_without_float64.json", run).read_text())
    return results


@pytest.mark.parametrize("name", NAMES)
def test_operator_without_float64_agrees_with_cpu(failures: dict[str, Any], name: str) -> None:
    assert not failures["operators"][name], "\n".join(failures["operators"][name])


def test_functions_and_indicators_without_float64_agree_with_cpu(failures: dict[str, Any]) -> None:
    assert len(failures["functions"]) > 150
    assert not {name: words for name, words in failures["functions"].items() if words}


def test_fits_moments_and_live_updates_without_float64_agree_with_cpu(failures: dict[str, Any]) -> None:
    assert failures["econometrics"] == []

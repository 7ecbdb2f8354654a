"""Models, layers, losses, tools and training on a device without float64: the script models.py as a process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchcommodity import data, losses, nn
from torchcommodity.models import MODELS
from torchcommodity.training import model_inputs

SCRIPT = Path(__file__).with_name("models.py")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def failures() -> dict[str, list[str]]:
    return run()


def run(*arguments: str) -> dict[str, list[str]]:
    process = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=500)
    assert process.returncode == 0, process.stderr
    results: dict[str, list[str]] = json.loads(process.stdout)
    return results


@pytest.mark.parametrize("group", ["models", "training", "tools", "nn", "losses"])
def test_models_without_float64_agree_with_the_cpu(failures: dict[str, list[str]], group: str) -> None:
    results = {name: words for name, words in failures.items() if name.startswith(f"{group}: ")}
    assert results
    assert not {name: words for name, words in results.items() if words}


def test_models_without_float64_cover_every_model_layer_and_loss(failures: dict[str, list[str]]) -> None:
    no_functions = {"PERSISTENCE", "Correlations", "Regimes", "Reduction"}  # a number and types
    for group, names in (("models", list(MODELS)), ("nn", nn.__all__), ("losses", losses.__all__)):
        assert {f"{group}: {name}" for name in set(names) - no_functions} <= set(failures)


def test_models_without_float64_call_only_operators_of_mps(failures: dict[str, list[str]]) -> None:
    assert failures["operators without a kernel for MPS"] == []


def test_models_without_float64_take_a_curve(futures: data.Panel, tmp_path: Path) -> None:
    inputs = model_inputs(futures.between("2014-01-01", "2014-09-30"), 21)
    torch.save(inputs._asdict(), tmp_path / "inputs.pt")
    results = run("models: with a curve", "--curve", str(tmp_path / "inputs.pt"))
    assert results["models: with a curve"] == []

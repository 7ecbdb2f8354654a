"""Models, layers, losses, tools and training on a device without float64: the script models.py as a process."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from torchcommodity import data, losses, nn
from torchcommodity.models import MODELS
from torchcommodity.training import model_inputs

SCRIPT = Path(__file__).with_name("models.py")
CAPTURE: dict[str, Any] = {"capture_output": True, "text": True}

pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.fixture(scope="module")
def failures(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, once: Callable[..., Path]
) -> dict[str, list[str]]:
    """What differs, by name; in a process of its own, where the device is registered."""

    def run(path: Path) -> None:
        process = subprocess.run([sys.executable, str(SCRIPT), *_curve(request, tmp_path_factory)], **CAPTURE)
        assert process.returncode == 0, process.stderr
        path.write_text(process.stdout)

    results: dict[str, list[str]] = json.loads(once("models_without_float64.json", run).read_text())
    return results


def _curve(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments for inputs with a curve, where the prices of futures are at hand."""
    try:
        futures = request.getfixturevalue("futures")
    except pytest.skip.Exception:
        return []
    path = tmp_path_factory.mktemp("curve") / "inputs.pt"
    torch.save(model_inputs(futures.between("2014-01-01", "2014-09-30"), 21)._asdict(), path)
    return ["--curve", str(path)]


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


def test_models_without_float64_take_a_curve(futures: data.Panel, failures: dict[str, list[str]]) -> None:
    assert failures["models: with a curve"] == []

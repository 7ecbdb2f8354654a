"""The scripts of `make test-cuda` say that there is no GPU, and write nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).parents[1] / "cuda"
BENCHMARK = SCRIPTS.parents[1] / "benchmarks" / "cuda_kernels.py"
pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.mark.parametrize("script", [SCRIPTS / "run.py", BENCHMARK], ids=lambda path: path.stem)
def test_cuda_scripts_say_that_there_is_no_torch(script: Path) -> None:
    without_packages = [sys.executable, "-S", str(script)]
    process = subprocess.run(without_packages, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert process.returncode == 1
    assert process.stderr.startswith("no torch in ")
    assert "GPU_PYTHON=" in process.stderr
    assert "Traceback" not in process.stderr


def run(script: Path, *arguments: str, **variables: str) -> str:
    command = [sys.executable, str(script), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]
    return process.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "script", [SCRIPTS / "run.py", SCRIPTS / "sanitizer.py", BENCHMARK], ids=lambda path: path.stem
)
def test_cuda_scripts_say_that_there_is_no_gpu(script: Path, tmp_path: Path) -> None:
    assert run(script, TORCHCOMMODITY_CUDA_OUT=str(tmp_path)).startswith("no GPU: torch")
    assert not list(tmp_path.iterdir())

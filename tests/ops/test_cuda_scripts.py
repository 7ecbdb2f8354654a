"""The scripts of `make test-cuda` without a GPU: they say so and write nothing; on the CPU, all parts pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).parents[1] / "cuda"
BENCHMARK = SCRIPTS.parents[1] / "benchmarks" / "cuda_kernels.py"
RUN = BENCHMARK.with_name("gpu_run.py")
pytestmark = pytest.mark.process


@pytest.mark.slow
@pytest.mark.parametrize("script", [RUN, BENCHMARK], ids=lambda path: path.stem)
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


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("script", [RUN, SCRIPTS / "sanitizer.py", BENCHMARK], ids=lambda path: path.stem)
def test_cuda_scripts_say_that_there_is_no_gpu(script: Path, tmp_path: Path) -> None:
    assert run(script, TORCHCOMMODITY_CUDA_OUT=str(tmp_path)).startswith("no GPU: torch")
    assert not list(tmp_path.iterdir())


SANITIZER = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
"$@" && echo "========= ERROR SUMMARY: 0 errors"
"""


@pytest.mark.release
def test_all_parts_for_a_gpu_pass_a_rehearsal_on_the_cpu(tmp_path: Path) -> None:
    sanitizer = tmp_path / "compute-sanitizer"
    sanitizer.write_text(SANITIZER)
    sanitizer.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    output = run(RUN, TORCHCOMMODITY_STAND_IN="cpu", TORCHCOMMODITY_CUDA_OUT=str(tmp_path / "out"), PATH=path)
    assert output.rstrip().endswith("all parts passed")
    page = (tmp_path / "out" / "cuda.md").read_text()
    assert page.count("cpu in place of a GPU") >= 8


@pytest.mark.release
def test_parts_that_passed_are_recorded_for_the_next_run(tmp_path: Path) -> None:
    settings = {"TORCHCOMMODITY_STAND_IN": "cpu", "TORCHCOMMODITY_CUDA_OUT": str(tmp_path)}
    run(RUN, "build", "racecheck", **settings)
    assert (tmp_path / "parts.passed").read_text().split()[1:] == ["build", "racecheck"]

"""Tested versions of torch, and what `make test-versions` says without a wheel; the runs themselves are its own."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from torch_opkit import _torch_private as private

VERSIONS = Path(__file__).parent / "versions"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> dict:
    """Names of the script."""
    monkeypatch.syspath_prepend(str(VERSIONS))
    return runpy.run_path(str(VERSIONS / "run.py"))


def test_tested_versions_are_those_of_the_script(run: dict) -> None:
    assert run["TORCH"] == private.TESTED


def test_pairs_of_the_script(run: dict) -> None:
    assert run["pairs"](["2.11"], ["3.12", "3.14t"]) == [("2.11", "3.12"), ("2.11", "3.14t")]
    assert run["pairs"]([], ["3.14"]) == [(torch, "3.14") for torch in private.TESTED]
    assert {torch for torch, _ in run["pairs"]([], [])} == set(private.TESTED)


def test_script_without_a_wheel_says_how_to_build_one(run: dict, tmp_path: Path) -> None:
    run["find_wheel"].__globals__["ROOT"] = tmp_path
    with pytest.raises(SystemExit, match=r"dist/ must contain a wheel for .*; run `make wheel` first"):
        run["find_wheel"]()


def test_import_of_operators_does_not_import_dynamo() -> None:
    """It takes seconds, and with Triton it enables the GIL of a free-threaded Python."""
    code = "import sys, torchcommodity.models, torchcommodity.ops; assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

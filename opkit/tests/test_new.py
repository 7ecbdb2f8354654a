"""`opkit.new` and the command: the package builds and passes the contract, and so does the tutorial's."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torch_opkit as opkit

PAGE = Path(__file__).parents[1] / "docs" / "first-operator.md"
CHECK = """
import doctest, sys, halve
import torch_opkit as opkit
print("docstring:", doctest.testmod(sys.modules["halve.halve"]))
print(opkit.check(halve.operator, compiled=False))
"""


def in_folder(folder: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(opkit.__file__).parents[1])}
    process = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.slow
@pytest.mark.compile
def test_new_builds_and_passes_the_contract(run: Callable[..., Any], tmp_path: Path) -> None:
    result = run("new", "halve", "--cuda", "--dest", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "halve"
    assert (folder / "halve/halve.cu").exists()
    in_folder(folder, "setup.py", "-q", "build_ext", "--inplace")
    assert "passed" in in_folder(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "the CUDA kernel" in (folder / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.compile
def test_new_passes_the_contract_after_the_tutorial(tmp_path: Path) -> None:
    folder = opkit.new("halve", tmp_path)
    for step in re.findall(r"^```diff\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL):
        subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=step, cwd=folder, text=True, check=True)
    in_folder(folder, "setup.py", "-q", "build_ext", "--inplace")
    report = in_folder(folder, "-c", CHECK)
    assert "docstring: TestResults(failed=0, attempted=" in report
    assert "attempted=0" not in report
    assert " 0 fail" in report


def test_new_without_cuda_does_not_mention_it(tmp_path: Path) -> None:
    folder = opkit.new("halve", tmp_path / "deep" / "er")
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("cuda" in text.lower() or "$" in text for text in texts)


@pytest.mark.parametrize("name", ["Halve", "2nd", "class", "a-b", ""])
def test_new_rejects_a_name_that_is_not_an_identifier(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name must be a Python identifier"):
        opkit.new(name, tmp_path)


def test_new_does_not_overwrite(tmp_path: Path) -> None:
    opkit.new("halve", tmp_path)
    with pytest.raises(FileExistsError, match="exists; choose another"):
        opkit.new("halve", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["halve"]

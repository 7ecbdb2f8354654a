"""`op new`: the package that it writes builds, and keeps the contract."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torchcommodity import opkit
from torchcommodity.cli._op import app
from torchcommodity.opkit import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "writing-an-op.md"
FAST_CHECKS = [f"[{check.name}]" for check in CHECKS.values() if not check.compiled]
JUDGED = "import halve; from torchcommodity import opkit; print(opkit.check(halve.operator, compiled=False))"
CHOSEN = " or ".join(["kernel_is_loaded", "halve", *FAST_CHECKS])


def run(folder: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(opkit.__file__).parents[2])}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_package_builds_and_keeps_its_contract(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new", "halve", "--cuda", "--dest", str(tmp_path)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "halve"
    assert (folder / "halve/halve.cu").exists()
    run(folder, "setup.py", "-q", "build_ext", "--inplace")
    assert "passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", CHOSEN)
    assert "the CUDA kernel" in (folder / "README.md").read_text()


def test_the_page_holds_word_by_word(tmp_path: Path) -> None:
    folder = opkit.new("halve", tmp_path)
    for step in re.findall(r"^```diff\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL):
        subprocess.run(["git", "apply", "--unidiff-zero", "-"], input=step, cwd=folder, text=True, check=True)
    run(folder, "setup.py", "-q", "build_ext", "--inplace")
    run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "halve")  # the docstring
    assert "0 fail" in run(folder, "-c", JUDGED)


def test_without_cuda_nothing_speaks_of_it(tmp_path: Path) -> None:
    folder = opkit.new("halve", tmp_path / "deep" / "er")
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any("cuda" in text.lower() or "$" in text for text in texts)


@pytest.mark.parametrize("name", ["Halve", "2nd", "class", "a-b", ""])
def test_a_name_that_python_cannot_import_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a name must be a Python identifier"):
        opkit.new(name, tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    opkit.new("halve", tmp_path)
    with pytest.raises(FileExistsError, match="is there already"):
        opkit.new("halve", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["halve"]

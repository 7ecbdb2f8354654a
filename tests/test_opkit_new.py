"""`op new`: the package that it writes builds, and keeps the contract."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torchcommodity import opkit
from torchcommodity.cli.op import app
from torchcommodity.opkit.check import ROWS


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
    rows = [row.name for row in ROWS.values() if not row.compiled]
    chosen = " or ".join(["kernel_is_loaded", "halve", *(f"[{row}]" for row in rows)])
    assert "passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen)
    assert "the CUDA kernel" in (folder / "README.md").read_text()


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

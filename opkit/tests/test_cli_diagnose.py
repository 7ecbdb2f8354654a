"""`opkit diagnose`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
MODULE = """
import torch
from torch import nn

class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.first(x).detach())

def broken():
    return Broken(), (torch.ones(8, 3), torch.ones(8, 1)), nn.functional.mse_loss

def correct():
    return nn.Linear(3, 1), (torch.ones(8, 3), torch.zeros(8, 1)), nn.functional.mse_loss

def crashing():
    return nn.Linear(3, 1), torch.ones(8, 4), lambda output: output.mean()

def raising():
    raise KeyError("prices")

def exiting():
    raise SystemExit

class Exiting(nn.Linear):
    def forward(self, x):
        raise SystemExit(0)

def exiting_model():
    return Exiting(3, 1), torch.ones(8, 3), lambda output: output.mean()

def no_model():
    return "model", torch.ones(8, 3), None

def only_a_model():
    return nn.Linear(3, 1)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module in the current folder, with a path that no other test has imported."""
    path = tmp_path / "models_to_diagnose.py"
    path.write_text(MODULE)
    (tmp_path / "not_python.py").write_text("setup = (")
    monkeypatch.chdir(tmp_path)
    return path


def test_diagnose_prints_a_fault_with_its_line(run: Run, module: Path) -> None:
    result = run("diagnose", "models_to_diagnose:broken")
    assert result.exit_code == 1
    assert f"{module}:11" in result.stdout
    document = json.loads(run("diagnose", "models_to_diagnose:broken", "--json").stdout)
    assert document["findings"][0]["kind"] == "detach"


def test_diagnose_of_a_correct_model_succeeds(run: Run) -> None:
    result = run("diagnose", "models_to_diagnose:correct")
    assert (result.exit_code, result.stdout.strip()[:3]) == (0, "ok:"), result.stderr


def test_diagnose_tells_a_crash_by_its_exit_code(run: Run, module: Path) -> None:
    result = run("diagnose", "models_to_diagnose:crashing")
    assert (result.exit_code, "mat1 and mat2" in result.stdout) == (4, True), result.stderr
    result = run("diagnose", "models_to_diagnose:raising")
    assert result.exit_code == 4
    assert "models_to_diagnose:raising raised KeyError: 'prices'" in result.stderr
    result = run("diagnose", "not_python:setup")
    assert (result.exit_code, "importing not_python:setup raised SyntaxError" in result.stderr) == (4, True), (
        result.stderr
    )


@pytest.mark.parametrize(
    ("name", "message"), [("exiting", "ended by sys.exit(None)"), ("exiting_model", "ended by sys.exit(0)")]
)
def test_diagnose_of_code_that_exits_is_a_crash(run: Run, name: str, message: str) -> None:
    result = run("diagnose", f"models_to_diagnose:{name}")
    assert (result.exit_code, message in result.stderr) == (4, True), result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("models_to_diagnose:absent", "cannot import models_to_diagnose:absent"),
        ("nothing", "expected MODULE:NAME, such as mine.ops:square; got 'nothing'"),
        ("models_to_diagnose:only_a_model", "must return (model, batch, loss_fn); got Linear"),
        ("models_to_diagnose:no_model", "model must be an nn.Module; got str"),
    ],
)
def test_diagnose_names_what_cannot_be_diagnosed(run: Run, path: str, message: str) -> None:
    result = run("diagnose", path)
    assert result.exit_code == 2
    assert message in result.stderr

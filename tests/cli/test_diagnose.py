"""`torchcommodity diagnose`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from torchcommodity.cli._application import app

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

def healthy():
    return nn.Linear(3, 1), (torch.ones(8, 3), torch.zeros(8, 1)), nn.functional.mse_loss

def wrong():
    return nn.Linear(3, 1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models_to_diagnose.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_fault_is_told_with_its_line(here: Path) -> None:
    result = CliRunner().invoke(app, ["diagnose", "models_to_diagnose:broken"])
    assert result.exit_code == 1
    assert f"{here}/models_to_diagnose.py:11" in result.stdout
    data = json.loads(CliRunner().invoke(app, ["diagnose", "models_to_diagnose:broken", "--json"]).stdout)
    assert data["findings"][0]["kind"] == "detach"


def test_the_healthy_succeed() -> None:
    result = CliRunner().invoke(app, ["diagnose", "models_to_diagnose:healthy"])
    assert (result.exit_code, result.stdout.strip()[:7]) == (0, "healthy")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("models_to_diagnose:absent", "there is no"),
        ("nothing", "say package.module:name"),
        ("models_to_diagnose:wrong", "must give"),
    ],
)
def test_what_is_not_there_is_refused_in_words(path: str, words: str) -> None:
    result = CliRunner().invoke(app, ["diagnose", path])
    assert result.exit_code == 2
    assert words in result.stderr

"""`torchcommodity optimize` and `profile`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_optimize_rejects_a_model_that_was_fitted_on_test_years(run: Run, error: Error, fitted: Path) -> None:
    result = run("optimize", fitted, "--first-year", 2015)
    assert result.exit_code == 2
    assert "fitted on prices before --first-year 2015; got one that was fitted through 2016-12-30" in error(result)


@pytest.mark.slow
def test_optimize_writes_a_model_and_a_table(run: Run, tmp_path: Path) -> None:
    embedded(["WTI"]).between("2013-01-01", "2017-12-31").to_pandas().to_csv(tmp_path / "prices.csv")
    (tmp_path / "short.toml").write_text(
        '[train]\nepochs = 1\nwindow = 63\n[model]\nname = "har-lstm"\nhidden = 8\n[model.har]\nhorizons = [5, 21]\n'
    )
    command = ("optimize", "--data", tmp_path / "prices.csv", "--config", tmp_path / "short.toml", "--no-compile")
    command += ("--rows", 300, "--batch", 8, "--calls", 5, "--out", tmp_path / "out")
    result = run(*command)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out" / "optimize.csv")
    assert table["variant"].iloc[0] == "original"
    assert run("predict", tmp_path / "out" / "optimized.safetensors", "--data", tmp_path / "prices.csv").exit_code == 0


def test_profile_prints_stages_and_writes_a_trace(run: Run, fitted: Path, tmp_path: Path) -> None:
    result = run("profile", fitted, "--rows", 150, "--trace", tmp_path / "trace.json")
    assert result.exit_code == 0, result.output
    assert "econometric part" in result.stdout
    assert (tmp_path / "trace.json").exists()


MODULE = """
import torch
from torch import nn

def network():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh()), [(torch.ones(2, 4), torch.ones(2, 8))], nn.functional.mse_loss

def without_loss():
    return network()[:2]

def only_a_model():
    return nn.Linear(3, 1)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models_to_profile.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "models_to_profile", raising=False)


def test_profile_of_a_factory_includes_training_and_sorts_by_memory(module: None, run: Run) -> None:
    result = run("profile", "models_to_profile:network", "--train", "--sort", "memory", "--top", 3, "--steps", 2)
    assert result.exit_code == 0, result.output
    assert "2 training steps on cpu" in result.stdout
    assert "Operators by memory" in result.stdout
    profile = json.loads(run("profile", "models_to_profile:without_loss", "--json").stdout)
    assert (profile["training"], profile["steps"]) == (False, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("models_to_profile:without_loss", "--train"), "--train needs a loss; return (model, batches, loss_fn)"),
        (("models_to_profile:only_a_model",), "must return (model, batches) or (model, batches, loss_fn); got Linear"),
        (("models_to_profile:nothing",), "cannot import models_to_profile:nothing"),
        (("nothing.safetensors",), "does not exist; a model of your own is package.module:function"),
    ],
)
def test_profile_rejects_what_is_no_model(
    module: None, run: Run, error: Error, arguments: tuple[str, ...], message: str
) -> None:
    result = run("profile", *arguments)
    assert result.exit_code == 2
    assert message in error(result)

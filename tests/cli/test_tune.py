"""`torchcommodity tune`: settings that `fit` reads."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from torchcommodity import training
from torchcommodity.data import Panel
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, Trial, TuneResult, load_config

Run = Callable[..., Result]
Error = Callable[[Result], str]


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text("[train]\nepochs = 1\nwindow = 63\nbatch_size = 4\n")
    return path


def test_tune_on_the_default_data_writes_settings(run: Run, error: Error, short: Path, tmp_path: Path) -> None:
    command = ("tune", "--model", "har-lstm", "--config", short, "--trials", 2, "--out", tmp_path / "new" / "best.toml")
    result = run(*command)
    text = " ".join(result.stdout.split())
    assert "2018-01-02 to 2019-12-31; lower is better" in text
    assert "Best of 2 trials: -" in text
    assert result.exit_code == 0
    assert isinstance(load_config(tmp_path / "new" / "best.toml").model, HarLstmConfig)
    assert "address must be None for the local executor" in error(run(*command, "--address", "10.0.0.1:6379"))


def test_tune_writes_the_best_settings(run: Run, prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(panel: Panel, config: FitConfig, **settings: Any) -> TuneResult:
        assert str(panel.dates[-1]) == "2017-12-29"
        assert settings["signed"] == ("BRENT",)
        best = replace(config, train=replace(config.train, epochs=3))
        return TuneResult(best, (Trial({"train.epochs": 3}, -0.25),), "2017-01-03", "2017-12-29", ("WTI",))

    monkeypatch.setattr(training, "tune", search)
    command = ("tune", "--model", "har-lstm", "--data", prices, "--through", "2017-12-31")
    result = run(*command, "--signed", "BRENT", "--out", tmp_path / "best.toml")
    assert result.exit_code == 0, result.output
    assert "-0.250 %" in result.stdout
    assert "Excluded, with too short a history: WTI." in result.stdout
    assert load_config(tmp_path / "best.toml").train.epochs == 3


def test_tune_names_the_missing_extra(run: Run, error: Error, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = run("tune", "--model", "har-lstm")
    assert result.exit_code == 2
    assert "pip install 'torchcommodity[tune]'" in error(result)
    assert "[forecast]" not in error(result)

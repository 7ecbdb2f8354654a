"""A network of one's own goes through the commands: its class by `--model`, its settings in a file."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded
from torchcommodity.forecast import Forecaster

Run = Callable[..., Result]
Error = Callable[[Result], str]
MODEL = ("--model", "desk_networks:Mlp")
CODE = """
from torch import nn

class Mlp(nn.Module):
    lookback = 30

    def __init__(self, assets, horizons, levels, lookback, hidden=3):
        super().__init__()
        self.shape, self.hidden = (len(horizons), assets, len(levels)), nn.Linear(lookback * assets, hidden)
        self.output = nn.Linear(hidden, len(horizons) * assets * len(levels))

    def forward(self, prices):
        return 0.1 * self.output(self.hidden((prices / prices[:, -1:]).log().flatten(1))).unflatten(-1, self.shape)
"""


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with a module of networks, prices and settings, from which commands run."""
    (tmp_path / "desk_networks.py").write_text(CODE)
    (tmp_path / "config.toml").write_text("[model.settings]\nhidden = 5\n[train]\nepochs = 1\n")
    embedded(["WTI"]).between("2012-01-01", "2016-12-31").to_pandas().to_csv(tmp_path / "prices.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_commands_load_a_network_by_its_import_path(run: Run, error: Error, network: Path) -> None:
    data, fitted = ("--data", "prices.csv"), "own.safetensors"
    result = run("fit", *data, *MODEL, "--config", "config.toml", "--out", fitted)
    assert result.exit_code == 0, result.output
    assert "Fitted desk_networks:Mlp on 1 symbol" in result.stdout
    loaded = Forecaster.load(fitted, model="desk_networks:Mlp")
    assert loaded.model.network.hidden.out_features == 5
    refused = run("predict", fitted, *data)
    assert refused.exit_code == 2
    assert "desk_networks:Mlp: pass model= or --model" in error(refused)
    result = run("predict", fitted, *MODEL, *data, "--out", "own.csv")
    assert result.exit_code == 0, result.output
    for command in (
        ("simulate", fitted, *MODEL, *data, "--paths", 20, "--horizon", "1w"),
        ("risk", fitted, *MODEL, *data),
        ("export", fitted, *MODEL),
        ("batch", fitted, *MODEL, *data, "--out", "own.duckdb"),
        ("fit", "--config", fitted, *MODEL, *data, "--out", "again.safetensors"),
        ("forecast", *MODEL, *data, "--config", "config.toml", "--out", "report"),
        ("profile", fitted, *MODEL, *data, "--steps", 1, "--rows", 400),
    ):
        result = run(*command)
        assert result.exit_code == 0, (command, result.output)
    assert "desk_networks:Mlp" in Path("report/report.html").read_text()
    assert Path("again.safetensors").read_bytes() == Path(fitted).read_bytes()
    assert run("predict", "own.pt2", *data, "--out", "artifact.csv").exit_code == 0
    own, exported = (pd.read_csv(name) for name in ("own.csv", "artifact.csv"))
    pd.testing.assert_frame_equal(own, exported, rtol=1e-5)
    assert "needs no class" in error(run("predict", "own.pt2", *MODEL, *data))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("Mlp", "expected package.module:Name"),
        ("desk_networks:Nothing", "no Nothing in desk_networks"),
        ("no_such_module:Mlp", "No module named 'no_such_module'"),
        ("broken_networks:Mlp", "the module raises SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_said(run: Run, error: Error, network: Path, model: str, message: str) -> None:
    Path("broken_networks.py").write_text("class Mlp(\n")
    command = ("fit", "--data", "prices.csv", *MODEL, "--config", "config.toml", "--out", "own.safetensors")
    assert run(*command).exit_code == 0
    result = run("predict", "own.safetensors", "--model", model, "--data", "prices.csv")
    assert result.exit_code == 2
    assert message in error(result)


def test_tune_takes_a_network(run: Run, error: Error, network: Path) -> None:
    command = ("tune", "--data", "prices.csv", *MODEL, "--config", "config.toml", "--trials", 2, "--years", 1)
    result = run(*command, "--through", "2016-12-31", "--out", "best.toml")
    assert result.exit_code == 0, result.output
    assert "model.settings.hidden" in result.stdout
    result = run("fit", "--data", "prices.csv", "--config", "best.toml", "--out", "best.safetensors")
    assert result.exit_code == 0, result.output

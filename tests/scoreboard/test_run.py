"""A stranger's file through the command line, against an independent computation of its loss."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from torchcommodity.cli._application import app
from torchcommodity.data import embedded
from torchcommodity.scoreboard import ForecastFunction, Scoreboard, Task, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def board(task: Task, submission: pd.DataFrame, forecaster: ForecastFunction) -> Scoreboard:
    sparse = submission.drop(index=submission[submission["horizon"] == 5].index[[3]])
    tables = {"file": sparse, "monthly": submission[submission["horizon"] == 21]}
    return run(task, functions={"function": forecaster}, tables=tables)


def pinball(outcomes: pd.DataFrame, submission: pd.DataFrame, horizon: int) -> float:
    """Mean pinball loss of log-returns, one quantile at a time."""
    table = outcomes.merge(submission, on=["origin", "symbol", "horizon"])
    table = table[table["horizon"] == horizon]
    target, losses = np.log(table["outcome"] / table["price"]), []
    for level in [name for name in submission.columns if name.startswith("0.")]:
        error = target - np.log(table[level] / table["price"])
        losses.append(np.where(error >= 0, float(level) * error, (float(level) - 1) * error).mean())
    return float(np.mean(losses))


def test_loss_is_that_of_an_independent_computation(task: Task, submission: pd.DataFrame, board: Scoreboard) -> None:
    for horizon in task.horizons:
        score = board.score("function", horizon)
        assert score is not None
        assert score.pinball == pytest.approx(pinball(task.outcomes(), submission, horizon), rel=1e-9)
    month = [board.score(name, 21) for name in ("monthly", "function")]
    assert month[0] is not None
    assert month[1] is not None
    assert month[0].pinball == pytest.approx(month[1].pinball, rel=1e-12)


def test_a_missing_forecast_is_the_reference(task: Task, board: Scoreboard) -> None:
    score, full = (board.score(name, 5) for name in ("file", "function"))
    assert score
    assert full
    assert (score.n, score.share) == (full.n, pytest.approx(1 - 1 / full.n))
    assert score.pinball != full.pinball
    assert abs(score.pinball - full.pinball) * full.n < 1


def test_a_horizon_that_is_not_submitted_is_not_scored(board: Scoreboard) -> None:
    assert [row.horizon for row in board.scores if row.model == "monthly"] == [21]
    note = next(entry.note for entry in board.entries if entry.name == "monthly")
    assert note == "not scored at 1 week: none; 3 months: none; 6 months: none"
    assert board.ranking()[-1].name in ("monthly", "theta")
    assert "| monthly | not scored |" in board.to_markdown()
    ranked = next(row for row in board.ranked_entries() if row.entry.name == "monthly")
    assert ranked.place is None
    assert np.isnan(ranked.mean_skill)
    assert [score is not None for score in ranked.scores] == [False, True, False, False]


def test_ranked_entries_have_places_by_mean_skill(board: Scoreboard) -> None:
    rows = [row for row in board.ranked_entries() if row.place is not None]
    assert [row.place for row in rows] == list(range(1, len(rows) + 1))
    assert [row.mean_skill for row in rows] == sorted((row.mean_skill for row in rows), reverse=True)


def test_reference_and_default_are_rows(board: Scoreboard) -> None:
    reference, default = board.score("har", 5), board.score("har-garch", 5)
    assert reference
    assert default
    assert (reference.skill, default.gain) == (0, 0)
    assert np.isnan(reference.p_reference)
    assert reference.p_default == pytest.approx(default.p_reference)


def test_run_rejects_a_taken_name(task: Task, forecaster: ForecastFunction) -> None:
    with pytest.raises(ValueError, match=r"a name of its own, other than har-garch, .*; got garch"):
        run(task, functions={"garch": forecaster})


def test_a_network_of_the_user_is_a_row(task: Task) -> None:
    board = run(task, models={"own": Levels, "lstm": "har-lstm"}, without=["autoarima", "autoets", "theta"])
    sources = {entry.name: entry.source for entry in board.entries}
    assert (sources["own"], sources["lstm"]) == ("model", "model")
    assert np.isfinite(board.mean_skill("own"))
    assert board.mean_skill("lstm") != board.mean_skill(board.default)
    with pytest.raises(ValueError, match="every model must have a name of its own"):
        run(task, models={"har-garch": Levels})


class Levels(nn.Module):
    """The same quantiles whatever the prices."""

    def __init__(self, assets: int, horizons: tuple[int, ...], levels: tuple[float, ...]) -> None:
        super().__init__()
        self.quantiles = nn.Parameter(torch.zeros(len(horizons), assets, len(levels)))

    def forward(self, prices: Tensor) -> Tensor:
        return 0.1 * self.quantiles.expand(len(prices), -1, -1, -1)


def test_run_rejects_an_unknown_model_to_leave_out(task: Task) -> None:
    with pytest.raises(ValueError, match="without must be among autoarima, autoets, theta; got 'arima'"):
        run(task, without=["arima"])


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("prices") / "prices.csv"
    embedded(["WTI", "HENRY_HUB"]).between("2010-01-01", "2016-12-31").to_pandas().to_csv(path)
    return path


def test_command_scores_a_file_and_a_function(prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["scoreboard", "--data", str(prices), "--first-year", "2016"]
    done = CliRunner().invoke(app, [*command, "--template", "template.csv"])
    assert done.exit_code == 0, done.output
    template = pd.read_csv("template.csv")
    levels = {f"{k / 20:g}": template["price"] * np.exp((k - 10) / 50) for k in range(1, 20)}
    template.assign(**levels).to_csv("constant.csv", index=False)
    Path("flat.py").write_text("def flat(panel, horizons, levels):\n    raise KeyError(panel.dates[-1])\n")
    done = CliRunner().invoke(app, [*command, "--quantiles", "constant.csv", "--out", "out"])
    assert done.exit_code == 0, done.output
    assert "constant" in done.stdout
    scores = json.loads(Path("out/scoreboard.json").read_text())
    assert scores["fingerprint"] in done.stdout
    assert {path.suffix for path in Path("out").iterdir()} == {".html", ".csv", ".json", ".md"}
    done = CliRunner().invoke(app, [*command, "--function", "flat:flat"])
    assert done.exit_code == 4
    assert "flat:flat raises KeyError" in done.stderr
    assert "flat.py:2" in done.stderr


def test_command_rejects_prices_of_its_own_for_a_track() -> None:
    done = CliRunner().invoke(app, ["scoreboard", "--symbols", "WTI"])
    assert done.exit_code == 2
    assert "fixed; got 'WTI' without --data" in " ".join(done.stderr.split())

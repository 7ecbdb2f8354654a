"""`torchcommodity risk`: the losses of the library in one table."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded
from torchcommodity.forecast import Forecaster

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_risk_writes_positions_and_the_portfolio(run: Run, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "risk.csv"
    result = run("risk", fitted, "--weights", "WTI=-1", "--out", out)
    assert result.exit_code == 0, result.output
    assert "95 %" in result.stdout
    table = pd.read_csv(out, keep_default_na=False).set_index(["symbol", "side", "horizon"])
    forecaster = Forecaster.load(fitted)
    forecast = forecaster.predict(embedded())
    low, high = forecast.log_returns[:, 0, [0, -1]].expm1().T.tolist()
    assert table.loc[("WTI", "long"), "value_at_risk"].tolist() == pytest.approx([-x for x in low])
    assert table.loc[("WTI", "short"), "value_at_risk"].tolist() == pytest.approx(high)
    assert (table["expected_shortfall"] > table["value_at_risk"]).all()
    # a short position: the margins are the quantiles, less the part of their center that no position earns
    held = table.loc[("portfolio", ""), "value_at_risk"]
    location = forecaster.simulate(embedded(), 1).location.cumsum(0)[[h - 1 for h in forecast.horizons], 0]
    earned = (forecast.log_returns[:, 0, -1] - location).expm1().tolist()
    assert held.tolist() == pytest.approx(earned, rel=0.03)


def test_risk_rejects_bad_options(run: Run, error: Error, fitted: Path) -> None:
    assert "--weights: expected symbols of the model, WTI; got COPPER" in error(
        run("risk", fitted, "--weights", "COPPER=1")
    )
    assert "--weights: expected each symbol once" in error(run("risk", fitted, "--weights", "WTI=half"))
    assert "expected a number in (0, 1); got 95" in error(run("risk", fitted, "--level", 95))

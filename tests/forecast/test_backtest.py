"""Walk-forward backtest on real prices: every row is forecast from the past alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel, to_panel
from torchcommodity.forecast import Backtest
from torchcommodity.training import FitConfig

FIVE = ["SOYOIL", "SOYBEAN", "SOYMEAL", "CORN", "WTI"]


def test_backtest_has_every_forecast_in_every_row_of_the_test_years(backtest_panel: Panel, backtest: Backtest) -> None:
    assert backtest.origins[0] == backtest_panel.between("2013-01-01", None).dates[0]
    assert backtest.origins[-1] == backtest_panel.dates[-1]
    assert backtest.model == "har-lstm"
    assert list(backtest.quantiles) == ["har-lstm", "har-garch", *forecast.baselines()]
    rows = len(backtest.origins)
    for name, quantiles in backtest.quantiles.items():
        assert quantiles.shape == (rows, 4, 2, 19), name
        assert quantiles.isfinite().all(), name
        assert (quantiles.diff(dim=-1) >= 0).all(), name
        assert backtest.variances[name].shape == (rows, 4, 2), name
    assert len(backtest.fits) == 1
    assert list(backtest.mix) == ["2013", "2014"]


def test_backtest_does_not_look_ahead(backtest_panel: Panel, backtest: Backtest, one_epoch: FitConfig) -> None:
    frame = backtest_panel.to_pandas()
    frame.loc["2013-07-01":] = frame.loc["2013-07-01":].iloc[::-1].to_numpy()
    other = forecast.backtest(frame, one_epoch, first_year=2013)
    rows = int((backtest.origins < np.datetime64("2013-07-01")).sum())
    year = int((backtest.origins < np.datetime64("2014-01-01")).sum())
    assert other.fits == backtest.fits
    assert torch.equal(other.mix["2013"], backtest.mix["2013"])
    assert not torch.equal(other.mix["2014"], backtest.mix["2014"])
    for name, quantiles in backtest.quantiles.items():
        assert torch.equal(other.quantiles[name][:rows], quantiles[:rows]), name
        assert not torch.equal(other.quantiles[name][year:], quantiles[year:]), name


def test_backtest_between_drops_targets_that_end_later(backtest: Backtest) -> None:
    year = backtest.between(2013, 2013)
    assert year.origins[-1] < np.datetime64("2014-01-01")
    for i, horizon in enumerate(year.horizons):
        assert year.targets[-horizon:, i].isnan().all()
        assert torch.equal(
            year.targets[:-horizon, i].nan_to_num(), backtest.targets[: len(year.origins)][:-horizon, i].nan_to_num()
        )


def test_backtest_to_pandas_has_a_row_per_forecast(backtest: Backtest) -> None:
    table = backtest.to_pandas(["har-lstm", "ewma"])
    assert list(table.columns) == ["origin", "symbol", "horizon", "date", "model", "level", "forecast", "target"]
    assert len(table) == 2 * len(backtest.origins) * 4 * 2 * 19
    origin = pd.Timestamp(str(backtest.origins[7]))
    at = (table.origin == origin) & (table.symbol == "BRENT") & (table.horizon == 21) & (table.level == 0.9)
    row = table[at & (table.model == "ewma")].squeeze()
    assert row.forecast == backtest.quantiles["ewma"][7, 1, 1, 17].item()
    assert row.target == backtest.targets[7, 1, 1].item()
    with pytest.raises(ValueError, match=r"to_pandas: models must be among har-lstm, .*; got arima"):
        backtest.to_pandas(["arima"])


def test_backtest_scores_are_computed_once(backtest: Backtest) -> None:
    assert backtest.scores is backtest.scores
    expected = forecast.score(backtest)
    assert backtest.scores.rows[1:] == expected.rows[1:]


def test_backtest_plot_shows_the_skill_of_every_model(backtest: Backtest) -> None:
    figure = backtest.plot()
    assert isinstance(figure, go.Figure)
    assert {trace.name for trace in figure.data} == set(backtest.quantiles) - {"unconditional"}
    skill = backtest.scores.to_pandas().set_index(["model", "horizon"]).skill
    garch = next(trace for trace in figure.data if trace.name == "garch")
    assert garch.y[1] == pytest.approx(skill[("garch", 21)], rel=1e-4)


def test_backtest_repr_is_short(backtest: Backtest) -> None:
    assert repr(backtest) == (
        "Backtest(har-lstm, WTI, BRENT; 506 origins 2013-01-02 to 2014-12-31; horizons 5, 21, 63, 126; 7 models)"
    )


def test_backtest_rejects_bad_arguments(backtest_panel: Panel) -> None:
    with pytest.raises(ValueError, match="backtest: refit_network must be at least 1; got 0"):
        forecast.backtest(backtest_panel, first_year=2013, refit_network=0)
    with pytest.raises(
        ValueError, match=r"first_year must be in 2008..2014 with at least 504 rows .*; got first_year=2009"
    ):
        forecast.backtest(backtest_panel, first_year=2009)
    with pytest.raises(ValueError, match="got first_year=2020"):
        forecast.backtest(backtest_panel, first_year=2020)
    with pytest.raises(ValueError, match="must have more than 504 rows; got 254"):
        forecast.backtest(backtest_panel.between("2014-01-01", None))
    with pytest.raises(TypeError, match=r"backtest: prices must be a Panel, .*; got list"):
        forecast.backtest([1.0])


def test_backtest_rejects_unusable_prices_by_name(backtest_panel: Panel) -> None:
    frame = backtest_panel.to_pandas()
    with pytest.raises(ValueError, match="backtest: every symbol must have positive prices; got none for WTI"):
        forecast.backtest(frame.assign(WTI=np.nan))
    with pytest.raises(ValueError, match="backtest: the prices of every symbol must vary; got constant prices for WTI"):
        forecast.backtest(frame.assign(WTI=50.0))
    late = frame[["WTI"]].where(np.arange(len(frame))[:, None] > 700, 50.0)
    with pytest.raises(ValueError, match="backtest: a symbol must have more than 378 positive prices by 2009-12-31"):
        forecast.backtest(late, first_year=2010)


def test_backtest_of_a_symbol_that_starts_later_has_no_forecast_before(backtest_panel: Panel) -> None:
    frame = backtest_panel.to_pandas()
    frame.loc[:"2013-01-31", "BRENT"] = np.nan
    late = forecast.backtest(frame, first_year=2013)
    assert late.quantiles["har-garch"][:, :, 0].isfinite().all()
    assert late.quantiles["har-garch"][:252, :, 1].isnan().all()
    assert late.quantiles["har-garch"][-1, :, 1].isfinite().all()
    assert late.quantiles["garch"][:252, :, 1].isnan().all()
    assert all(np.isfinite(row.pinball) for row in late.scores.rows)
    table = late.to_pandas(["har-garch"])
    assert table[table.symbol == "BRENT"].origin.min() > pd.Timestamp("2014-01-01")


def test_backtest_beats_unconditional_quantiles_and_ewma(shared_data: Path) -> None:
    long = pd.read_csv(shared_data / "daily.csv.gz", parse_dates=["date"])
    wide = long[long.symbol.isin(FIVE)].pivot_table(index="date", columns="symbol", values="close")
    # the econometric part alone, which the result comes from; benchmarks/skill.py prints all models
    result = forecast.backtest(to_panel(wide[FIVE]), first_year=2017)
    table = result.scores.to_pandas().pivot_table(index="model", columns="horizon", values="pinball")
    assert (table.loc["har-garch"] < table.loc["unconditional"]).all()
    assert (table.loc["har-garch"] <= table.loc["ewma"]).all()
    assert (table.loc["har-garch"] <= table.loc["ewma63"])[[5, 21, 63]].all()  # worse by 0.3 % at 126, not significant

"""`Forecast`: tables, quantiles and the fan chart."""

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest

from torchcommodity.data import Panel
from torchcommodity.forecast import Forecast, Forecaster

LONG = ["symbol", "unit", "origin", "horizon", "date", "level", "log_return", "price"]


@pytest.fixture(scope="module")
def result(panel: Panel, forecaster: Forecaster) -> Forecast:
    return forecaster.predict(panel)


def test_forecast_to_pandas_long_has_a_row_per_symbol_horizon_and_level(result: Forecast) -> None:
    table = result.to_pandas()
    assert list(table.columns) == LONG
    assert len(table) == 2 * 4 * 19
    row = table[(table.symbol == "BRENT") & (table.horizon == 63) & (table.level == 0.9)].squeeze()
    assert row.price == result.prices[2, 1, 17].item()
    assert row.log_return == result.log_returns[2, 1, 17].item()
    assert row.unit == result.units[1]
    assert str(row.origin.date()) == "2016-12-30"
    assert str(row.date.date()) == "2017-03-30"  # 63 trading days of London later


def test_plot_ends_at_the_horizon(result: Forecast) -> None:
    median = next(trace for trace in result.plot("WTI", horizon="1m").data if trace.name == "median")
    assert str(median.x[-1]) == str(result.target_dates[1, 0])
    with pytest.raises(ValueError, match=r"plot: horizon must be one of .*; got '2w'"):
        result.plot("WTI", horizon="2w")


def test_forecast_to_pandas_wide_has_a_column_per_level(result: Forecast) -> None:
    table = result.to_pandas("wide")
    assert list(table.columns[:6]) == [*LONG[:5], "0.05"]
    assert len(table) == 2 * 4
    row = table[(table.symbol == "WTI") & (table.horizon == 21)].squeeze()
    assert row["0.5"] == result.prices[1, 0, 9].item()
    with pytest.raises(ValueError, match="to_pandas: layout must be 'long' or 'wide'; got 'tall'"):
        result.to_pandas("tall")  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_forecast_to_polars_has_the_same_table(result: Forecast, layout: str) -> None:
    table, expected = result.to_polars(layout), result.to_pandas(layout)  # type: ignore[arg-type]
    assert table.columns == list(expected.columns)
    assert table.schema["symbol"] == pl.String
    assert table.schema["date"] == pl.Date
    for name in expected.columns[-2:]:
        np.testing.assert_array_equal(table[name].to_numpy(), expected[name].to_numpy())
    assert table["date"].to_list() == expected["date"].dt.date.to_list()


def test_forecast_quantile_takes_horizons_in_words(result: Forecast) -> None:
    for horizon, rows in {"1w": 5, "1M": 21, "3 mo": 63, "6m": 126, "21": 21}.items():
        assert result.quantile(0.5, horizon).equals(result.quantile(0.5, rows))
    with pytest.raises(ValueError, match=r"quantile: horizon must be one of .*, 63 \(3m\), .*; got '2w'"):
        result.quantile(0.5, "2w")
    with pytest.raises(ValueError, match=r"quantile: horizon must be one of .*, 63 \(3m\), .*; got 'soon'"):
        result.quantile(0.5, "soon")


def test_forecast_text_says_origins_that_differ_by_symbol(panel: Panel, forecaster: Forecaster) -> None:
    values = panel.values.plain().clone()
    values[-3:, 1] = float("nan")
    late = forecaster.predict(replace(panel, values=type(panel.values)(values)))
    assert f"; from {late.origins[1]} to 2016-12-30, by symbol; horizons" in repr(late)
    assert late.origins[1] < late.origins[0]


def test_forecast_quantile_is_a_series_by_symbol(result: Forecast) -> None:
    quantile = result.quantile(0.95, 126)
    assert list(quantile.index) == ["WTI", "BRENT"]
    assert quantile["BRENT"] == result.prices[3, 1, 18].item()
    with pytest.raises(ValueError, match=r"quantile: level must be one of 0.05, 0.1, .*; got 0.99"):
        result.quantile(0.99, 126)
    with pytest.raises(ValueError, match=r"quantile: horizon must be one of .*, 63 \(3m\), .*; got 10"):
        result.quantile(0.5, 10)


def test_forecast_target_dates_follow_the_calendar(result: Forecast) -> None:
    assert result.target_dates.shape == (4, 2)
    assert list(map(str, result.target_dates[:, 0])) == ["2017-01-09", "2017-02-01", "2017-04-03", "2017-07-03"]


def test_forecast_plot_is_a_fan_chart_with_history(result: Forecast) -> None:
    figure = result.plot("BRENT")
    assert isinstance(figure, go.Figure)
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert {"price", "median", "50 % interval", "80 % interval", "90 % interval"} == set(traces)
    history = result.history["BRENT"].to_pandas()["BRENT"].dropna()
    assert list(traces["price"].y) == pytest.approx(history.tolist(), rel=1e-5)
    assert 240 < len(history) <= len(result.history) == 260
    assert traces["price"].x[-1] == traces["median"].x[0] == "2016-12-30"
    first = traces["median"].x.index(str(result.target_dates[0, 1]))
    assert traces["median"].y[first] == pytest.approx(result.quantile(0.5, 5)["BRENT"], rel=1e-5)
    assert figure.layout.title.text == "BRENT"
    with pytest.raises(ValueError, match="plot: symbol must be one of WTI, BRENT; got 'GOLD'"):
        result.plot("GOLD")


def test_forecast_repr_is_one_line(result: Forecast) -> None:
    assert repr(result) == "Forecast(WTI, BRENT; from 2016-12-30; horizons 5, 21, 63, 126; 19 levels)"


@pytest.mark.parametrize(
    ("level", "horizon", "message"), [("0.5", 5, "level .*; got '0.5'"), (0.5, "1x", "horizon .*; got '1x'")]
)
def test_forecast_quantile_rejects_texts(result: Forecast, level: Any, horizon: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^quantile: {message}"):
        result.quantile(level, horizon)

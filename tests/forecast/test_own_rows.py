"""Rows of a union calendar on which a symbol does not trade are none of its rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcommodity import data, forecast
from torchcommodity.data import Panel, targets, to_panel
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig

WEEKENDS = np.arange("2012-01-01", "2016-12-31", dtype="datetime64[D]")
WEEKENDS = WEEKENDS[~np.is_busday(WEEKENDS)]


@pytest.fixture(scope="module")
def oil() -> Panel:
    panel = data.embedded(["WTI", "BRENT"]).between("2012-01-01", "2016-12-31")
    both = torch.isfinite(panel.values.plain()).all(1).numpy()
    return to_panel(panel.to_pandas()[both])


def with_rows(panel: Panel, days: np.ndarray, price: float = np.nan) -> Panel:
    """The panel with rows on which no symbol trades, or only one more, `OTHER`, at this price."""
    frame = panel.to_pandas()
    frame = frame.reindex(frame.index.union(days))
    return to_panel(frame if np.isnan(price) else frame.assign(OTHER=price))


@given(days=st.sets(st.sampled_from(WEEKENDS.tolist()), min_size=1, max_size=80))
@settings(max_examples=4)
def test_forecasts_do_not_depend_on_rows_on_which_nothing_trades(oil: Panel, days: set[object]) -> None:
    union = with_rows(oil, np.array(sorted(days), dtype="datetime64[D]"))
    expected, actual = forecast.fit(oil).predict(oil), forecast.fit(union).predict(union)
    assert torch.equal(expected.log_returns, actual.log_returns)
    assert np.array_equal(expected.target_dates, actual.target_dates)


def test_forecasts_of_a_network_do_not_depend_on_rows_on_which_nothing_trades(oil: Panel) -> None:
    config = FitConfig(HarLstmConfig(), TrainConfig(epochs=1))
    union = with_rows(oil, WEEKENDS[::7])
    expected, actual = forecast.fit(oil, config).predict(oil), forecast.fit(union, config).predict(union)
    assert torch.equal(expected.log_returns, actual.log_returns)


def test_scales_and_targets_do_not_depend_on_rows_on_which_only_others_trade(oil: Panel) -> None:
    union = with_rows(oil, WEEKENDS[::7], price=50.0).select(oil.symbols)
    own = np.isin(union.dates, oil.dates)
    horizons = (5, 21, 63, 126)
    spread = targets(union.values.plain(), horizons)[torch.from_numpy(own)]
    torch.testing.assert_close(spread, targets(oil.values.plain(), horizons), rtol=0, atol=0, equal_nan=True)
    har = forecast.fit(oil).model.har
    expected, actual = har(oil.values.plain()[None]), har(union.values.plain()[None])
    torch.testing.assert_close(
        actual.log_scale[:, torch.from_numpy(own)], expected.log_scale, rtol=0, atol=0, equal_nan=True
    )


def test_backtest_origins_are_rows_with_a_price(oil: Panel) -> None:
    union = with_rows(oil, WEEKENDS[::7])
    expected, actual = (forecast.backtest(panel, first_year=2016, baselines={}) for panel in (oil, union))
    assert np.array_equal(expected.origins, actual.origins)
    assert torch.equal(expected.quantiles["har-garch"], actual.quantiles["har-garch"])
    assert np.array_equal(expected.target_dates, actual.target_dates, equal_nan=True)


def test_target_dates_differ_by_the_calendar_of_the_exchange(oil: Panel) -> None:
    futures = oil.with_contracts({"WTI": "CL", "BRENT": "BRN"}).between(None, "2016-05-24")  # treat spot as futures
    result = forecast.fit(futures).predict(futures)
    # Memorial Day, 30 May 2016: New York is closed, ICE Futures Europe is open
    assert result.target_dates[0].astype(str).tolist() == ["2016-06-01", "2016-05-31"]
    table = result.to_pandas()
    dates = table[table.horizon == 5].groupby("symbol", sort=False).date.first()
    assert dates.dt.strftime("%Y-%m-%d").to_dict() == {"WTI": "2016-06-01", "BRENT": "2016-05-31"}

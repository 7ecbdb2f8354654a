"""Forecasts of prices with open, high and low: fit, live updates, files, cache, and prices without bars."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load, save

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster, backtest
from torchcommodity.forecast._cache import cache_key
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig, model_inputs


@pytest.fixture(scope="module")
def bars() -> Panel:
    """Two equity indices with real bars, of which the second has some bad ranges."""
    from arch.data import nasdaq, sp500

    frames = {"SP500": sp500.load()["2009":"2014"], "NASDAQ": nasdaq.load()["2009":"2014"]}
    panel = data.to_panel(pd.concat(frames, names=["symbol"]).reset_index())
    assert panel.bars is not None
    prices = panel.bars.plain().clone()
    prices[700:710, 1, 1] = prices[700:710, 1, 2]
    return replace(panel, bars=type(panel.values)(prices))


@pytest.fixture(scope="module")
def forecaster(bars: Panel) -> Forecaster:
    return forecast.fit(bars.between(None, "2013-12-31"))


def test_fit_uses_bars_and_says_so(forecaster: Forecaster, bars: Panel) -> None:
    assert forecaster.ranges == ("SP500", "NASDAQ")
    assert "variances from open, high and low of SP500, NASDAQ" in forecaster.record.note
    closes = forecast.fit(replace(bars, bars=None).between(None, "2013-12-31"))
    assert closes.ranges == ()
    assert "open" not in closes.record.note
    assert not torch.equal(forecaster.predict(bars).log_returns, closes.predict(bars).log_returns)


def test_setting_ranges_to_false_has_the_bits_of_closes(bars: Panel) -> None:
    past = bars.between(None, "2013-12-31")
    config = FitConfig(HarGarchConfig(HarConfig(ranges=False)))
    off, closes = forecast.fit(past, config), forecast.fit(replace(past, bars=None), config)
    assert off.to_bytes() == closes.to_bytes()
    default = forecast.fit(replace(past, bars=None))
    assert torch.equal(off.predict(bars).log_returns, default.predict(bars).log_returns)


def test_fit_takes_bars_as_read(bars: Panel) -> None:
    assert bars.bars is not None
    part = bars.between(None, "2013-12-31")
    assert part.bars is not None
    prices = part.bars.plain()
    read = data.Bars(part.dates, part.symbols, prices[..., 0], prices[..., 1], prices[..., 2], part.values.plain())
    expected = forecast.fit(part)
    assert torch.equal(forecast.fit(read).predict(read).log_returns, expected.predict(part).log_returns)


def test_prices_without_bars_are_forecast_from_their_closes_with_a_finding(forecaster: Forecaster, bars: Panel) -> None:
    assert bars.bars is not None
    closes, empty = (
        replace(bars, bars=None),
        replace(bars, bars=type(bars.values)(torch.full_like(bars.bars, torch.nan))),
    )
    expected = forecaster.predict(closes)
    assert torch.equal(forecaster.predict(empty).log_returns, expected.log_returns)
    (finding,) = [f for f in expected.history.findings if f.kind == "ranges ended"]
    assert finding.value == "no usable range of SP500, NASDAQ in the 5 rows to 2014-12-31"
    assert "ranges ended" not in {f.kind for f in forecaster.predict(bars).history.findings}


def test_live_forecasts_with_bars_have_the_bits_of_predict(forecaster: Forecaster, bars: Panel) -> None:
    state = forecaster.start(bars.between(None, "2014-10-31"))
    for first, last in (("2014-11-03", "2014-11-03"), ("2014-11-04", "2014-12-09"), ("2014-12-10", None)):
        state, live = forecaster.step(load(save(state)), bars.between(first, last))
        assert torch.equal(live.log_returns, forecaster.predict(bars.between(None, last)).log_returns)


def test_live_rows_without_bars_count_with_their_closes(forecaster: Forecaster, bars: Panel) -> None:
    assert bars.bars is not None
    prices = bars.bars.plain().clone()
    prices[bars.dates > bars.dates.astype("datetime64[D]")[-4]] = torch.nan
    cut = str(bars.dates[-4])
    state = forecaster.start(bars.between(None, cut))
    later = replace(bars, bars=None).between(str(bars.dates[-3]))
    _, live = forecaster.step(state, later)
    expected = forecaster.predict(replace(bars, bars=type(bars.values)(prices)))
    assert torch.equal(live.log_returns, expected.log_returns)


def test_forecaster_file_keeps_ranges(forecaster: Forecaster, bars: Panel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "file")
    loaded = Forecaster.load(tmp_path / "file")
    assert loaded.ranges == forecaster.ranges
    assert torch.equal(loaded.predict(bars).log_returns, forecaster.predict(bars).log_returns)


def test_cache_tells_bars_apart(bars: Panel) -> None:
    assert bars.bars is not None
    other = bars.bars.plain().clone()
    other[5, 0, 1] *= 1.01
    panels = [bars, replace(bars, bars=None), replace(bars, bars=type(bars.values)(other))]
    assert len({cache_key(panel, FitConfig(), 0, "test", None) for panel in panels}) == 3


def test_backtest_with_bars_does_not_look_ahead(bars: Panel) -> None:
    """A symbol whose ranges end for good still has them before; later bars change nothing earlier."""
    assert bars.bars is not None
    changed = bars.bars.plain().clone()
    changed[bars.dates >= bars.dates[-100]] = torch.nan
    results = [
        backtest(panel, first_year=2014, baselines={})
        for panel in (bars, replace(bars, bars=type(bars.values)(changed)))
    ]
    expected, actual = (result.quantiles[result.model] for result in results)
    assert torch.equal(actual[:-100], expected[:-100])
    assert not torch.equal(actual[-100:], expected[-100:])


def test_simulated_paths_have_the_quantiles_of_a_forecast_from_bars(forecaster: Forecaster, bars: Panel) -> None:
    simulation = forecaster.simulate(bars, horizon=21, paths=1000)
    simulated = simulation.prices.plain()[:, 20].quantile(torch.tensor([0.1, 0.9], dtype=torch.double), dim=0)
    expected = forecaster.predict(bars).prices[1][:, [1, 17]].T
    torch.testing.assert_close(simulated, expected, rtol=0.002, atol=0)


def test_ranges_of_weekly_prices_are_not_used(bars: Panel) -> None:
    config = FitConfig.for_frequency("weekly")
    assert not config.model.har.ranges
    assert model_inputs(bars, 126).bars is None


@pytest.mark.slow
def test_bars_improve_the_forecast_of_a_week_on_real_futures(shared_data: Path) -> None:
    codes = {"WTI": "CL", "CORN": "C", "SUGAR": "SB", "COPPER": "HG"}
    rows = pd.read_csv(shared_data / "bars.csv.gz", parse_dates=["date"]).drop(columns="ok")
    panel = data.to_panel(rows[rows.symbol.isin(codes)]).with_contracts(codes)
    assert panel.bars is not None
    with_bars, closes = (
        backtest(p, first_year=2008, baselines={}).between(2008, 2016) for p in (panel, replace(panel, bars=None))
    )
    names = {"quantiles": closes.quantiles, "variances": closes.variances}
    extra = {"quantiles": with_bars.quantiles, "variances": with_bars.variances}
    both = replace(closes, **{key: value | {"bars": extra[key][closes.model]} for key, value in names.items()})
    table = forecast.score(both, reference=closes.model).to_pandas().set_index(["model", "horizon"])
    assert table.loc[("bars", 5)].skill > 0

"""Forecasts of spot prices with a futures curve: predict, live rows, files, words, and the gain on real curves."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity import data
from torchcommodity.data import DataError, Panel
from torchcommodity.forecast import Forecaster, backtest, data_hash, fit, predict, score
from torchcommodity.models import default_config
from torchcommodity.training import FitConfig, model_inputs

OF = {"WTI": "CL", "HENRY_HUB": "NG"}


def closes(panel: Panel, last: str | None = None) -> pd.DataFrame:
    """A long table of eight contracts that lean on the prices of a month before."""
    frame = panel.to_pandas()[list(OF)].ffill().shift(21).clip(lower=0.5).loc[:last].dropna()
    parts = [
        (frame * (1 + 0.02 * nth)).rename(columns=OF).melt(ignore_index=False, var_name="product", value_name="close")
        for nth in range(8)
    ]
    return pd.concat([part.assign(nth=nth + 1) for nth, part in enumerate(parts)]).reset_index()


@pytest.fixture(scope="module")
def prices() -> Panel:
    return data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2012-01-01", "2016-12-31")


@pytest.fixture(scope="module")
def curve(prices: Panel) -> pd.DataFrame:
    return closes(prices)


@pytest.fixture(scope="module")
def forecaster(prices: Panel, curve: pd.DataFrame) -> Forecaster:
    return fit(prices, curve=curve, curve_of=OF, through="2016-06-30")


def test_fit_states_the_curves_and_predict_takes_them(
    forecaster: Forecaster, prices: Panel, curve: pd.DataFrame
) -> None:
    assert forecaster.curve_of == ("CL", None, "NG")
    assert forecaster.record.note.endswith("Futures curve of WTI CL, HENRY_HUB NG")
    expected = forecaster.predict(prices, curve=curve)
    beside = predict(forecaster, data.add_curve(prices, curve, OF))
    assert torch.equal(beside.log_returns, expected.log_returns)
    assert not [x for x in expected.findings if x.kind == "curve missing"]
    without = forecaster.predict(prices)
    assert [x.symbol for x in without.findings if x.kind == "curve missing"] == ["WTI", "HENRY_HUB"]
    assert torch.equal(without.log_returns[:, 1], expected.log_returns[:, 1])
    assert not torch.equal(without.log_returns[:, 0], expected.log_returns[:, 0])
    late = forecaster.predict(prices, curve=closes(prices, "2016-11-30"))
    assert torch.equal(late.log_returns, without.log_returns)
    assert {"curve missing", "curve ended"} <= {x.kind for x in late.findings}


def test_a_fit_with_a_curve_uses_nothing_after_its_last_row(prices: Panel, curve: pd.DataFrame) -> None:
    later = curve.copy()
    later.loc[later["date"] > "2015-12-31", "close"] *= 1.5
    fits = [fit(prices, curve=x, curve_of=OF, through="2015-12-31") for x in (curve, later)]
    assert fits[0].to_bytes() == fits[1].to_bytes()


def test_live_forecasts_with_a_curve_have_the_bits_of_predict(
    forecaster: Forecaster, prices: Panel, curve: pd.DataFrame
) -> None:
    state = forecaster.start(prices.between(None, "2016-10-31"), curve=curve)
    shorter = curve[curve["nth"] <= 7]
    for first, last in (("2016-11-01", "2016-11-01"), ("2016-11-02", "2016-12-09")):
        state, live = forecaster.step(state, prices.between(first, last), curve=shorter)
        expected = forecaster.predict(prices.between(None, last), curve=curve)
        assert torch.equal(live.log_returns, expected.log_returns)
    for row in ("2016-12-12", "2016-12-13", "2016-12-14", "2016-12-15", "2016-12-16"):  # the curve comes late
        state, live = forecaster.step(state, prices.between(row, row))
        expected = forecaster.predict(prices.between(None, row), curve=closes(prices, "2016-12-09"))
        assert torch.equal(live.log_returns, expected.log_returns)
    assert [x.symbol for x in live.findings if x.kind == "curve missing"] == ["WTI", "HENRY_HUB"]


def test_network_with_a_curve_steps_as_it_predicts(prices: Panel, curve: pd.DataFrame) -> None:
    config = FitConfig(default_config("har-lstm"), replace(FitConfig().train, epochs=0))
    fitted = fit(prices, config, curve=curve, curve_of=OF)
    state = fitted.start(prices.between(None, "2016-12-15"), curve=curve)
    _, live = fitted.step(state, prices.between("2016-12-16"), curve=curve)
    assert torch.equal(live.log_returns, fitted.predict(prices, curve=curve).log_returns)


def test_file_and_pickle_keep_the_curve(
    forecaster: Forecaster, prices: Panel, curve: pd.DataFrame, tmp_path: Path
) -> None:
    forecaster.save(tmp_path / "spot")
    expected = forecaster.predict(prices, curve=curve).log_returns
    for other in (Forecaster.load(tmp_path / "spot"), pickle.loads(pickle.dumps(forecaster))):
        assert other.curve_of == forecaster.curve_of
        assert torch.equal(other.predict(prices, curve=curve).log_returns, expected)


def test_location_says_what_the_curve_contributes(forecaster: Forecaster, prices: Panel, curve: pd.DataFrame) -> None:
    location = forecaster.location(prices, curve=curve)
    table = location.to_pandas()
    panel = forecaster.align_panel(data.add_curve(prices, curve, OF))
    with torch.no_grad():
        shift = forecaster.model.har(*model_inputs(panel, 126).batch(), last_rows=1).shift[0, -1]
    total = table.groupby(["horizon", "symbol"])["log_return"].sum().unstack().reindex(columns=list(prices.symbols))
    np.testing.assert_allclose(total.fillna(0.0).to_numpy(), shift.numpy(), atol=1e-14)
    assert set(table[table.symbol == "WTI"].source) == {"CL futures", "slope of the futures curve"}
    sentence = location.sentence("WTI")
    assert "against CL futures: " in sentence
    assert "slope of the futures curve: +" in sentence
    assert "futures" not in forecaster.location(prices).sentence("WTI")


def test_simulated_paths_have_the_margins_of_the_forecast(
    forecaster: Forecaster, prices: Panel, curve: pd.DataFrame
) -> None:
    simulation = forecaster.simulate(prices, curve=curve, horizon=21)
    forecast = forecaster.predict(prices, curve=curve)
    median = simulation.prices.plain()[:, 20].median(0).values
    np.testing.assert_allclose(median, forecast.prices[1, :, 9], rtol=0.01)
    assert simulation.location[:, 0].abs().sum() > 0


def test_cache_key_depends_on_curve_and_products(prices: Panel, curve: pd.DataFrame) -> None:
    panels = [data.add_curve(prices, x, {"WTI": code}) for x, code in ((curve, "CL"), (curve, "NG"))]
    later = data.add_curve(prices, curve.assign(close=2 * curve["close"]), {"WTI": "CL"})
    assert len({data_hash(panel) for panel in (*panels, later, prices)}) == 4


def test_curve_that_the_fit_did_not_have_is_rejected(
    forecaster: Forecaster, prices: Panel, curve: pd.DataFrame
) -> None:
    plain = fit(prices["WTI"])
    with pytest.raises(ValueError, match="predict: curve must be None, as in the fit, which had no curve; got one"):
        plain.predict(prices, curve=curve)
    with pytest.raises(ValueError, match="predict: WTI must have no curve, as in the fit; got that of CL"):
        plain.predict(data.add_curve(prices, curve))
    with pytest.raises(ValueError, match="WTI must have the curve of CL, as in the fit; got that of NG"):
        forecaster.predict(data.add_curve(prices, curve, {"WTI": "NG"}))
    with pytest.raises(DataError, match=r"fit: curve_of needs a curve; got \{'WTI': 'CL'\} and none"):
        fit(prices, curve_of={"WTI": "CL"})


def test_curve_counts_for_nothing_without_location(prices: Panel, curve: pd.DataFrame) -> None:
    config = FitConfig()
    config = replace(config, model=replace(config.model, har=replace(config.model.har, location=False)))
    fitted = fit(prices, config, curve=curve, curve_of=OF)
    assert fitted.curve_of == (None, None, None)
    assert torch.equal(fitted.predict(prices).log_returns, fit(prices, config).predict(prices).log_returns)


@pytest.mark.slow
def test_curves_of_energies_improve_forecasts_of_spot_prices(shared_data: Path) -> None:
    """Over the model without location, on origins of 2017 to 2019; docs/results/location.md has all years."""
    path = shared_data / "energy_curves.csv.gz"
    if not path.is_file():
        pytest.skip("needs data/energy_curves.csv.gz")
    panel = data.embedded().with_references(None).between("2007-01-01", "2019-12-31")
    config = FitConfig()
    off = replace(config, model=replace(config.model, har=replace(config.model.har, location=False)))
    result = backtest(panel, curve=path, first_year=2017, baselines={})
    other = backtest(panel, off, first_year=2017, baselines={})
    both = replace(
        result,
        quantiles=result.quantiles | {"off": other.quantiles[other.model]},
        variances=result.variances | {"off": other.variances[other.model]},
    )
    skill = score(both, reference="off").to_pandas().set_index("model").loc[result.model].skill
    assert (skill > 1.5).all()

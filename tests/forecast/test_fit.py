"""`fit` on real prices: deterministic, causal, and with clear errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel, to_panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig, model_inputs, usable_symbols


def same_weights(a: Forecaster, b: Forecaster) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.model.state_dict().values(), b.model.state_dict().values()))


def test_fit_one_seed_gives_one_set_of_bits(panel: Panel, two_epochs: FitConfig, forecaster: Forecaster) -> None:
    before = torch.random.get_rng_state()
    again, other = forecast.fit(panel, two_epochs), forecast.fit(panel, two_epochs, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert same_weights(forecaster, again)
    assert forecaster.record == again.record
    assert not same_weights(forecaster, other)


def test_fit_uses_only_rows_through_the_given_date(panel: Panel, two_epochs: FitConfig) -> None:
    past = panel.between(None, "2014-12-31")
    frame = panel.to_pandas()
    frame.loc["2015-01-01":] = 1.0
    changed = to_panel(frame)
    assert same_weights(forecast.fit(past, two_epochs), forecast.fit(changed, two_epochs, through="2014-12-31"))


def test_fit_keeps_the_baseline_if_no_epoch_improves_it() -> None:
    panel = data.embedded(["WTI", "HENRY_HUB"]).between("2010-01-01", "2016-12-31")
    fitted = forecast.fit(panel, FitConfig(HarLstmConfig(), TrainConfig(epochs=2, learning_rate=3.0)))
    assert fitted.record.epoch == 0
    assert "; none of 2 epochs improved on the econometric baseline" in fitted.record.note
    inputs, model = model_inputs(panel, 126).batch(), fitted.model
    assert torch.equal(model(*inputs), model.har.quantiles(model.har(*inputs))[:, -1])


def test_fit_note_of_a_model_without_network_names_model_symbols_and_dates(panel: Panel) -> None:
    assert forecast.fit(panel).record.note == "Fitted HAR-GARCH on 2 symbols, 2010-01-04 to 2016-12-30"
    assert forecast.fit(panel["WTI"]).record.note == "Fitted HAR-GARCH on 1 symbol, 2010-01-04 to 2016-12-30"


def test_fit_of_a_short_panel_does_not_train_the_network(panel: Panel) -> None:
    fitted = forecast.fit(panel.between("2013-06-01", None), FitConfig(HarLstmConfig()))
    assert "; network not trained: too few rows" in fitted.record.note
    assert fitted.record.corrected == ()


def test_fit_reports_progress_per_epoch(panel: Panel, two_epochs: FitConfig) -> None:
    calls: list[tuple[int, int, str]] = []
    forecast.fit(panel, two_epochs, progress=lambda *call: calls.append(call))
    assert [call[:2] for call in calls] == [(1, 2), (2, 2)]
    assert calls[0][2].startswith("validation loss")


def test_fit_takes_frames_and_paths(panel: Panel, tmp_path: Path) -> None:
    panel = panel["WTI"]
    wide = panel.to_pandas()
    long = wide.stack().rename("y").rename_axis(["ds", "unique_id"]).reset_index()
    wide.to_csv(tmp_path / "prices.csv")
    expected = forecast.fit(panel)
    for prices in (wide, wide["WTI"], long, pl.from_pandas(wide.reset_index()), tmp_path / "prices.csv"):
        fitted = forecast.fit(prices)
        assert fitted.symbols == ("WTI",), type(prices)
        assert fitted.record.through == expected.record.through
        assert torch.equal(fitted.predict(prices).prices, expected.predict(panel).prices), type(prices)


@pytest.mark.parametrize("prices", [np.ones((600, 2)), [1.0, 2.0], {"WTI": [1.0]}, None, torch.ones(600, 2)])
def test_fit_rejects_other_types(prices: object) -> None:
    with pytest.raises(TypeError, match=r"fit: prices must be a Panel, Bars, a pandas or polars DataFrame, .*; got "):
        forecast.fit(prices)


def frame_with(panel: Panel, wti: float) -> pd.DataFrame:
    frame = panel.to_pandas()
    frame["WTI"] = wti
    return frame


@pytest.mark.slow
def test_fit_names_a_few_of_many_unusable_symbols() -> None:
    days = pd.bdate_range("2018-01-02", periods=600)
    frame = pd.DataFrame(np.linspace(10, 20, 600)[:, None].repeat(5000, 1), days, [f"S{i}" for i in range(5000)])
    frame.iloc[:590, 1:] = np.nan
    with pytest.raises(ValueError, match=r"got S1 10, .*, S5 10 and 4,994 more; select others with ") as error:
        forecast.fit(frame)
    assert len(str(error.value)) < 400


def test_fit_rejects_unusable_prices_by_name(panel: Panel) -> None:
    with pytest.raises(
        ValueError, match=r"fit: every symbol must have at least 505 positive prices \(.*\); got WTI 252, BRENT 255"
    ):
        forecast.fit(panel.between("2016-01-01", None))
    for missing in (np.nan, 0.0):
        with pytest.raises(ValueError, match="fit: every symbol must have positive prices; got none for WTI"):
            forecast.fit(frame_with(panel, missing))
    for price in (50.0, -1.0):  # negative prices are those of a spread
        with pytest.raises(ValueError, match="fit: the prices of every symbol must vary; got constant prices for WTI"):
            forecast.fit(frame_with(panel, price))
    with pytest.raises(ValueError, match=r"fit: every symbol must have at least 505 positive prices .*; got WTI 1"):
        forecast.fit(panel["WTI"].to_pandas().iloc[:1])
    late = frame_with(panel["WTI"], 50.0)
    late.iloc[:200] = panel["WTI"].to_pandas().iloc[:200]
    with pytest.raises(ValueError, match=r"fit: a symbol must have .* that vary after the first 252; got WTI 1774"):
        forecast.fit(late)


def test_fit_names_a_few_short_symbols_and_says_how_to_exclude_them(panel: Panel) -> None:
    frame = panel.to_pandas()
    short = pd.DataFrame({f"S{n}": frame["WTI"].where(np.arange(len(frame)) > len(frame) - 100) for n in range(1000)})
    wide = pd.concat([frame, short], axis=1)
    with pytest.raises(ValueError, match="S0 ") as error:
        forecast.fit(wide)
    assert len(str(error.value)) < 400
    assert "995 more" in str(error.value)
    assert "select others with prices[list(training.usable_symbols(prices))], --symbols or fit and" in str(error.value)
    everything = to_panel(wide)
    assert usable_symbols(wide) == ("WTI", "BRENT")
    assert everything[usable_symbols(everything)].symbols == ("WTI", "BRENT")


def test_fit_does_not_record_the_time_of_retrieval(panel: Panel) -> None:
    later = replace(panel, provenance=tuple(replace(record, retrieved="2030-01-01") for record in panel.provenance))
    assert forecast.fit(later).to_bytes() == forecast.fit(panel).to_bytes()


def test_fit_rejects_the_config_of_a_model(panel: Panel) -> None:
    with pytest.raises(TypeError, match=r"fit: config must be a FitConfig; got HarLstmConfig; use FitConfig\(model="):
        forecast.fit(panel, HarLstmConfig())  # type: ignore[arg-type]


def test_fit_keeps_the_drift_without_symmetry_and_says_so_of_an_equity_index() -> None:
    prices = data.embedded(["WTI"]).between("2016-01-01", "2018-12-31").to_pandas()
    index = prices.rename(columns={"WTI": "S&P 500"})  # the name alone decides what is said
    assert "symmetry=0 keeps it" in forecast.fit(index).record.note
    assert "drift" not in forecast.fit(prices).record.note
    keeping, default = forecast.fit(index, symmetry=0), forecast.fit(index)
    assert "drift" not in keeping.record.note
    symmetric = forecast.fit(index, symmetry=1.0).model.har.z
    torch.testing.assert_close((keeping.model.har.z + symmetric) / 2, default.model.har.z)
    torch.testing.assert_close(symmetric, -symmetric.flip(-1))
    with pytest.raises(ValueError, match=r"symmetry must be in \[0, 1\]; got 2"):
        forecast.fit(index, symmetry=2)

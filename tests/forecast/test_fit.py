"""Fit, predict, save and load on real prices: the past alone decides, one seed gives one set of bits."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig, fit_mix, standard_quantiles, targets, tensor_file_bytes

SHORT = FitConfig(HarLstmConfig(), TrainConfig(epochs=2))


@pytest.fixture(scope="module")
def panel() -> Panel:
    return data.embedded().select(["WTI", "SP500"]).between("2010-01-01", "2016-12-31")


@pytest.fixture(scope="module")
def fitted(panel: Panel) -> Forecaster:
    return forecast.fit(panel, SHORT)


def changed(panel: Panel, **prices: list[float]) -> Panel:
    """The panel with the last prices of a symbol replaced."""
    frame = panel.to_pandas()
    for symbol, values in prices.items():
        frame.iloc[-len(values) :, frame.columns.get_loc(symbol)] = values
    return Panel.from_pandas(frame)


def state(forecaster: Forecaster) -> dict[str, torch.Tensor]:
    return forecaster.model.state_dict()


def equal(a: Forecaster, b: Forecaster) -> bool:
    return all(torch.equal(x, y) for x, y in zip(state(a).values(), state(b).values()))


def test_targets_start_and_end_at_positive_prices() -> None:
    prices = torch.tensor([[50.0], [55.0], [torch.nan], [-37.63], [44.0], [66.0]], dtype=torch.double)
    expected = torch.tensor([55 / 50, 1.0, torch.nan, torch.nan, 66 / 44, torch.nan]).log()
    torch.testing.assert_close(targets(prices, [1])[:, 0, 0].float(), expected, equal_nan=True)
    expected = torch.tensor([55 / 50, 44 / 55, torch.nan, torch.nan, torch.nan, torch.nan]).log()
    torch.testing.assert_close(targets(prices, [3])[:, 0, 0].float(), expected, equal_nan=True)


def test_the_mix_finds_non_negative_coefficients(panel: Panel) -> None:
    model = forecast.fit(panel, FitConfig(train=TrainConfig(epochs=0))).model.har
    returns, _, none = model.adjust_rolls(panel.values.plain()[None])
    terms = model.variance_terms(returns, none)[0, :, 0].detach()
    true = torch.tensor([0.3, 0.0, 0.2, 0.0, 0.4, 0.1, 0.0], dtype=torch.double)
    ahead = (5 * (terms * true).sum(-1)).sqrt()
    torch.testing.assert_close(fit_mix(terms, ahead, 5, scale=3), true, atol=1e-6, rtol=0)
    assert (model.mix >= 0).all()


def test_symmetry_takes_the_drift_out() -> None:
    rows = torch.arange(1.0, 102.0, dtype=torch.double)[:, None, None]
    levels = (0.25, 0.5, 0.75)
    assert standard_quantiles(rows, levels, 0.0).tolist() == [[26.0, 51.0, 76.0]]
    assert standard_quantiles(rows, levels, 1.0).tolist() == [[-25.0, 0.0, 25.0]]
    assert standard_quantiles(rows, levels, 0.5).tolist() == [[0.5, 25.5, 50.5]]


def test_one_seed_one_set_of_bits(panel: Panel, fitted: Forecaster) -> None:
    before = torch.random.get_rng_state()
    again, other = forecast.fit(panel, SHORT), forecast.fit(panel, SHORT, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert equal(fitted, again)
    assert fitted.record == again.record
    assert not equal(fitted, other)


def test_only_the_past_decides(panel: Panel) -> None:
    cut = panel.between(None, "2014-12-31")
    frame = panel.to_pandas()
    frame.loc["2015-01-01":] = 1.0
    wild = Panel.from_pandas(frame)
    assert equal(forecast.fit(cut, SHORT), forecast.fit(wild, SHORT, through="2014-12-31"))


def test_where_no_epoch_helps_the_baseline_stands(panel: Panel) -> None:
    fitted = forecast.fit(panel, FitConfig(HarLstmConfig(), TrainConfig(epochs=2, learning_rate=30.0)))
    assert fitted.record.epoch == 0
    assert fitted.record.note == "none of 2 epochs improved on the econometric baseline, which stands"
    prices, model = panel.values.plain()[None], fitted.model
    assert torch.equal(model(prices), model.har.quantiles(model.har(prices))[:, -1])


def test_a_short_panel_is_fitted_without_the_network(panel: Panel) -> None:
    fitted = forecast.fit(panel.between("2013-06-01", None), FitConfig(HarLstmConfig()))
    assert fitted.record.note.startswith("network not trained (too few rows")
    assert fitted.record.corrected == ()


def test_progress_is_told(panel: Panel) -> None:
    told: list[tuple[int, int, str]] = []
    forecast.fit(panel, SHORT, progress=lambda *what: told.append(what))
    assert [what[:2] for what in told] == [(1, 2), (2, 2)]
    assert told[0][2].startswith("held-back loss")


def test_prices_are_the_last_price_times_the_return(panel: Panel, fitted: Forecaster) -> None:
    found = forecast.predict(fitted, panel)
    assert found.log_returns.shape == found.prices.shape == (4, 2, 19)
    torch.testing.assert_close(found.prices, found.last[:, None] * found.log_returns.exp())
    assert (found.prices.diff(dim=-1) > 0).all()
    assert found.origins.tolist() == [found.origin.item()] * 2
    table = found.to_pandas()
    assert list(table.columns) == ["date", "symbol", "horizon", "level", "log_return", "price"]
    row = table[(table.symbol == "SP500") & (table.horizon == 63) & (table.level == 0.9)]
    assert row.price.item() == found.prices[2, 1, 17].item()


@pytest.mark.parametrize("last", [[-37.63], [float("nan"), 0.0]])
def test_a_forecast_starts_from_the_last_positive_price(panel: Panel, fitted: Forecaster, last: list[float]) -> None:
    found = forecast.predict(fitted, changed(panel, WTI=last))
    frame = panel.to_pandas().iloc[: -len(last)].WTI.dropna()
    assert found.last[0].item() == frame.iloc[-1]
    assert found.origins[0] == frame.index[-1].to_numpy().astype("datetime64[D]")
    assert found.origins[1] == panel.dates[-1]
    assert found.prices.isfinite().all()


def test_the_order_of_a_panel_does_not_matter(panel: Panel, fitted: Forecaster) -> None:
    turned = forecast.predict(fitted, panel.select(["SP500", "WTI"]))
    assert turned.symbols == ("WTI", "SP500")
    assert torch.equal(turned.prices, forecast.predict(fitted, panel).prices)


def test_what_cannot_be_forecast_is_refused_in_words(panel: Panel, fitted: Forecaster) -> None:
    with pytest.raises(ValueError, match=r"at least 505 positive prices \(.*\); got WTI 252, SP500 252"):
        forecast.fit(panel.between("2016-01-01", None))
    with pytest.raises(ValueError, match="every symbol must have positive prices; got none for WTI"):
        forecast.fit(changed(panel, WTI=[float("nan")] * len(panel)))
    with pytest.raises(ValueError, match="must hold every symbol of the forecaster; SP500 not in WTI"):
        forecast.predict(fitted, panel["WTI"])
    with pytest.raises(ValueError, match="more than 252 positive prices; got WTI 100, SP500 100"):
        forecast.predict(fitted, Panel.from_pandas(panel.to_pandas().dropna().iloc[-100:]))
    with pytest.raises(ValueError, match="symmetry needs levels symmetric about 1/2"):
        FitConfig(model=HarLstmConfig(HarConfig(levels=(0.1, 0.5))))


def test_a_saved_forecaster_gives_the_same_bits(panel: Panel, fitted: Forecaster, tmp_path: Path) -> None:
    fitted.save(tmp_path / "oil.safetensors")
    loaded = Forecaster.load(tmp_path / "oil.safetensors")
    assert loaded.record == fitted.record
    assert loaded.model.config == fitted.model.config
    assert loaded.symbols == fitted.symbols
    assert torch.equal(forecast.predict(loaded, panel).prices, forecast.predict(fitted, panel).prices)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "text", "header"])
def test_a_damaged_file_is_refused(fitted: Forecaster, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "oil.safetensors"
    fitted.save(path)
    raw = path.read_bytes()
    flipped = raw[:-100] + bytes([raw[-100] ^ 1]) + raw[-99:]
    renamed = raw.replace(b'\\"symbols\\": [\\"WTI\\"', b'\\"symbols\\": [\\"WTX\\"')
    assert renamed != raw
    path.write_bytes(
        {"flip": flipped, "cut": raw[:-7], "empty": b"", "text": b"date,price\n" * 9, "header": renamed}[damage]
    )
    with pytest.raises(ValueError, match=r"damaged|must be a file of Forecaster\.save"):
        Forecaster.load(path)


def test_numbers_that_the_file_cannot_hold_are_named() -> None:
    with pytest.raises(ValueError, match=r"save: head must be of torch.float32, .*; got torch.float16"):
        tensor_file_bytes("format", {"head": torch.zeros(2).half()}, {})


def test_the_file_is_plain_safetensors(fitted: Forecaster, tmp_path: Path) -> None:
    fitted.save(tmp_path / "oil.safetensors")
    raw = (tmp_path / "oil.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    about = json.loads(header["__metadata__"]["about"])
    assert about["record"]["seed"] == 0
    first, last = header["har.z"]["data_offsets"]
    stored = np.frombuffer(raw[8 + length :][first:last], dtype="<f8").reshape(header["har.z"]["shape"])
    assert np.array_equal(stored, fitted.model.har.z.numpy())

"""`Forecaster`: repr, file format, damaged files, alignment of panels."""

import pickle
from pathlib import Path

import pytest
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster


def test_forecaster_repr_names_model_symbols_dates_and_horizons(forecaster: Forecaster) -> None:
    assert repr(forecaster) == (
        "Forecaster(har-lstm, WTI, BRENT; fitted 2010-01-04 to 2016-12-30, 1,774 rows; horizons 5, 21, 63, 126)"
    )


def test_forecaster_predict_is_the_function(panel: Panel, forecaster: Forecaster) -> None:
    assert torch.equal(forecaster.predict(panel).prices, forecast.predict(forecaster, panel).prices)


def test_forecaster_save_and_load_keep_every_bit(panel: Panel, forecaster: Forecaster, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "oil.safetensors")
    loaded = Forecaster.load(tmp_path / "oil.safetensors")
    assert loaded.record == forecaster.record
    assert loaded.model.config == forecaster.model.config
    assert loaded.symbols == forecaster.symbols
    assert torch.equal(loaded.predict(panel).prices, forecaster.predict(panel).prices)


def test_forecaster_pickled_copy_keeps_every_bit(panel: Panel, forecaster: Forecaster) -> None:
    copy = pickle.loads(pickle.dumps(forecaster))
    assert copy.record == forecaster.record
    assert torch.equal(copy.predict(panel).prices, forecaster.predict(panel).prices)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "text", "header"])
def test_forecaster_load_rejects_a_damaged_file(forecaster: Forecaster, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "oil.safetensors"
    forecaster.save(path)
    raw = path.read_bytes()
    flipped = raw[:-100] + bytes([raw[-100] ^ 1]) + raw[-99:]
    renamed = raw.replace(b'\\"symbols\\": [\\"WTI\\"', b'\\"symbols\\": [\\"WTX\\"')
    assert renamed != raw
    path.write_bytes(
        {"flip": flipped, "cut": raw[:-7], "empty": b"", "text": b"date,price\n" * 9, "header": renamed}[damage]
    )
    with pytest.raises(ValueError, match=r"damaged|must be a file written by Forecaster\.save"):
        Forecaster.load(path)


def test_align_panel_names_missing_symbols_and_other_contracts(panel: Panel, forecaster: Forecaster) -> None:
    assert forecaster.align_panel(panel["BRENT", "WTI"]).symbols == ("WTI", "BRENT")
    with pytest.raises(
        ValueError, match="predict: prices must have every symbol of the forecaster; got WTI without BRENT"
    ):
        forecaster.align_panel(panel["WTI"])
    with pytest.raises(ValueError, match="WTI must be a spot price, as in the fit; got contract CL"):
        forecaster.align_panel(panel.with_contracts({"WTI": "CL"}))

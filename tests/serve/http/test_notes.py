"""Notes about the prices of a request: doubtful ones are named with symbol, date and value; no prices are an error."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import small_request
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data
from torchcommodity.export import Metadata
from torchcommodity.forecast import STALE_DAYS
from torchcommodity.serve.http._messages import OutputSelection, PriceWindow
from torchcommodity.serve.http._prediction import encode_prediction, window_findings

SYMBOLS = ("WTI", "BRENT", "HENRY_HUB")
PANEL = data.embedded(SYMBOLS).between("2012-01-01", "2018-12-31").drop_empty_rows()
METADATA = replace(
    small_request.METADATA,
    symbols=SYMBOLS,
    units=("", "", ""),
    contracts=(None, None, None),
    horizons=(5,),
    levels=(0.5,),
    warmup=252,
    trained_through="2017-12-29",
    training_prices=data.price_statistics(PANEL.between(None, "2017-12-31")),
)


def window(rows: int = 1000) -> PriceWindow:
    """The last rows of the panel, dated as if they ended today."""
    days = PANEL.dates[-rows:].astype(np.int64)
    return PriceWindow(PANEL.values.plain().numpy()[-rows:].copy(), days)


def notes(metadata: Metadata, instance: PriceWindow) -> Any:
    quantiles = torch.zeros(1, 3, 1, dtype=torch.double)
    return json.loads(encode_prediction(metadata, instance, OutputSelection([0], [0], "price"), quantiles))


def test_note_names_symbol_date_and_value() -> None:
    instance = window()
    instance.prices[-1, 0] *= 100
    prediction = notes(METADATA, instance)
    assert prediction["notes"][:2] == [
        "WTI: jump on 2018-12-28: 4515 after 44.48, about 100 times; check the decimal point",
        "WTI: outside training range on 2018-12-28: 4515, 40.8 times the highest training price, 110.62; "
        "check the unit",
    ]
    assert prediction["notes"][2].startswith("old prices on 2018-12-28: the last row is ")
    assert prediction["findings"][0] == {
        "kind": "jump",
        "symbol": "WTI",
        "date": "2018-12-28",
        "value": "4515 after 44.48, about 100 times; check the decimal point",
        "count": 1,
    }


def test_clean_prices_have_no_finding_but_their_age() -> None:
    for metadata in (METADATA, replace(METADATA, training_prices=())):
        assert [finding.kind for finding in window_findings(metadata, window())] == ["old prices"]


def test_old_prices_are_those_before_the_last_days(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = window()
    today = data.latest_date().astype(np.int64) - 1
    for age, kinds in ((STALE_DAYS["daily"], []), (STALE_DAYS["daily"] + 1, ["old prices"])):
        moved = PriceWindow(instance.prices, instance.days + (today - age - instance.days[-1]))
        known = {finding.kind for finding in window_findings(METADATA, moved)} - {"weekend", "gap"}
        assert sorted(known) == kinds


PRICES = st.sampled_from([np.nan, 0.0, -37.6, 1e-100, 1e100, 1.0, 45.0, 4500.0])


@given(st.integers(1, 40).flatmap(lambda T: st.lists(st.tuples(PRICES, PRICES, PRICES), min_size=T, max_size=T)))
def test_any_prices_have_findings_that_are_json(rows: list[tuple[float, float, float]]) -> None:
    instance = PriceWindow(np.array(rows), window(len(rows)).days)
    for metadata in (METADATA, replace(METADATA, training_prices=())):
        json.dumps(notes(metadata, instance), allow_nan=False)

"""Panels whose prices name their contracts: rolls made, rolls to come, and every way through which a panel passes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data, training
from torchcommodity.forecast import data_hash


def months(*names):
    return np.array(names, dtype="datetime64[M]")


def panel_of(code, first, last, lead):
    """Prices of one product on business days, rolled `lead` business days after the last trading day."""
    calendar = data.business_calendar("US")
    days = np.arange(first, last, dtype="datetime64[D]")
    days = days[np.is_busday(days, busdaycal=calendar)]
    product = data.CONTRACTS[code]
    start, end = np.datetime64(first, "M"), np.datetime64(last, "M")
    listed = np.arange(start - np.timedelta64(2, "M"), end + np.timedelta64(6, "M"))
    listed = listed[np.isin(listed.astype(int) % 12 + 1, product.delivery_months())]
    rolls = np.busday_offset(product.last_trading_days(listed), lead, roll="backward", busdaycal=calendar)
    held = listed[np.searchsorted(rolls, days, side="right")]
    frame = pd.DataFrame({"X": np.linspace(50.0, 60.0, len(days))}, index=pd.DatetimeIndex(days, name="date"))
    panel = data.to_panel(frame, contracts=[code])
    return replace(panel, deliveries=held[:, None])


@given(lead=st.integers(-25, 5), code=st.sampled_from(["CL", "NG", "C", "S"]), cut=st.integers(300, 700))
def test_rolls_ahead_follow_the_lead_of_the_rolls_made(lead, code, cut):
    whole = panel_of(code, "2016-01-04", "2020-01-01", lead)
    flags = whole.rolls(ahead=0)
    part = whole.between(None, whole.dates[cut - 1]).rolls(ahead=126)
    assert torch.equal(part[:cut], flags[:cut])
    assert torch.equal(part, flags[: cut + 126])


def test_rolls_of_the_exchange_rule_are_unchanged_by_deliveries():
    panel = panel_of("CL", "2018-01-02", "2019-12-31", 1)
    assert torch.equal(panel.rolls(), replace(panel, deliveries=None).rolls())
    assert not panel.has_own_rolls
    assert panel_of("CL", "2018-01-02", "2019-12-31", -4).has_own_rolls


def test_rolls_ahead_of_a_series_without_a_rule():
    days = pd.bdate_range("2018-01-02", "2018-12-31", name="date")
    held = days.to_numpy().astype("datetime64[M]") + np.timedelta64(1, "M")  # rolls on the first day of each month
    panel = data.to_panel(pd.DataFrame({"X": 1.0 + np.arange(len(days))}, index=days))
    panel = replace(panel, deliveries=held[:, None])
    rolls = panel.rolls(ahead=45)[:, 0].numpy()
    assert int((rolls[: len(panel)] > 0).sum()) == 11
    assert rolls[len(panel) :][rolls[len(panel) :] > 0].tolist() == [1, 2, 3]
    assert panel.contracts == (None,)


def test_roll_gaps_use_the_rolls_that_were_made():
    days = pd.bdate_range("2020-04-01", periods=4, name="date")
    panel = data.to_panel(pd.DataFrame({"X": [20.0, 21.0, 25.0, 26.0]}, index=days))
    held = months("2020-05", "2020-05", "2020-06", "2020-06")[:, None]
    curve = torch.tensor([[20.0, 23.0], [21.0, 24.0], [25.0, 27.0], [26.0, 28.0]], dtype=torch.float64)[:, None]
    panel = replace(panel, deliveries=held).with_curve(curve)
    returns = training.roll_adjusted_returns(panel)[:, 0].numpy()
    np.testing.assert_allclose(returns[1:], np.log([21 / 20, 25 / 24, 26 / 25]))
    inputs = training.model_inputs(panel, ahead=5)
    assert inputs.rolls[:4, 0].tolist() == [0, 0, 4, 0]


def test_deliveries_follow_rows_columns_store_and_equality(tmp_path):
    one = panel_of("CL", "2018-01-02", "2018-12-31", -5)
    frame = one.to_pandas().assign(Y=1.0 + np.arange(len(one)))
    held = np.concatenate([one.deliveries, np.full_like(one.deliveries, "NaT")], axis=1)
    panel = replace(data.to_panel(frame, contracts=["CL", None]), deliveries=held)
    part = panel["Y", "X"].between("2018-06-01")
    np.testing.assert_array_equal(part.deliveries[:, 1], one.deliveries[-len(part) :, 0])
    assert np.isnat(part.deliveries[:, 0]).all()
    assert not part.rolls()[:, 0].any()
    assert not panel.equals(replace(panel, deliveries=None))
    assert data_hash(panel) != data_hash(replace(panel, deliveries=None))
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(part, "part")
    assert store.load("part").equals(part)
    assert panel.with_contracts({"Y": "NG"}).deliveries is not None


@pytest.mark.parametrize(
    ("deliveries", "message"),
    [
        (months("2020-05", "2020-06"), r"expected delivery months of shape \(2, 1\); got \(2,\)"),
        (
            months("2020-06", "2020-05")[:, None],
            "in the order of delivery; got 2020-06, then 2020-05",
        ),
    ],
)
def test_deliveries_are_checked(deliveries, message):
    days = pd.bdate_range("2020-04-01", periods=2, name="date")
    panel = data.to_panel(pd.DataFrame({"X": [1.0, 2.0]}, index=days))
    with pytest.raises(data.DataError, match=message):
        replace(panel, deliveries=deliveries)

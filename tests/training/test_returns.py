"""Returns with and without the roll gap, on real futures and their curves."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data, forecast, ops


def test_the_parts_of_a_return_add_up(futures):
    raw = ops.log_returns(futures.values.plain())
    gaps, adjusted = forecast.roll_gaps(futures), forecast.roll_adjusted_returns(futures)
    rolled = futures.rolls(ahead=0) > 0
    assert not gaps[~rolled].any()
    torch.testing.assert_close(adjusted + gaps, torch.where(gaps.isnan(), torch.nan, raw), equal_nan=True)
    without = forecast.non_roll_returns(futures)
    torch.testing.assert_close(without[~rolled], raw[~rolled], equal_nan=True)
    assert without[rolled].isnan().all()


def test_an_adjusted_return_is_that_of_one_contract(futures):
    """Each is recomputed contract by contract from the curve: who held the second contract on the day before."""
    all_adjusted, rolls = forecast.roll_adjusted_returns(futures).numpy(), futures.rolls(ahead=0).numpy()
    for n, symbol in enumerate(futures.symbols):
        prices, curve = futures.values[:, n].numpy(), futures.curve[:, n].numpy()
        rows = np.flatnonzero(prices > 0)
        here, before = rows[1:], rows[:-1]
        same = (prices == curve[:, 0])[here] & (prices == curve[:, 0])[before]  # one vendor for price and curve
        known = (rolls[here, n] > 0) & same & np.isfinite(curve[before, 1])
        held = np.log(curve[here, 0][known]) - np.log(curve[before, 1][known])
        assert known.sum() > 60, symbol
        np.testing.assert_allclose(all_adjusted[here[known], n], held, atol=1e-12)


def test_a_roll_day_without_its_gap_is_a_day_like_others(futures):
    rolled = futures.rolls(ahead=0) > 0
    raw, adjusted = ops.log_returns(futures.values.plain()), forecast.roll_adjusted_returns(futures)
    for n, symbol in enumerate(futures.symbols):
        known = rolled[:, n] & adjusted[:, n].isfinite()
        usual = raw[~rolled[:, n], n].abs().nanmedian()
        assert raw[known, n].abs().median() > 1.2 * usual, symbol
        assert 0.8 * usual < adjusted[known, n].abs().median() < 1.4 * usual, symbol


def test_the_day_after_the_negative_price(futures):
    """2020-04-22: the held June contract went from 11.57 to 13.78; May, which ended at 10.01, was nobody's any more."""
    wti = futures["WTI"].between("2020-04-16", "2020-04-22")
    assert forecast.roll_adjusted_returns(wti)[-1].item() == pytest.approx(np.log(13.78 / 11.57))
    assert forecast.roll_gaps(wti)[-1].item() == pytest.approx(np.log(11.57 / 10.01))


def test_volatility_skips_the_rolls(futures):
    corn = futures["CORN"].between("2010-01-01", "2014-12-31")
    rolled = (corn.rolls(ahead=0) > 0)[:, 0]
    without = forecast.non_roll_returns(corn)
    kept = ops.riskmetrics_variance(without[~rolled], 21.0)
    assert torch.equal(ops.riskmetrics_variance(without, 21.0)[~rolled].isnan(), kept.isnan())
    raw = ops.riskmetrics_variance(ops.log_returns(corn.values.plain()), 21.0)
    july = int(np.flatnonzero(corn.dates == np.datetime64("2013-07-16"))[0])  # after the roll to the new crop, -27 %
    assert raw[july].sqrt() > 2.5 * ops.riskmetrics_variance(without, 21.0)[july].sqrt()


@given(missing=st.lists(st.integers(1, 249), unique=True, max_size=240), cut=st.integers(2, 251))
def test_any_hole_and_no_later_row(missing, cut):
    """Contract k costs 100 exp(k / 100) on every day: each roll since the last price is a gap of 1 %, and no more."""
    dates = pd.bdate_range("2019-01-02", periods=251, name="date")
    curve = 100 * torch.exp(torch.arange(20, dtype=torch.float64) / 100).expand(251, 1, 20).clone()
    curve[missing] = torch.nan
    frame = pd.DataFrame(curve[:, :, 0].numpy(), index=dates, columns=["WTI"])
    panel = data.Panel.from_pandas(frame, contracts=["CL"]).with_curve(curve)
    gaps = forecast.roll_gaps(panel)
    scheduled = data.roll_months("CL", panel.dates, ahead=0) > 0
    rows = np.flatnonzero(~panel.values[:, 0].isnan().numpy())
    since = np.diff(np.cumsum(scheduled)[rows])
    np.testing.assert_allclose(gaps[rows[1:], 0].numpy(), since / 100, atol=1e-9)
    part = panel.between(None, panel.dates[cut - 1])
    torch.testing.assert_close(forecast.roll_gaps(part), gaps[:cut], rtol=0, atol=0, equal_nan=True)


def test_without_contracts_nothing_is_taken_out():
    panel = data.embedded()
    raw = ops.log_returns(panel.values.plain())
    assert torch.equal(forecast.roll_adjusted_returns(panel).isnan(), raw.isnan())
    torch.testing.assert_close(forecast.roll_adjusted_returns(panel), raw, rtol=0, atol=0, equal_nan=True)

"""Roll gaps and roll-adjusted returns of real futures, recomputed contract by contract from their curves."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data, ops
from torchcommodity.data import Panel, to_panel
from torchcommodity.training import non_roll_returns, roll_adjusted_returns, roll_gaps


def test_roll_gaps_and_roll_adjusted_returns_sum_to_the_return(futures: Panel) -> None:
    returns = ops.log_returns(futures.values.plain())
    gaps, adjusted = roll_gaps(futures), roll_adjusted_returns(futures)
    is_roll = futures.rolls(ahead=0) > 0
    assert not gaps[~is_roll].any()
    torch.testing.assert_close(adjusted + gaps, torch.where(gaps.isnan(), torch.nan, returns), equal_nan=True)


def test_roll_adjusted_returns_on_a_roll_are_those_of_one_contract(futures: Panel) -> None:
    """The second contract of the day before is the first one on the day of the roll."""
    adjusted, rolls = roll_adjusted_returns(futures).numpy(), futures.rolls(ahead=0).numpy()
    for n, symbol in enumerate(futures.symbols):
        prices, curve = futures.values[:, n].numpy(), futures.curve[:, n].numpy()
        rows = np.flatnonzero(prices > 0)
        today, previous = rows[1:], rows[:-1]
        same_source = (prices == curve[:, 0])[today] & (prices == curve[:, 0])[previous]  # price and curve agree
        known = (rolls[today, n] > 0) & same_source & np.isfinite(curve[previous, 1])
        expected = np.log(curve[today, 0][known]) - np.log(curve[previous, 1][known])
        assert known.sum() > 60, symbol
        np.testing.assert_allclose(adjusted[today[known], n], expected, atol=1e-12)


def test_roll_adjusted_returns_on_a_roll_are_as_large_as_on_other_days(futures: Panel) -> None:
    is_roll = futures.rolls(ahead=0) > 0
    returns, adjusted = ops.log_returns(futures.values.plain()), roll_adjusted_returns(futures)
    for n, symbol in enumerate(futures.symbols):
        known = is_roll[:, n] & adjusted[:, n].isfinite()
        typical = returns[~is_roll[:, n], n].abs().nanmedian()
        assert returns[known, n].abs().median() > 1.2 * typical, symbol
        assert 0.8 * typical < adjusted[known, n].abs().median() < 1.4 * typical, symbol


def test_roll_gaps_after_the_negative_price_of_wti(futures: Panel) -> None:
    """2020-04-22: the June contract went from 11.57 to 13.78; the May contract had expired at 10.01."""
    wti = futures["WTI"].between("2020-04-16", "2020-04-22")
    assert roll_adjusted_returns(wti)[-1].item() == pytest.approx(np.log(13.78 / 11.57))
    assert roll_gaps(wti)[-1].item() == pytest.approx(np.log(11.57 / 10.01))


def test_non_roll_returns_are_nan_on_rolls_only(futures: Panel) -> None:
    is_roll = futures.rolls(ahead=0) > 0
    returns, non_roll = ops.log_returns(futures.values.plain()), non_roll_returns(futures)
    torch.testing.assert_close(non_roll[~is_roll], returns[~is_roll], equal_nan=True)
    assert non_roll[is_roll].isnan().all()


def test_non_roll_returns_keep_roll_gaps_out_of_the_volatility(futures: Panel) -> None:
    corn = futures["CORN"].between("2010-01-01", "2014-12-31")
    is_roll = (corn.rolls(ahead=0) > 0)[:, 0]
    variance = ops.riskmetrics_variance(non_roll_returns(corn), 21.0)
    assert torch.equal(
        variance[~is_roll].isnan(), ops.riskmetrics_variance(non_roll_returns(corn)[~is_roll], 21.0).isnan()
    )
    with_gaps = ops.riskmetrics_variance(ops.log_returns(corn.values.plain()), 21.0)
    row = int(np.flatnonzero(corn.dates == np.datetime64("2013-07-16"))[0])  # after the roll to the new crop, -27 %
    assert with_gaps[row].sqrt() > 2.5 * variance[row].sqrt()


@given(missing=st.lists(st.integers(1, 249), unique=True, max_size=240), stop=st.integers(2, 251))
def test_roll_gaps_bridge_missing_prices_and_do_not_look_ahead(missing: list[int], stop: int) -> None:
    """Contract k costs 100 exp(k / 100) on every day, so each roll since the last price is a gap of 1 %."""
    dates = pd.bdate_range("2019-01-02", periods=251, name="date")
    curve = 100 * torch.exp(torch.arange(20, dtype=torch.float64) / 100).expand(251, 1, 20).clone()
    curve[missing] = torch.nan
    prices = pd.DataFrame(curve[:, :, 0].numpy(), index=dates, columns=["WTI"])
    panel = to_panel(prices, contracts=["CL"]).with_curve(curve)
    gaps = roll_gaps(panel)
    is_roll = data.roll_months("CL", panel.dates, ahead=0) > 0
    rows = np.flatnonzero(~panel.values[:, 0].isnan().numpy())
    rolls_since = np.diff(np.cumsum(is_roll)[rows])
    np.testing.assert_allclose(gaps[rows[1:], 0].numpy(), rolls_since / 100, atol=1e-9)
    prefix = panel.between(None, panel.dates[stop - 1])
    torch.testing.assert_close(roll_gaps(prefix), gaps[:stop], rtol=0, atol=0, equal_nan=True)


def test_roll_adjusted_returns_without_contracts_are_the_returns() -> None:
    panel = data.embedded()
    returns = ops.log_returns(panel.values.plain())
    torch.testing.assert_close(roll_adjusted_returns(panel), returns, rtol=0, atol=0, equal_nan=True)


def test_roll_adjusted_returns_of_a_curve_in_contango() -> None:
    """Every contract rises by 0.1 % a day and costs 1 % more than the one before it; a roll costs that 1 %."""
    dates = pd.bdate_range("2019-01-02", periods=251, name="date")
    rows, contracts = torch.arange(251, dtype=torch.float64), torch.arange(3, dtype=torch.float64)
    curve = 50 * torch.exp(0.001 * rows[:, None, None] + 0.01 * contracts)
    prices = pd.DataFrame(curve[:, :, 0].numpy(), index=dates, columns=["WTI"])
    panel = to_panel(prices, contracts=["CL"]).with_curve(curve)
    is_roll = (panel.rolls(ahead=0) > 0)[1:]
    assert is_roll.sum() == 11
    expected = torch.full((250, 1), 0.001, dtype=torch.float64)
    torch.testing.assert_close(roll_adjusted_returns(panel)[1:], expected - 0.01 * is_roll)
    torch.testing.assert_close(non_roll_returns(panel)[1:], expected.masked_fill(is_roll, torch.nan), equal_nan=True)

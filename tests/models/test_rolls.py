"""What rolls do to a forecast: the days, the shift and the variances by hand, and nothing from a later price."""

import math

import pytest
import torch
from torch import Tensor

from torchcommodity import data
from torchcommodity.models import Har, HarConfig
from torchcommodity.models._rolls import count_rolls, curve_shift, gap_shift, rolls_ahead

HORIZONS = (2, 4)


def column(*values: float) -> Tensor:  # (1, T, 1)
    return torch.tensor(values, dtype=torch.double)[None, :, None]


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    """Spot oil as if it were the front month: the days of the rule are right, the gaps are ordinary returns."""
    return data.embedded()["WTI"].between("2013-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


def rolls_of(panel: data.Panel, ahead: int = 126) -> Tensor:  # (1, T + A, N)
    return torch.from_numpy(data.roll_months("CL", panel.dates, ahead))[None, :, None]


def test_a_roll_on_a_day_without_price_waits_for_the_next() -> None:
    rolls = torch.tensor([0, 0, 3, 0, 0, 4, 0, 0, 0, 0])[None, :, None]
    known = torch.tensor([True, True, False, True, True, True])[None, :, None]
    placed = count_rolls(rolls, known)
    assert placed.spanned.any(-1)[0, :, 0].tolist() == [False, False, False, True, False, True]
    ahead = rolls_ahead(placed, HORIZONS)[0, :, :, 0]
    assert ahead[:, 0].tolist() == [1, 1, 1, 1, 1, 0]  # at row 2 the last price is still that of the old contract
    assert ahead[:, 1].tolist() == [1, 2, 2, 1, 1, 0]


def test_the_shift_is_the_shrunk_mean_of_past_gaps_of_the_month() -> None:
    rolls = torch.tensor([0, 3, 0, 4, 0, 3, 0, 3, 0, 0, 0])[None, :, None]
    returns = column(math.nan, 0.1, 0.5, 0.2, 0.5, 0.3, 0.5)
    placed = count_rolls(rolls, torch.ones(1, 7, 1, dtype=torch.bool))
    shift = gap_shift(returns, placed, HORIZONS)[0, :, :, 0]
    march = [0.0, 0.1 / 4, 0.1 / 4, 0.1 / 4, 0.1 / 4, 0.4 / 5, 0.4 / 5]
    assert shift[4, 0].item() == pytest.approx(march[4])  # one roll of a March within two rows
    assert shift[4, 1].item() == pytest.approx(2 * march[4])
    assert shift[5, 0].item() == pytest.approx(march[5])
    assert shift[2, 0].item() == 0  # an April, of which no gap was seen


def test_the_curve_is_linear_between_known_contracts_and_level_beyond() -> None:
    curve = torch.tensor([[100.0, 110.0, math.nan, 130.0, math.nan]], dtype=torch.double)[None, :, None, :]
    expected = [0.0, 110.0, math.sqrt(110 * 130), 130.0, 130.0, 130.0]
    for count, price in enumerate(expected):
        found = curve_shift(curve, torch.tensor([[[[count]]]]))
        assert found.item() == pytest.approx(math.log(price / 100) if count else 0.0)
    curve[..., 0] = -37.63
    assert curve_shift(curve, torch.tensor([[[[1]]]])).isnan().all()


def test_days_of_rolls_have_no_part_in_the_variances(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    wild = prices.clone()
    for row in torch.nonzero(rolls[0, : len(panel), 0]).flatten().tolist():
        wild[:, row:] *= 1.1
    har = Har(1, HarConfig(gap=0.0))
    calm, jumped = har(prices, rolls), har(wild, rolls)
    torch.testing.assert_close(jumped.log_scale, calm.log_scale, equal_nan=True)
    assert (jumped.returns.isnan() == calm.returns.isnan()).all()
    assert (har(wild).log_scale - calm.log_scale).nan_to_num().max() > 0.1


def test_a_known_gap_shifts_the_forecast_and_leaves_its_width(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    curve = prices.unsqueeze(-1) * torch.tensor([1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07])
    har = Har(1)
    flat, told = har(prices, rolls, torch.ones_like(curve)), har(prices, rolls, curve)
    torch.testing.assert_close(told.log_scale, flat.log_scale, equal_nan=True)
    assert flat.shift[:, -1].abs().max() == 0
    assert told.shift[0, -1, :, 0].tolist() == pytest.approx([0.0, 0.00995, 0.02956, 0.05827], abs=1e-4)


@pytest.mark.parametrize("row", [300, 700])
def test_only_the_calendar_is_known_ahead(panel: data.Panel, row: int) -> None:
    prices, rolls = panel.values.plain()[None].clone(), rolls_of(panel)
    curve = prices.unsqueeze(-1) * torch.tensor([1.0, 1.01, 1.02])
    curve[:, 350:450] = torch.nan
    later, later_curve = prices.clone(), curve.clone()
    later[:, row:], later_curve[:, row:] = torch.nan, 7.0
    later[:, row + 5 :] = 3.0
    for before, after in zip(Har(1)(prices, rolls, curve), Har(1)(later, rolls, later_curve)):
        torch.testing.assert_close(after[:, :row], before[:, :row], rtol=0, atol=0, equal_nan=True)


def test_bad_calendars_are_refused_in_words(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    with pytest.raises(ValueError, match=r"rolls must reach the longest horizon, \d+ rows; got"):
        Har(1)(prices, rolls[:, :-1])
    with pytest.raises(ValueError, match=r"rolls must be int64 \(B, T \+ A, N\); got .* of torch.float64"):
        Har(1)(prices, rolls.double())
    with pytest.raises(ValueError, match=r"a curve must be .* and no rolls"):
        Har(1)(prices, None, prices.unsqueeze(-1))

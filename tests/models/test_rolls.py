"""Effect of contract rolls on a forecast: dates, shift and variances by hand, and causality."""

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
    """Spot oil labelled as the front month: the roll days are those of the contract, the gaps are ordinary returns."""
    return data.embedded(["WTI"]).between("2013-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


def rolls_of(panel: data.Panel, ahead: int = 126) -> Tensor:  # (1, T + A, N)
    return torch.from_numpy(data.roll_months("CL", panel.dates, ahead))[None, :, None]


def test_count_rolls_moves_a_roll_to_the_next_price() -> None:
    rolls = torch.tensor([0, 0, 3, 0, 0, 4, 0, 0, 0, 0])[None, :, None]
    has_price = torch.tensor([True, True, False, True, True, True])[None, :, None]
    counts = count_rolls(rolls, has_price)
    assert counts.in_return.any(-1)[0, :, 0].tolist() == [False, False, False, True, False, True]
    ahead = rolls_ahead(counts, HORIZONS)[0, :, :, 0]
    assert ahead[:, 0].tolist() == [1, 1, 1, 1, 1, 0]  # at row 2 the last price is still that of the old contract
    assert ahead[:, 1].tolist() == [1, 2, 2, 1, 1, 0]


def test_gap_shift_is_the_shrunk_mean_of_past_gaps_of_the_month() -> None:
    rolls = torch.tensor([0, 3, 0, 4, 0, 3, 0, 3, 0, 0, 0])[None, :, None]
    returns = column(math.nan, 0.1, 0.5, 0.2, 0.5, 0.3, 0.5)
    counts = count_rolls(rolls, torch.ones(1, 7, 1, dtype=torch.bool))
    shift = gap_shift(returns, counts, HORIZONS)[0, :, :, 0]
    march = [0.0, 0.1 / 4, 0.1 / 4, 0.1 / 4, 0.1 / 4, 0.4 / 5, 0.4 / 5]
    assert shift[4, 0].item() == pytest.approx(march[4])  # one March roll within two rows
    assert shift[4, 1].item() == pytest.approx(2 * march[4])
    assert shift[5, 0].item() == pytest.approx(march[5])
    assert shift[2, 0].item() == 0  # an April roll, with no April gap observed


def test_curve_shift_interpolates_between_known_contracts() -> None:
    curve = torch.tensor([[100.0, 110.0, math.nan, 130.0, math.nan]], dtype=torch.double)[None, :, None, :]
    expected = [0.0, 110.0, math.sqrt(110 * 130), 130.0, 130.0, 130.0]
    for count, price in enumerate(expected):
        shift = curve_shift(curve, torch.tensor([[[[count]]]]))
        assert shift.item() == pytest.approx(math.log(price / 100) if count else 0.0)


def test_curve_shift_is_nan_without_a_front_price() -> None:
    curve = torch.tensor([[-37.63, 110.0, 130.0]], dtype=torch.double)[None, :, None, :]
    assert curve_shift(curve, torch.tensor([[[[1]]]])).isnan().all()


def test_har_variances_leave_out_roll_days(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    with_gaps = prices.clone()
    for row in torch.nonzero(rolls[0, : len(panel), 0]).flatten().tolist():
        with_gaps[:, row:] *= 1.1
    har = Har(1, HarConfig(gap_weight=0.0))
    before, after = har(prices, rolls), har(with_gaps, rolls)
    torch.testing.assert_close(after.log_scale, before.log_scale, equal_nan=True)
    assert (after.returns.isnan() == before.returns.isnan()).all()
    assert (har(with_gaps).log_scale - before.log_scale).nan_to_num().max() > 0.1


def test_har_curve_shifts_the_forecast_and_keeps_its_width(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    curve = prices.unsqueeze(-1) * torch.tensor([1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07])
    har = Har(1)
    flat, contango = har(prices, rolls, torch.ones_like(curve)), har(prices, rolls, curve)
    torch.testing.assert_close(contango.log_scale, flat.log_scale, equal_nan=True)
    assert flat.shift[:, -1].abs().max() == 0
    assert contango.shift[0, -1, :, 0].tolist() == pytest.approx([0.0, 0.00995, 0.02956, 0.05827], abs=1e-4)


@pytest.mark.parametrize("row", [300, 700])
def test_har_knows_only_the_calendar_ahead(panel: data.Panel, row: int) -> None:
    prices, rolls = panel.values.plain()[None].clone(), rolls_of(panel)
    curve = prices.unsqueeze(-1) * torch.tensor([1.0, 1.01, 1.02])
    curve[:, 350:450] = torch.nan
    changed, changed_curve = prices.clone(), curve.clone()
    changed[:, row:], changed_curve[:, row:] = torch.nan, 7.0
    changed[:, row + 5 :] = 3.0
    for before, after in zip(Har(1)(prices, rolls, curve), Har(1)(changed, rolls, changed_curve)):
        torch.testing.assert_close(after[:, :row], before[:, :row], rtol=0, atol=0, equal_nan=True)


def test_har_rejects_bad_rolls_and_curves(panel: data.Panel) -> None:
    prices, rolls = panel.values.plain()[None], rolls_of(panel)
    with pytest.raises(ValueError, match=r"rolls must reach the longest horizon, \d+ rows; got"):
        Har(1)(prices, rolls[:, :-1])
    with pytest.raises(ValueError, match=r"rolls must be int64 \(B, T \+ A, N\); got .* of torch.float64"):
        Har(1)(prices, rolls.double())
    with pytest.raises(ValueError, match=r"Har: curve must be .* and no rolls"):
        Har(1)(prices, None, prices.unsqueeze(-1))

"""Effect of contract rolls on a forecast: dates, shift and variances by hand, and causality."""

import math

import pytest
import torch
from torch import Tensor

from torch_opkit import Past, _widest
from torchcommodity import data
from torchcommodity.models import Har, HarConfig
from torchcommodity.models._rolls import PRIOR, ExpectedGaps, GapPriors, curve_shift, find_rolls, weigh_gaps
from torchcommodity.ops import log_returns

HORIZONS = (2, 4)
LONG_RUN = 4e-4
PRIORS = GapPriors(location=6.0, variance=5.0)


def column(*values: float) -> Tensor:  # (1, T, 1)
    return torch.tensor(values, dtype=torch.double)[None, :, None]


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    """Spot oil labelled as the front month: the roll days are those of the contract, the gaps are ordinary returns."""
    return data.embedded(["WTI"]).between("2013-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


def rolls_of(panel: data.Panel, ahead: int = 126) -> Tensor:  # (1, T + A, N)
    return torch.from_numpy(data.roll_months("CL", panel.dates, ahead))[None, :, None]


@pytest.fixture(scope="module")
def gappy() -> tuple[Tensor, Tensor, Tensor]:
    """Returns, mask of prices and rolls of oil and gas with a month, half a year and a first year without prices."""
    panel = data.embedded(["WTI", "HENRY_HUB"]).between("2008-01-01", "2011-12-31")
    panel = panel.with_contracts({"WTI": "CL", "HENRY_HUB": "NG"})
    prices = panel.values.plain().clone()[None]
    prices[:, 400:425, 0] = prices[:, 600:730, 1] = prices[:, :250, 1] = torch.nan
    prices[:, -30:, 0] = torch.nan  # rolls that no row has passed
    return log_returns(prices), prices > 0, panel.roll_months(HORIZONS[-1])[None]


def effects(
    returns: Tensor, has_price: Tensor, rolls: Tensor, last_rows: int | None = None, past: Past | None = None
) -> ExpectedGaps:
    long_run = torch.full_like(returns if last_rows is None else returns[:, -last_rows:], LONG_RUN)
    return weigh_gaps(find_rolls(rolls, has_price, returns, HORIZONS, last_rows, past or Past()), long_run, PRIORS)


def passed(returns: Tensor, has_price: Tensor, rolls: Tensor, past: Past | None = None) -> Tensor:  # (B, T, N) bool
    return find_rolls(rolls, has_price, returns, HORIZONS, None, past or Past()).passed


def loop(returns: list[float], has_price: list[bool], rolls: list[int], t: int, h: int) -> tuple[int, float, float]:
    """Number and expected gaps of the rolls h rows ahead of row t of one series, roll by roll; variance of a gap."""
    T = len(returns)
    passed = {s: next((n for n in range(s, T) if has_price[n]), T) for s in range(len(rolls)) if rolls[s]}
    ahead = [rolls[s] for s in passed if s <= t + h and passed[s] > t]
    by_month: dict[int, list[float]] = {}
    for s, n in passed.items():
        if n <= t and math.isfinite(returns[n]):
            by_month.setdefault(rolls[s], []).append(returns[n])
    within = sum((gap - sum(gaps) / len(gaps)) ** 2 for gaps in by_month.values() for gap in gaps)
    freedom = sum(len(gaps) - 1 for gaps in by_month.values())
    variance = (within + 10 * LONG_RUN) / (freedom + 5)
    f = sum(sum(gaps) ** 2 / len(gaps) for gaps in by_month.values()) / max(len(by_month), 1) / variance
    means = {month: sum(gaps) / (len(gaps) + PRIOR) for month, gaps in by_month.items()}
    return len(ahead), f / (f + 6) * sum(means.get(month, 0.0) for month in ahead), variance


@pytest.mark.parametrize("n", [0, 1])
def test_rolls_ahead_equal_a_loop_over_rolls(gappy: tuple[Tensor, Tensor, Tensor], n: int) -> None:
    returns, has_price, rolls = gappy
    panel, columns = effects(*gappy), [x[0, :, n].tolist() for x in gappy]
    for t in range(7, returns.shape[1], 53):
        last = effects(returns[:, : t + 1], has_price[:, : t + 1], rolls[:, : t + 1 + HORIZONS[-1]], 1)
        for i, h in enumerate(HORIZONS):
            count, shift, variance = loop(*(column[: t + 1] for column in columns[:2]), columns[2], t, h)
            assert last.counts[0, 0, i, n] == panel.counts[0, t, i, n] == count
            assert last.shift[0, 0, i, n] == panel.shift[0, t, i, n] == pytest.approx(shift, abs=1e-15)
            assert last.gap_variance[0, 0, n] == panel.gap_variance[0, t, n] == pytest.approx(variance, rel=1e-12)


def test_gap_priors_limit_what_past_gaps_tell(gappy: tuple[Tensor, Tensor, Tensor]) -> None:
    returns, has_price, rolls = gappy
    long_run = torch.full_like(returns, LONG_RUN)
    ahead = find_rolls(rolls, has_price, returns, HORIZONS, None, Past())
    ignored = weigh_gaps(ahead, long_run, GapPriors(math.inf, math.inf))
    assert ignored.shift.abs().max() == 0
    torch.testing.assert_close(ignored.gap_variance, 2 * long_run)


@pytest.mark.parametrize("last_rows", [1, 5, 64])
def test_last_rows_have_the_bits_of_all_rows(gappy: tuple[Tensor, Tensor, Tensor], last_rows: int) -> None:
    for last, panel in zip(effects(*gappy, last_rows=last_rows), effects(*gappy)):
        torch.testing.assert_close(last, panel[:, -last_rows:], rtol=0, atol=0)


@pytest.mark.parametrize("row", [100, 249, 250, 410, 700, 990])  # also within gaps of the prices
def test_rolls_ahead_have_the_same_bits_row_by_row(gappy: tuple[Tensor, Tensor, Tensor], row: int) -> None:
    returns, has_price, rolls = gappy
    past = Past({})
    for first, last in ((0, row), (row, row + 1), (row + 1, returns.shape[1])):
        rows, ahead = slice(first, last), slice(first, last + HORIZONS[-1])
        before = past.tensors
        past = Past(before)
        live = effects(returns[:, rows], has_price[:, rows], rolls[:, ahead], 1, past)
        whole = effects(returns[:, :last], has_price[:, :last], rolls[:, : last + HORIZONS[-1]], 1)
        assert all(map(torch.equal, live, whole))
        in_return = passed(returns[:, rows], has_price[:, rows], rolls[:, ahead], Past(before))
        assert torch.equal(in_return, passed(*gappy)[:, rows])


def test_shift_of_the_last_row_has_the_gradient_of_all_rows(gappy: tuple[Tensor, Tensor, Tensor]) -> None:
    returns, has_price, rolls = gappy
    gradients = []
    for last_rows in (1, None):
        leaf = returns.clone().requires_grad_()
        effects(leaf, has_price, rolls, last_rows).shift[:, -1].sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(gradients[0], gradients[1])
    assert gradients[0] is not None
    assert gradients[0].isfinite().all()
    assert gradients[0].any()


def test_a_roll_is_passed_by_the_next_price() -> None:
    rolls = torch.tensor([0, 0, 3, 0, 0, 4, 0, 0, 0, 0])[None, :, None]
    has_price = torch.tensor([True, True, False, True, True, True])[None, :, None]
    assert passed(torch.zeros(1, 6, 1), has_price, rolls)[0, :, 0].tolist() == [0, 0, 0, 1, 0, 1]
    ahead = effects(torch.zeros(1, 6, 1), has_price, rolls).counts[0, :, :, 0]
    assert ahead[:, 0].tolist() == [1, 1, 1, 1, 1, 0]  # at row 2 the last price is still that of the old contract
    assert ahead[:, 1].tolist() == [1, 2, 2, 1, 1, 0]


def test_horizons_count_the_days_on_which_the_market_is_open() -> None:
    rolls = torch.tensor([0, 0, -1, -1, 3, 0, 0, 0, 4, 0])
    counts = effects(torch.zeros(1, 6, 1), (rolls[:6] >= 0)[None, :, None], rolls[None, :, None]).counts[0, :, :, 0]
    assert counts[:, 0].tolist() == [1, 1, 1, 1, 0, 0]  # row 4 is the second open row after row 0
    assert counts[:, 1].tolist() == [1, 1, 1, 1, 1, 1]
    closed = rolls[rolls >= 0]
    expected = effects(torch.zeros(1, 4, 1), torch.ones(1, 4, 1) > 0, closed[None, :, None]).counts[0, :, :, 0]
    assert torch.equal(counts[rolls[:6] >= 0], expected)


def test_gap_shift_is_the_shrunk_mean_of_past_gaps_of_the_month() -> None:
    rolls = torch.tensor([0, 3, 0, 4, 0, 3, 0, 3, 0, 0, 0])[None, :, None]
    returns = column(math.nan, 0.1, 0.5, 0.2, 0.5, 0.3, 0.5)
    shift = effects(returns, torch.ones(1, 7, 1, dtype=torch.bool), rolls).shift[0, :, :, 0]
    march = 2 * [0.1 / 4] + [0.4 / 5]
    variance = [10 * LONG_RUN / 5, (0.02 + 10 * LONG_RUN) / 6]  # two March gaps, 0.1 and 0.3: 0.02 within
    f = [(0.1**2 + 0.2**2) / 2 / variance[0], (0.4**2 / 2 + 0.2**2) / 2 / variance[1]]
    assert shift[4, 0].item() == pytest.approx(f[0] / (f[0] + 6) * march[0])  # one March roll within two rows
    assert shift[4, 1].item() == pytest.approx(2 * f[0] / (f[0] + 6) * march[0])
    assert shift[5, 0].item() == pytest.approx(f[1] / (f[1] + 6) * march[2])
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
    har = Har(1, HarConfig(gap_prior=math.inf))
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
    with pytest.raises(ValueError, match=r"Har: curve must be \(B, T, N, C\) .* got \(1, "):
        Har(1)(prices, rolls, prices)


def test_rolls_ahead_over_four_decades_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = data.embedded(["WTI", "HENRY_HUB"]).with_contracts({"WTI": "CL", "HENRY_HUB": "NG"})
    prices, rolls = panel.values.plain()[None], panel.roll_months(HORIZONS[-1])[None]
    exact = effects(log_returns(prices), prices > 0, rolls)
    monkeypatch.setattr(_widest, "WITHOUT_FLOAT64", {"cpu"})
    single = effects(log_returns(prices.float()), prices > 0, rolls)
    assert torch.equal(single.counts, exact.counts)
    assert single.gap_variance.dtype == torch.float32
    for x, y in ((single.shift, exact.shift), (single.gap_variance, exact.gap_variance)):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-6)

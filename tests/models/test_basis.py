"""Curves of spot prices in the location: later rows, live updates, missing curves; real prices of two products."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity import data
from torchcommodity.models import CURVE_AGE, Har, HarConfig, ModelInputs
from torchcommodity.training import calibrate, model_inputs

ROWS, CONTRACTS = 1500, 8


def spot_curve(prices: Tensor) -> Tensor:  # (T, N) -> (T, N, C)
    """Closes that lean on the prices of a month before: the shape of a real curve does not matter here."""
    front = torch.cat([prices[:1].expand(21, -1), prices[:-21]]).nan_to_num(3.0).clamp(min=0.5)
    return front[..., None] * torch.linspace(1.0, 1.2, CONTRACTS, dtype=torch.double)


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    """Oil, propane without a curve, and gas, whose curve begins late, has gaps and ends."""
    panel = data.embedded(["WTI", "PROPANE_MB", "HENRY_HUB"]).between("2006-01-01")
    panel = panel._rows(np.arange(len(panel.dates)) < ROWS)
    curve = spot_curve(panel.values.plain())
    curve[:, 1] = curve[:30, 2] = curve[700:720, 2] = curve[1450:, 2] = torch.nan
    curve[900:903, 0, 0], curve[1000, 0, 3], curve[1100:1130, 0, 1:] = -37.63, 0.0, torch.nan
    values = panel.values.plain().clone()
    values[1200, 0], values[1300:1303, 2] = -37.63, torch.nan
    return replace(panel, values=type(panel.values)(values)).with_curve(curve, {"WTI": "CL", "HENRY_HUB": "NG"})


@pytest.fixture(scope="module")
def inputs(panel: data.Panel) -> ModelInputs:
    return model_inputs(panel, 126)


@pytest.fixture(scope="module")
def har(inputs: ModelInputs) -> Har:
    har = Har(3, HarConfig(curve_of=("CL", "", "NG")))
    calibrate(har, inputs, symmetry=1.0)
    return har


@torch.no_grad()
def shift(har: Har, inputs: ModelInputs, **options: int) -> Tensor:  # (L, H, N)
    return har(*inputs.batch(), **options).shift[0]


def without_curve(har: Har, inputs: ModelInputs) -> Tensor:
    return shift(har, inputs._replace(curve=None))


@pytest.mark.parametrize("row", [400, 705, 1110, 1455])
def test_curve_does_not_look_ahead(har: Har, inputs: ModelInputs, row: int) -> None:
    assert inputs.curve is not None
    changed = inputs.curve.clone()
    changed[row + 1 :] *= 3
    changed[row + 1 :: 7] = torch.nan
    expected, actual = shift(har, inputs), shift(har, inputs._replace(curve=changed))
    assert torch.equal(actual[: row + 1], expected[: row + 1])
    assert not torch.equal(actual[row + 1 :], expected[row + 1 :])
    assert torch.equal(shift(har, inputs.before(row + 1))[-1], expected[row])


@pytest.mark.parametrize("cuts", [[10, 11], [1, 61, 252, 702, 721, 901, 1101, 1132, 1201, 1302, 1452, 1454]])
@torch.no_grad()
def test_curve_row_by_row_has_the_bits_of_one_call(har: Har, inputs: ModelInputs, cuts: list[int]) -> None:
    tensors: dict[str, Tensor] = {}
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, ROWS]):
        past = Past(tensors)
        parts.append(har(*inputs.before(stop).after(start).batch(), past=past).shift[0])
        tensors = past.tensors
    expected = shift(har, inputs)
    assert torch.equal(torch.cat(parts), expected)
    for rows in (1, 7, 300):
        assert torch.equal(shift(har, inputs, last_rows=rows), expected[-rows:])


def test_related_prices_serve_where_the_curve_is_older_than_three_rows(har: Har, inputs: ModelInputs) -> None:
    expected, others = shift(har, inputs), without_curve(har, inputs)
    same = (expected == others).all(1)  # (T, N)
    assert same[:, 1].all()
    assert not same[400:1300, 0].all()
    assert same[:89, 2].all()  # sixty values of the basis
    own = (inputs.prices[:, 2] > 0).nonzero()[:, 0]
    before = own[own < 700]  # gas has holidays of its own
    stale, late = own[own >= 700][: CURVE_AGE + 1], own[own >= 1450]
    assert not same[before[-1], 2]
    assert not same[stale[:CURVE_AGE], 2].any()
    assert same[stale[CURVE_AGE], 2]
    assert same[late[CURVE_AGE:], 2].all()
    assert not same[900:903, 0].any()  # a negative close stands for none
    assert same[1105:1130, 0].all()  # one contract is no curve
    # a row without the symbol's price, and one on which only others trade, keep what was known
    assert torch.equal(expected[1200, :, 0], expected[1199, :, 0])
    assert torch.equal(expected[1302, :, 2], expected[1299, :, 2])


def test_parts_of_a_curve_are_those_of_the_formulas(har: Har, inputs: ModelInputs, panel: data.Panel) -> None:
    """Against the formulas with pandas' mean, and numpy's interpolation, at one row of each symbol."""
    pd = pytest.importorskip("pandas")
    assert har.location is not None
    assert inputs.curve is not None
    basis = har.location.basis
    assert basis is not None
    expected, row = shift(har, inputs), 1400
    for m, n in enumerate((0, 2)):
        spot, curve = inputs.prices[: row + 1, n].numpy(), inputs.curve[: row + 1, n].numpy()
        own = spot > 0
        usable = (curve > 0)[:, 0] & ((curve > 0).sum(-1) > 1)
        last = pd.DataFrame(np.where(usable[:, None], curve, np.nan)[own]).ffill(limit=CURVE_AGE).to_numpy()
        b = pd.Series(np.log(last[:, 0]) - np.log(spot[own]))
        deviation = (b - b.ewm(halflife=252, ignore_na=True, min_periods=60).mean()).to_numpy()
        assert np.isfinite(deviation[-1])
        day = panel.dates[row].astype("datetime64[D]")
        roll = data.roll_days("NG", day + 1, day + 62)[0]
        tau = 0 if n == 0 else 14 + np.busday_count(day, roll, busdaycal=data.business_calendar("US"))
        for i, h in enumerate(har.config.horizons):
            share = 1 - 2 ** (-h / 40) if n == 0 else min(1, h / tau)
            position = max(0, h - tau) / 21
            slope = np.interp(position, np.arange(CONTRACTS), np.log(last[-1])) - np.log(last[-1, 0])
            m_h = slope + (share + float(basis.coefficients[i, m])) * deviation[-1]
            np.testing.assert_allclose(float(expected[row, i, n]), m_h, rtol=0, atol=1e-12)


def test_calibrated_reversion_of_the_basis_is_the_shrunk_regression(har: Har, inputs: ModelInputs) -> None:
    assert har.location is not None
    assert har.location.basis is not None
    basis, assets = har.location.basis, har.assets
    with torch.no_grad():
        slow = har.slow_variance(har.variance_terms(har.adjust_rolls(inputs.unsqueeze())))[0]
        state = basis.state(inputs.prices[None], inputs.curve[None], inputs.days[None], Past(), ROWS)  # type: ignore[index]
    assert basis.columns.tolist() == [0, 2]
    assert assets == 3
    for m, n in enumerate((0, 2)):
        for i, h in enumerate(har.config.horizons):
            target = data.targets(inputs.prices, har.config.horizons)[:, i, n]
            sigma = (h * slow[:, n]).sqrt()
            y, z = (target - state.expected[0, :, i, m]) / sigma, state.deviation[0, :, m] / sigma
            valid = y.isfinite() & state.known[0, :, m]
            y, z = y[valid].numpy(), z[valid].numpy()
            b = (z * y).sum() / (z**2).sum()
            f = b**2 * (z**2).sum() / (h * np.var(y - b * z))
            np.testing.assert_allclose(float(basis.coefficients[i, m]), b * f / (f + 6), rtol=1e-9)


def test_short_curve_is_flat_beyond_its_last_contract(har: Har, inputs: ModelInputs) -> None:
    assert inputs.curve is not None
    short = inputs.curve[..., :2]
    long = torch.cat([short, short[..., 1:].expand(-1, -1, 6)], -1)
    assert torch.equal(shift(har, inputs._replace(curve=short)), shift(har, inputs._replace(curve=long)))


def test_curves_need_a_product_for_each_symbol() -> None:
    with pytest.raises(ValueError, match="curve_of must have a product, or an empty text, for each of 2 symbols"):
        Har(2, HarConfig(curve_of=("CL",)))

"""Variances from open, high and low: the range, its scale and limit, rows without one, later rows, live updates."""

import math

import pandas as pd
import pytest
import torch
from torch import Tensor

from torch_opkit import Past
from torchcommodity import data
from torchcommodity.models import Har, HarConfig, ModelInputs
from torchcommodity.models._ranges import range_shocks
from torchcommodity.training import calibrate, model_inputs

ROWS = 1500
CAP = 0.25


def index_bars() -> data.Panel:
    """Two equity indices with real bars; one has bad ranges, a missing close, a closed month and a late start."""
    from arch.data import nasdaq, sp500

    frames = {"SP500": sp500.load()[:ROWS], "NASDAQ": nasdaq.load()[:ROWS]}
    panel = data.to_panel(pd.concat(frames, names=["symbol"]).reset_index())
    assert panel.bars is not None
    values, bars = panel.values.plain().clone(), panel.bars.plain().clone()
    values[900, 1], bars[:200, 1], bars[1000:1020, 1], bars[1100, 1] = torch.nan, torch.nan, torch.nan, 0.0
    bars[1200:1203, 1, 1] = bars[1200:1203, 1, 2]
    kind = type(panel.values)
    return data.Panel(kind(values), panel.dates, panel.symbols, panel.units, panel.provenance, bars=kind(bars))


@pytest.fixture(scope="module")
def inputs() -> ModelInputs:
    return model_inputs(index_bars(), 126, bars=True)


@pytest.fixture(scope="module")
def har(inputs: ModelInputs) -> Har:
    har = Har(2, HarConfig(bars=True))
    calibrate(har, inputs, symmetry=1.0)
    assert har.has_ranges.tolist() == [True, True]
    return har


@torch.no_grad()
def log_scale(har: Har, inputs: ModelInputs, **options: int) -> Tensor:  # (L, H, N)
    return har(*inputs.batch(), **options).log_scale[0]


def alternating(rows: int, high: float, low: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns, closes and bars (1, T, 1) of a price that goes up and down by 1 %, in a range around its open."""
    steps = torch.tensor([0.01, -0.01], dtype=torch.double).repeat(rows // 2)
    closes = 100 * steps.cumsum(0).exp()
    opens = closes * (-steps).exp()
    bars = torch.stack([opens, opens * math.exp(high), opens * math.exp(low)], -1)
    returns = torch.cat([steps.new_full((1,), torch.nan), steps[1:]])
    return returns[None, :, None], closes[None, :, None], bars[None, :, None]


def test_range_shocks_are_half_range_and_half_return() -> None:
    returns, closes, bars = alternating(80, 0.012, -0.012)
    shocks = range_shocks(returns, closes, bars, CAP, Past())
    assert torch.equal(shocks[:, 1:60], returns[:, 1:60])  # before the 60th range its scale is not known
    range_variance = 0.024**2 / (4 * math.log(2))
    kappa = 0.01**2 / range_variance
    blend = (kappa * range_variance + 0.01**2) / 2
    torch.testing.assert_close(shocks[0, 60:, 0], math.sqrt(blend) * returns[0, 60:, 0].sign())


def test_range_shocks_reach_up_to_the_closes_and_not_over_a_roll() -> None:
    returns, closes, bars = alternating(80, 0.012, -0.012)
    wide = bars.clone()
    wide[0, 70, 0] = torch.tensor([100.0, 100.1, 100.0])  # the range ends far from both closes
    r = float(returns[0, 70, 0])
    before = float(closes[0, 70, 0]) * math.exp(-r)
    highest, lowest = max(100.1, float(closes[0, 70, 0]), before), min(100.0, float(closes[0, 70, 0]), before)
    variances = torch.full((71,), 0.024**2 / (4 * math.log(2)), dtype=torch.double)
    variances[70] = math.log(highest / lowest) ** 2 / (4 * math.log(2))
    kappa = 70 * 0.01**2 / variances[1:].sum()
    expected = ((kappa * variances[70] + r**2) / 2).sqrt() * (1 if r > 0 else -1)
    torch.testing.assert_close(range_shocks(returns, closes, wide, CAP, Past())[0, 70, 0], expected)
    rolled = returns.clone()
    rolled[0, 70] = torch.nan  # the day of a roll has no return: its own range, which does not count for kappa
    shocks = range_shocks(rolled, closes, wide, CAP, Past())
    highest, lowest = max(100.1, float(closes[0, 70, 0])), min(100.0, float(closes[0, 70, 0]))
    kappa = 0.01**2 / variances[0]
    expected = (kappa * math.log(highest / lowest) ** 2 / (4 * math.log(2))).sqrt()
    torch.testing.assert_close(shocks[0, 70, 0], expected)
    torch.testing.assert_close(shocks[0, 71:], range_shocks(returns, closes, bars, CAP, Past())[0, 71:])


def test_range_shocks_limit_a_wrong_high() -> None:
    returns, closes, bars = alternating(160, 0.012, -0.012)
    wrong = bars.clone()
    wrong[0, 120, 0, 1] *= 100
    shocks, usual = (range_shocks(returns, closes, x, CAP, Past())[0, :, 0] for x in (wrong, bars))
    assert torch.equal(shocks[1:120], usual[1:120])
    torch.testing.assert_close(shocks[120].square(), 6 * usual[119].square(), rtol=0.05, atol=0)


def test_range_shocks_limit_the_scale() -> None:
    returns, closes, bars = alternating(80, 0.03, -0.03)
    variance = 0.06**2 / (4 * math.log(2))
    assert 0.2 * variance > 0.01**2
    expected = math.sqrt((0.2 * variance + 0.01**2) / 2)
    torch.testing.assert_close(
        range_shocks(returns, closes, bars, CAP, Past())[0, 60:, 0].abs(),
        expected + torch.zeros(20, dtype=torch.double),
    )


@pytest.mark.parametrize(("field", "price"), [(0, 0.0), (1, -1.0), (2, torch.nan), (1, torch.inf)])
def test_row_without_a_usable_range_keeps_its_return(field: int, price: float) -> None:
    returns, closes, bars = alternating(80, 0.012, -0.012)
    bars[0, 70, 0, field] = price
    assert torch.equal(range_shocks(returns, closes, bars, CAP, Past())[0, 70], returns[0, 70])
    bars[0, 70, 0] = closes[0, 70, 0]
    assert torch.equal(range_shocks(returns, closes, bars, CAP, Past())[0, 70], returns[0, 70])


def test_variances_without_any_range_are_those_of_closes(inputs: ModelInputs) -> None:
    nothing = torch.full((ROWS, 2, 3), torch.nan, dtype=torch.double)
    with_bars, closes = Har(2, HarConfig(bars=True)), Har(2, HarConfig())
    calibrate(with_bars, inputs._replace(bars=nothing), symmetry=1.0)
    calibrate(closes, inputs._replace(bars=None), symmetry=1.0)
    assert with_bars.has_ranges.tolist() == [False, False]
    expected = log_scale(closes, inputs._replace(bars=None))
    torch.testing.assert_close(log_scale(with_bars, inputs), expected, rtol=0, atol=0, equal_nan=True)


def test_symbol_with_few_usable_ranges_uses_its_closes(inputs: ModelInputs) -> None:
    assert inputs.bars is not None
    few = inputs.bars.clone()
    few[: ROWS // 2 + 10, 1] = torch.nan
    har = Har(2, HarConfig(bars=True))
    calibrate(har, inputs._replace(bars=few), symmetry=1.0)
    assert har.has_ranges.tolist() == [True, False]
    few[:, 1] = torch.nan
    expected = log_scale(har, inputs._replace(bars=few))
    torch.testing.assert_close(log_scale(har, inputs), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("row", [700, 1010, 1201])
def test_variances_from_bars_do_not_look_ahead(har: Har, inputs: ModelInputs, row: int) -> None:
    assert inputs.bars is not None
    bars = inputs.bars.clone()
    bars[row + 1 :, :, 1] *= 1.1
    bars[row + 1 :: 7] = torch.nan
    expected, actual = log_scale(har, inputs).nan_to_num(), log_scale(har, inputs._replace(bars=bars)).nan_to_num()
    assert torch.equal(actual[: row + 1], expected[: row + 1])
    assert not torch.equal(actual[row + 1 :], expected[row + 1 :])


@pytest.mark.parametrize("rows", [1, 7, 500])
def test_last_rows_of_variances_from_bars_have_the_bits_of_all_rows(har: Har, inputs: ModelInputs, rows: int) -> None:
    assert torch.equal(log_scale(har, inputs, last_rows=rows), log_scale(har, inputs)[-rows:])


CUTS = [[10, 11, 12], [1, 200, 259, 260, 261, 900, 901, 1001, 1019, 1100, 1101, 1202], [ROWS - 1]]


@pytest.mark.parametrize("cuts", CUTS)
@torch.no_grad()
def test_variances_from_bars_row_by_row_have_the_bits_of_one_call(
    har: Har, inputs: ModelInputs, cuts: list[int]
) -> None:
    tensors: dict[str, Tensor] = {}
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, ROWS]):
        past = Past(tensors)
        parts.append(har(*inputs.before(stop).after(start).batch(), past=past).log_scale[0])
        tensors = past.tensors
    expected = log_scale(har, inputs)
    torch.testing.assert_close(torch.cat(parts), expected, rtol=0, atol=0, equal_nan=True)


def test_har_states_what_its_bars_must_be(har: Har, inputs: ModelInputs) -> None:
    with pytest.raises(ValueError, match=r"Har: bars must be \(B, T, N, 3\) = \(1, 1500, 2, 3\).*; got none"):
        har(*inputs._replace(bars=None).batch())
    with pytest.raises(
        ValueError, match=r"Har: bars must be None: the model was fitted without; got \(1, 1500, 2, 3\)"
    ):
        Har(2, HarConfig())(*inputs.batch())


def test_bars_need_no_gradient_to_have_one(har: Har, inputs: ModelInputs) -> None:
    batch = inputs._replace(prices=inputs.prices.clone().requires_grad_()).batch()
    har(*batch).log_scale.nan_to_num().sum().backward()
    assert batch[0] is not None
    assert inputs.prices.grad is None

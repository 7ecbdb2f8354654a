"""The distribution between and beyond forecast quantiles, against scipy and numerical integration."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor

from torchcommodity.risk import (
    forecast_expected_shortfall,
    forecast_value_at_risk,
    log_score,
    probability_integral_transform,
    simple_return_quantiles,
)

LEVELS = tuple(np.round(np.arange(0.05, 1, 0.05), 2).tolist())
NORMAL = torch.from_numpy(stats.norm.ppf(LEVELS))
widths = st.lists(st.floats(0.01, 1), min_size=18, max_size=18)


def curve(widths: list[float]) -> Tensor:
    return torch.tensor([0.0, *np.cumsum(widths)], dtype=torch.float64) - 5


@pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.875, 0.95, 0.99])
def test_forecast_expected_shortfall_is_the_integral_of_value_at_risk(level: float) -> None:
    quantiles = torch.tensor([*NORMAL[:-1] * 0.02, 0.05], dtype=torch.float64)

    def var(u: float) -> float:
        return forecast_value_at_risk(quantiles, LEVELS, u).item()

    knots = [tau for tau in LEVELS if level < tau]
    integral, _ = integrate.quad(var, level, 1, points=knots or None, limit=200)
    assert forecast_expected_shortfall(quantiles, LEVELS, level).item() == pytest.approx(integral / (1 - level), 1e-5)


@pytest.mark.parametrize(
    ("distribution", "error"), [(stats.norm, 0.052), (stats.t(4), -0.065), (stats.t(3), -0.126)], ids=["n", "t4", "t3"]
)
def test_forecast_expected_shortfall_beyond_the_levels_has_the_stated_error(distribution: Any, error: float) -> None:
    quantiles = torch.from_numpy(distribution.ppf(LEVELS))
    true = -distribution.expect(lambda x: x, ub=distribution.ppf(0.05)) / 0.05
    assert forecast_expected_shortfall(quantiles, LEVELS).item() / true - 1 == pytest.approx(error, abs=0.001)


@settings(max_examples=25)
@given(widths, st.floats(0.01, 0.99))
def test_forecast_risk_is_coherent(widths: list[float], level: float) -> None:
    q = curve(widths)
    var, es = (measure(q, LEVELS, level) for measure in (forecast_value_at_risk, forecast_expected_shortfall))
    assert es >= var - 1e-9
    for measure, value in ((forecast_value_at_risk, var), (forecast_expected_shortfall, es)):
        assert measure(3 * q + 1, LEVELS, level).item() == pytest.approx(3 * value.item() - 1)


@settings(max_examples=25)
@given(widths, st.floats(0.001, 0.999))
def test_probability_integral_transform_inverts_the_quantile(widths: list[float], level: float) -> None:
    q = curve(widths)
    outcome = -forecast_value_at_risk(q, LEVELS, 1 - level)
    assert probability_integral_transform(q, LEVELS, outcome).item() == pytest.approx(level, abs=1e-9)


def test_log_score_integrates_to_one_and_is_the_slope_of_the_pit() -> None:
    def density(x: float) -> float:
        return math.exp(log_score(NORMAL, LEVELS, torch.tensor(x, dtype=torch.float64)))

    total, _ = integrate.quad(density, -20, 20, points=NORMAL.tolist(), limit=300)
    assert total == pytest.approx(1, abs=1e-6)
    x = torch.tensor([-3.0, -1.0, 0.05, 2.5], dtype=torch.float64)
    q, step = NORMAL.expand(4, -1), 1e-6
    slope = (
        probability_integral_transform(q, LEVELS, x + step) - probability_integral_transform(q, LEVELS, x - step)
    ) / (2 * step)
    assert torch.allclose(log_score(q, LEVELS, x).exp(), slope, rtol=1e-6)


def test_log_score_of_a_normal_sample_is_near_that_of_the_density() -> None:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(20_000))
    score = log_score(NORMAL.expand(len(x), -1), LEVELS, x).mean().item()
    assert score == pytest.approx(stats.norm.logpdf(x.numpy()).mean(), abs=0.02)


def test_forecast_risk_of_a_short_position_mirrors_the_quantiles() -> None:
    q = torch.tensor([-0.08, -0.05, 0.0, 0.06])
    short = forecast_value_at_risk(-q.flip(-1), (0.1, 0.5, 0.9, 0.95), 0.9)
    assert short.item() == pytest.approx(0.06)


def test_forecast_risk_propagates_nan() -> None:
    q = torch.stack([NORMAL, torch.full_like(NORMAL, torch.nan)])
    y = torch.tensor([torch.nan, 0.0], dtype=torch.float64)
    for result in (forecast_expected_shortfall(q, LEVELS)[1:], probability_integral_transform(q, LEVELS, y)):
        assert result.isnan().all()
    assert log_score(q, LEVELS, y).isnan().all()


def test_log_score_in_a_tail_without_width_is_nan_and_its_pit_is_defined() -> None:
    q = torch.tensor([0.0, 0.0, 1.0, 2.0])
    below = torch.tensor(-0.5)
    assert log_score(q, (0.1, 0.2, 0.5, 0.9), below).isnan()
    assert probability_integral_transform(q, (0.1, 0.2, 0.5, 0.9), below).item() == 0


def test_forecast_risk_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match=r"forecast_value_at_risk: level must be in \(0, 1\); got level=1"):
        forecast_value_at_risk(NORMAL, LEVELS, 1.0)
    with pytest.raises(ValueError, match=r"quantiles must be floating point \(\.\.\., 19\), one for each level; got"):
        forecast_expected_shortfall(NORMAL[:5], LEVELS)
    with pytest.raises(ValueError, match=r"quantiles must not decrease with the level; sort them; got crossing_rows=1"):
        forecast_value_at_risk(NORMAL.flip(0), LEVELS)
    with pytest.raises(ValueError, match=r"levels must be at least two increasing numbers in \(0, 1\); got levels="):
        forecast_value_at_risk(NORMAL[:2], (0.5, 1.0))
    with pytest.raises(ValueError, match=r"log_score: outcomes must have the shape \(\.\.\.\) of the quantiles"):
        log_score(NORMAL, LEVELS, torch.zeros(3))


@pytest.mark.parametrize("scale", [0.05, 0.4])
def test_simple_return_quantiles_give_the_shortfall_of_exponential_tails_in_logs(scale: float) -> None:
    log_returns = scale * NORMAL
    quantiles, levels = simple_return_quantiles(log_returns, LEVELS)
    a = ((log_returns[1] - log_returns[0]) / math.log(2)).item()
    q = log_returns[0].item()
    long = forecast_expected_shortfall(quantiles, levels).item()  # E exp(x) of the tail is exp(q) / (1 + a)
    assert long == pytest.approx(1 - math.exp(q) / (1 + a), rel=2e-3)
    assert long < 1
    mirrored = tuple(1 - level for level in reversed(levels))
    short = forecast_expected_shortfall(-quantiles.flip(-1), mirrored).item()
    assert short == pytest.approx(math.exp(-q) / (1 - a) - 1, rel=5e-3)
    assert forecast_value_at_risk(quantiles, levels).item() == pytest.approx(-math.expm1(q))

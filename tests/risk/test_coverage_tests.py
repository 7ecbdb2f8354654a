"""Kupiec's and Christoffersen's tests against published numbers."""

import numpy as np
import pytest
import torch

from torchcommodity.risk import christoffersen_test, kupiec_test


def with_exceedances(states: list[int]) -> np.ndarray:
    return np.where(np.array(states) == 1, -1.0, 1.0)


@pytest.mark.parametrize(
    ("level", "rows", "first", "last"),
    [(0.95, 255, 7, 20), (0.95, 510, 17, 35), (0.95, 1000, 38, 64), (0.99, 510, 2, 10), (0.99, 1000, 5, 16)],
)
def test_kupiec_test_has_the_published_regions_of_acceptance(level: float, rows: int, first: int, last: int) -> None:
    """Kupiec (1995), table 3: numbers of exceedances that a 5 % test does not reject."""
    accepted = [
        n
        for n in range(80)
        if kupiec_test(with_exceedances([1] * n + [0] * (rows - n)), np.full(rows, 0.5), level).p_value > 0.05
    ]
    assert (accepted[0], accepted[-1]) == (first, last)


def test_christoffersen_test_of_published_counts() -> None:
    """J. P. Morgan in 1998: 20 exceedances of 252, six after an exceedance. Jorion, Value at Risk, chapter 6."""
    states = [0, *[1, 1, 0] * 6, *[1, 0] * 8, *[0] * (252 - 34)]
    returns, var = with_exceedances(states), np.full(253, 0.5)
    test = christoffersen_test(returns, var, 0.95)
    assert (round(test.after_calm, 3), round(test.after_exceedance, 3), test.transitions) == (0.060, 0.3, 252)
    assert (round(test.independence, 2), round(test.statistic, 2)) == (9.53, 13.44)
    assert round(kupiec_test(returns[1:], var[1:], 0.95).statistic, 2) == 3.91
    assert test.p_value == pytest.approx(0.0012, abs=1e-4)


def test_kupiec_test_leaves_out_nan_and_does_not_count_a_loss_equal_to_var() -> None:
    returns, var = np.array([-2.0, -1.0, np.nan, 1.0, -5.0]), np.array([1.0, 1.0, 1.0, 1.0, np.nan])
    test = kupiec_test(returns, var, 0.5)
    assert (test.exceedances, test.observations, test.expected) == (1, 3, 1.5)


def test_christoffersen_test_leaves_out_pairs_with_nan() -> None:
    states = with_exceedances([0, 0, 1, 0, 0])
    states[2] = np.nan
    test = christoffersen_test(states, np.full(5, 0.5))
    assert (test.transitions, test.independence, test.independence_p_value) == (2, 0.0, 1.0)
    assert np.isnan(test.after_exceedance)


def test_coverage_tests_have_their_size() -> None:
    random = np.random.default_rng(0)
    samples = np.where(random.random((400, 1000)) < 0.05, -1.0, 1.0)
    var = np.full(1000, 0.5)
    for p in ([kupiec_test(x, var).p_value for x in samples], [christoffersen_test(x, var).p_value for x in samples]):
        assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


def test_coverage_tests_take_forecasts_of_a_network() -> None:
    var = torch.full((250,), 0.5, requires_grad=True)
    assert kupiec_test(torch.linspace(-1, 1, 250), var).exceedances == 63


def test_coverage_tests_reject_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"kupiec_test: returns, value_at_risk must be series \(T,\) of one length; got"
    ):
        kupiec_test(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match=r"kupiec_test: at least one row must have a return and a value at risk; got"):
        kupiec_test([np.nan], [1.0])
    with pytest.raises(ValueError, match=r"christoffersen_test: level must be in \(0, 1\); got level=99"):
        christoffersen_test([1.0], [1.0], level=99)
    with pytest.raises(ValueError, match=r"christoffersen_test: two consecutive rows must have .*; got pairs=0"):
        christoffersen_test([1.0], [1.0])

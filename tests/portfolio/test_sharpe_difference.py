"""`sharpe_difference`: its value, and the coverage of its interval."""

import numpy as np
import pytest

from torchcommodity.data import embedded
from torchcommodity.portfolio import Series, SharpeDifference, sharpe_difference


@pytest.fixture(scope="module")
def pair() -> tuple[Series, Series]:
    """Daily returns of two crude oils."""
    frame = embedded(["WTI", "BRENT"]).between("2010-01-01", "2018-12-31").to_pandas()
    daily = frame.pct_change().dropna().to_numpy()
    return daily[:, 0], daily[:, 1]


def test_sharpe_difference_equals_its_definition(pair: tuple[Series, Series]) -> None:
    a, b = pair
    result = sharpe_difference(a, b, replications=200)
    assert result.difference == pytest.approx(252**0.5 * (a.mean() / a.std(ddof=1) - b.mean() / b.std(ddof=1)))
    assert result.low < result.difference < result.high
    assert not result.significant
    assert result == sharpe_difference(a, b, replications=200)


def test_sharpe_difference_detects_a_higher_mean(pair: tuple[Series, Series]) -> None:
    a, b = pair
    assert sharpe_difference(a + 0.001, b, replications=200).significant


def test_sharpe_difference_of_equal_and_constant_returns(pair: tuple[Series, Series]) -> None:
    a, _ = pair
    assert sharpe_difference(a, a) == SharpeDifference(0.0, 0.0, 0.0)
    assert np.isnan(sharpe_difference(a, np.full_like(a, 0.01)).low)


def test_sharpe_difference_rejects_bad_input(pair: tuple[Series, Series]) -> None:
    a, b = pair
    with pytest.raises(ValueError, match=r"sharpe_difference: returns, other must be series \(T,\) of one length; got"):
        sharpe_difference(a, b[1:])
    with pytest.raises(ValueError, match="returns and other must be finite; got rows_not_finite=1"):
        sharpe_difference(np.append(a, np.nan), np.append(b, 0.0))


def test_sharpe_difference_interval_has_its_coverage() -> None:
    """Two simulated normal portfolios of equal Sharpe ratio."""
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(40):
        common = random.standard_normal(250)
        a, b = (0.05 + 0.7 * common + 0.7 * random.standard_normal(250) for _ in range(2))
        result = sharpe_difference(a, b, replications=100)
        covered += result.low <= 0 <= result.high
    assert covered >= 34  # 38 of 40 expected

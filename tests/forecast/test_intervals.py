"""Central intervals of any quantile levels."""

import pytest

from torchcommodity.forecast import intervals, main_interval
from torchcommodity.models import HarConfig


@pytest.mark.parametrize(
    ("levels", "expected", "main"),
    [
        (HarConfig().levels, ((0.25, 0.75), (0.1, 0.9), (0.05, 0.95)), (0.1, 0.9)),
        (tuple(k / 100 for k in range(1, 100)), ((0.25, 0.75), (0.1, 0.9), (0.05, 0.95)), (0.1, 0.9)),
        ((0.01, 0.05, 0.5, 0.95, 0.99), ((0.05, 0.95), (0.01, 0.99)), (0.05, 0.95)),
        ((0.025, 0.5, 0.975), ((0.025, 0.975),), (0.025, 0.975)),
        ((0.1, 0.2, 0.3, 0.7, 0.8, 0.9), ((0.2, 0.8), (0.1, 0.9)), (0.1, 0.9)),
        ((0.05, 0.3), (), None),
        ((0.5,), (), None),
    ],
    ids=["default", "99", "tails", "one", "few", "asymmetric", "median"],
)
def test_intervals_of_levels(
    levels: tuple[float, ...], expected: tuple[tuple[float, float], ...], main: tuple[float, float] | None
) -> None:
    assert intervals(levels) == expected
    assert main_interval(levels) == main

"""Speedup: interval of the ratio of medians."""

from typing import Any

import numpy as np
import pytest

from torchcommodity.optimize import speedup, time_interleaved


def test_speedup_interval_contains_the_ratio_and_is_significant_above_one() -> None:
    before, after = np.array([2.0, 2.2, 2.1, 2.4, 2.2]), np.array([1.0, 1.0, 1.1, 1.2, 1.1])
    result = speedup(before, after)
    assert result.low <= result.ratio <= result.high
    assert result.significant
    assert not speedup(before, before).significant
    assert str(speedup(before, before)).startswith("no significant speedup: 1.00x")


def test_speedup_below_one_is_a_significant_slowdown() -> None:
    result = speedup([1.0] * 30, [2.0] * 30)
    assert result.significant
    assert str(result) == "0.50x (0.50 to 0.50): slower"


def test_speedup_of_interleaved_calls() -> None:
    times = time_interleaved({"once": lambda: None, "many": lambda: sum(range(20_000))}, rounds=9)
    assert speedup(times["many"], times["once"]).significant
    assert speedup([2.0, 2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0]).ratio == 2


def test_speedup_rejects_fewer_than_five_rounds() -> None:
    with pytest.raises(ValueError, match="5 or more rounds; got 4, 4"):
        speedup(np.ones(4), np.ones(4))


@pytest.mark.parametrize(
    ("rounds", "error", "message"), [(0, ValueError, ">= 1; got rounds=0"), ("5", TypeError, "an int; got rounds='5'")]
)
def test_interleaved_calls_need_a_round(rounds: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^time_interleaved: rounds must be {message}$"):
        time_interleaved({"call": lambda: None}, rounds)

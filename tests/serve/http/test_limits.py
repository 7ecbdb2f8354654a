"""Limits and routes reject invalid values."""

import math

import pytest

from torchcommodity.serve.http import Limits, Routes


def test_limits_must_be_positive_and_finite() -> None:
    with pytest.raises(ValueError, match="Limits: max_bytes must be positive and finite; got 0"):
        Limits(max_bytes=0)
    with pytest.raises(ValueError, match="Limits: timeout must be positive and finite; got inf"):
        Limits(timeout=math.inf)


def test_routes_are_two_different_paths() -> None:
    with pytest.raises(ValueError, match="health route: expected a path that begins with /; got 'health'"):
        Routes(health="health")
    with pytest.raises(ValueError, match="predict route: must differ from the health route"):
        Routes(health="/ping", predict="/ping")
    for path in ("/live", "/docs", "/page/predict", "/"):  # none of them needs a token
        with pytest.raises(ValueError, match=f"predict route: expected a path that the server has no .*; got '{path}'"):
            Routes(predict=path)

"""`ops.indicators`: the candlestick patterns against TA-Lib, on real prices and on random candles with many ties."""

import inspect

import numpy as np
import pytest
import torch
from candles import random_candles
from torch import Tensor

from torchcommodity.ops import indicators

talib = pytest.importorskip("talib")
abstract = pytest.importorskip("talib.abstract")
nasdaq, sp500 = pytest.importorskip("arch.data.nasdaq"), pytest.importorskip("arch.data.sp500")

NAMES = [name for name in indicators.__all__ if name.startswith("cdl")]
PENETRATING = [name for name in NAMES if "penetration" in inspect.signature(getattr(indicators, name)).parameters]


def in_talib(name: str, candles: Tensor, **settings: float) -> Tensor:
    """TA-Lib's pattern in each column of (4, T, N)."""
    function, columns = getattr(talib, name.upper()), candles.permute(2, 0, 1).contiguous().numpy()
    return torch.tensor(np.stack([function(*column, **settings) for column in columns], 1))


@pytest.fixture(scope="module")
def random() -> Tensor:
    return torch.tensor(random_candles(300, 40, np.random.default_rng(0)))  # (4, T, N)


@pytest.fixture(scope="module")
def real() -> Tensor:
    frames = [market.load()[["Open", "High", "Low", "Close"]][-1000:] for market in (nasdaq, sp500)]
    return torch.tensor(np.stack([frame.to_numpy().T for frame in frames], -1)).double()


def test_every_pattern_of_talib_is_there() -> None:
    assert [name.upper() for name in NAMES] == sorted(talib.get_function_groups()["Pattern Recognition"])


@pytest.mark.parametrize("name", NAMES)
def test_pattern_equals_talib(name: str, random: Tensor, real: Tensor) -> None:
    pattern, expected = getattr(indicators, name), in_talib(name, random)
    assert pattern.lookback() == abstract.Function(name.upper()).lookback
    assert expected.count_nonzero() > 0
    assert torch.equal(pattern(*random).int(), expected)
    assert torch.equal(pattern(*real).int(), in_talib(name, real))


@pytest.mark.parametrize("name", PENETRATING)
def test_penetration_equals_talib(name: str, random: Tensor) -> None:
    default = abstract.Function(name.upper()).parameters["penetration"]
    assert inspect.signature(getattr(indicators, name)).parameters["penetration"].default == default
    expected = in_talib(name, random, penetration=0.625)
    assert expected.count_nonzero() > 0
    assert torch.equal(getattr(indicators, name)(*random, penetration=0.625).int(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_pattern_is_a_small_integer_without_gradient(name: str, random: Tensor) -> None:
    candles = random[:, :40, :8].float().requires_grad_()
    y = getattr(indicators, name)(*candles)
    assert y.dtype == (torch.int16 if "hikkake" in name else torch.int8)
    assert not y.requires_grad
    assert torch.equal(y, getattr(indicators, name)(*random[:, :40, :8]))


@pytest.mark.parametrize("name", NAMES)
def test_pattern_looks_at_a_window_of_candles(name: str, random: Tensor) -> None:
    """No look-ahead; a missing row is felt for `lookback` rows at most, and there is no pattern while it is."""
    pattern, missing, rows = getattr(indicators, name), 100, 130
    candles = random[:, :rows, :8].clone()
    candles[2, missing] = torch.nan
    complete, y = pattern(*random[:, :rows, :8]), pattern(*candles)
    felt = slice(missing, missing + pattern.lookback() + 1)
    assert torch.equal(y[:missing], complete[:missing])
    assert torch.equal(y[felt.stop :], complete[felt.stop :])
    assert ((y[felt] == complete[felt]) | (y[felt] == 0)).all()
    assert not y[missing].any()


def test_documentation_of_a_pattern_says_its_warmup() -> None:
    for name in NAMES:
        pattern = getattr(indicators, name)
        assert f"Warm-up: {pattern.lookback()} rows" in pattern.__doc__

"""Rolling operators against pandas: real prices, missing values, constants, high levels, long series."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rolling_checks import (
    assert_close,
    assert_differentiable_and_causal,
    assert_gradient_finite,
    load_prices,
    to_frame,
)
from torch import Tensor

from torchcommodity import ops

Peers = tuple[Callable[..., Tensor], Callable[..., Any]]  # our operator, and pandas' method of a Rolling object

ROLLING: dict[str, Peers] = {
    "rolling_mean": (ops.rolling_mean, lambda r: r.mean()),
    "rolling_sum": (ops.rolling_sum, lambda r: r.sum()),
    "rolling_var": (ops.rolling_var, lambda r: r.var()),
    "rolling_std": (ops.rolling_std, lambda r: r.std()),
    "rolling_skew": (ops.rolling_skew, lambda r: r.skew()),
    "rolling_kurt": (ops.rolling_kurt, lambda r: r.kurt()),
    "rolling_min": (ops.rolling_min, lambda r: r.min()),
    "rolling_max": (ops.rolling_max, lambda r: r.max()),
    "rolling_median": (ops.rolling_median, lambda r: r.median()),
    "rolling_quantile": (lambda x, w, **s: ops.rolling_quantile(x, w, 0.9, **s), lambda r: r.quantile(0.9)),
    "rolling_rank": (ops.rolling_rank, lambda r: r.rank()),
}
LONG = ["rolling_mean", "rolling_var", "rolling_std", "rolling_median", "rolling_max"]
UNSTABLE_IN_PANDAS = ["rolling_var", "rolling_std", "rolling_skew", "rolling_kurt"]  # running sums lose digits
FORMULAS: dict[str, Callable[[Tensor], Tensor]] = {
    "rolling_covariance": lambda x: ops.rolling_covariance(x, 5, min_periods=3),
    "rolling_zscore": lambda x: ops.rolling_zscore(x, 5, min_periods=3),
    "rolling_beta": lambda x: ops.rolling_beta(x[:, :1], x[:, 1:], 5, min_periods=3),
}


@pytest.fixture(scope="module")
def prices() -> Tensor:
    return load_prices()


@pytest.mark.parametrize("min_periods", [None, 5])
@pytest.mark.parametrize("name", ROLLING)
def test_equals_pandas_on_real_prices(prices: Tensor, name: str, min_periods: int | None) -> None:
    operator, method = ROLLING[name]
    assert_close(operator(prices, 21, min_periods=min_periods), method(to_frame(prices).rolling(21, min_periods)))


def test_rolling_covariance_equals_pandas_on_real_prices(prices: Tensor) -> None:
    expected = to_frame(prices).rolling(30, 10).cov().to_numpy().reshape(*prices.shape, -1)
    assert_close(ops.rolling_covariance(prices, 30, min_periods=10), expected)


def test_rolling_beta_equals_pandas_on_real_prices(prices: Tensor) -> None:
    y, x = to_frame(prices[:, :1])[0], to_frame(prices[:, 1:2])[0]
    rolling = x.where(y.notna() & x.notna()).rolling(30, 10)
    beta = ops.rolling_beta(prices[:, :1], prices[:, 1:2], 30, min_periods=10)
    assert_close(beta[:, 0], rolling.cov(y) / rolling.var(), 1e-7)


def test_rolling_zscore_equals_pandas_on_real_prices(prices: Tensor) -> None:
    frame = to_frame(prices)
    assert_close(ops.rolling_zscore(prices, 30), (frame - frame.rolling(30).mean()) / frame.rolling(30).std())


@pytest.mark.parametrize("name", [name for name in ROLLING if name not in UNSTABLE_IN_PANDAS])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_equals_pandas_with_missing_values_and_any_window(name: str, data: st.DataObject) -> None:
    x, window, min_periods = _draw_windows(data)
    operator, method = ROLLING[name]
    expected = method(to_frame(x).rolling(window, min_periods))
    assert_close(operator(x, window, min_periods=min_periods), expected, 1e-9, 1e-8)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rolling_var_equals_two_passes_with_missing_values_and_any_window(data: st.DataObject) -> None:
    def two_pass_variance(values: np.ndarray) -> float:
        valid = values[np.isfinite(values)]
        return float(np.var(valid, ddof=1)) if len(valid) > 1 else np.nan

    x, window, min_periods = _draw_windows(data)
    rolling = to_frame(x).replace(np.inf, np.nan).rolling(window, window if min_periods is None else min_periods)
    expected = rolling.apply(two_pass_variance, raw=True)
    assert_close(ops.rolling_var(x, window, min_periods=min_periods), expected, 1e-8, 1e-8)


def _draw_windows(data: st.DataObject) -> tuple[Tensor, int, int | None]:
    values = st.sampled_from([np.nan, np.inf, 1.1, 1.1, -2.5, 1e6, 1e6 + 1e-2])
    x = torch.tensor(data.draw(st.lists(values, min_size=1, max_size=40)), dtype=torch.double).unsqueeze(-1)
    window = data.draw(st.integers(1, 12))
    return x, window, data.draw(st.none() | st.integers(0, window))


@pytest.mark.parametrize("name", ["rolling_var", "rolling_std"])
def test_constant_window_has_no_variance(name: str) -> None:
    assert (ROLLING[name][0](_constant_after_outliers(), 60)[110:] == 0).all()


@pytest.mark.parametrize("name", ["rolling_skew", "rolling_kurt", "rolling_zscore"])
def test_constant_window_is_nan(name: str) -> None:
    assert getattr(ops, name)(_constant_after_outliers(), 60)[110:].isnan().all()


def _constant_after_outliers() -> Tensor:
    x = torch.full((300, 1), 1.1, dtype=torch.double)
    x[:50] = 1e9 * torch.rand(50, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return x


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=["float32", "float64"])
@pytest.mark.parametrize("name", LONG)
def test_keeps_digits_over_a_million_rows_at_a_high_level(name: str, dtype: torch.dtype) -> None:
    noise = 1e-2 if dtype == torch.double else 1.0
    generator = torch.Generator().manual_seed(0)
    x = (1e6 + noise * torch.randn(1_000_000, 1, dtype=torch.double, generator=generator)).to(dtype)
    operator, method = ROLLING[name]
    expected = method(to_frame(x).iloc[-3000:].rolling(60)).iloc[-2900:]
    assert_close(operator(x, 60)[-2900:], expected, 1e-5)


@pytest.mark.parametrize("name", ["rolling_skew", "rolling_kurt", "rolling_std", "rolling_sum"])
def test_gradient_is_right_and_ignores_nan_rows(prices: Tensor, name: str) -> None:
    x = prices[35:60].log().requires_grad_()
    operator = ROLLING[name][0]
    assert torch.autograd.gradcheck(lambda x: operator(x, 7, min_periods=5).nan_to_num(0), x)
    assert_gradient_finite(operator(x, 7, min_periods=5), x)


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_is_differentiable_and_causal(prices: Tensor, name: str) -> None:
    assert_differentiable_and_causal(FORMULAS[name], prices[35:55, :3].log())

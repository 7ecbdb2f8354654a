"""Exponentially weighted operators against pandas: real prices, missing values, high levels, learned half-lives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rolling_checks import assert_close, assert_differentiable_and_causal, load_prices, to_frame
from torch import Tensor

from torchcommodity import ops

Peers = tuple[
    Callable[..., Tensor], Callable[..., Any]
]  # our operator, and pandas' method of an ExponentialMovingWindow

EWM: dict[str, Peers] = {
    "ewm_mean": (ops.ewm_mean, lambda e: e.mean()),
    "ewm_var": (ops.ewm_var, lambda e: e.var()),
    "ewm_var-bias": (lambda x, **s: ops.ewm_var(x, bias=True, **s), lambda e: e.var(bias=True)),
    "ewm_std": (ops.ewm_std, lambda e: e.std()),
}
RULES = [{"adjust": adjust, "ignore_na": ignore_na} for adjust in (True, False) for ignore_na in (True, False)]
RULE_IDS = ["adjust-ignore_na", "adjust", "ignore_na", "neither"]
DECAYS = ({"span": 20}, {"com": 3.0, "min_periods": 7}, {"halflife": 5.0}, {"alpha": 0.3})


@pytest.fixture(scope="module")
def prices() -> Tensor:
    return load_prices()


@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
@pytest.mark.parametrize("name", EWM)
def test_equals_pandas_on_real_prices(prices: Tensor, name: str, rule: dict[str, bool]) -> None:
    operator, method = EWM[name]
    for decay in DECAYS:
        assert_close(operator(prices, **decay, **rule), method(to_frame(prices).ewm(**decay, **rule)), 1e-7)


def test_ewm_covariance_equals_pandas_on_real_prices(prices: Tensor) -> None:
    expected = to_frame(prices).ewm(span=20).cov().to_numpy().reshape(*prices.shape, -1)
    assert_close(ops.ewm_covariance(prices, span=20), expected, 1e-7)


def test_ewm_correlation_equals_pandas_on_real_prices(prices: Tensor) -> None:
    expected = to_frame(prices).ewm(span=20).corr().to_numpy().reshape(*prices.shape, -1)
    assert_close(ops.ewm_correlation(prices, span=20)[5:], expected[5:], 1e-6, 1e-8)


@pytest.mark.parametrize("name", ["ewm_covariance", "ewm_correlation"])
def test_pairwise_operators_name_the_argument_of_the_caller(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: x must be \(\.\.\., T, N\); got x \(12,\)$"):
        getattr(ops, name)(torch.ones(12), span=5)
    with pytest.raises(TypeError, match=f"^{name}: x must be a Tensor .* got x='ndarray'$"):
        getattr(ops, name)(np.ones((12, 3)), span=5)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.sampled_from([np.nan, np.inf, 1.1, -2.5, 1e6, 1e6 + 1e-2]), min_size=1, max_size=40),
    rule=st.sampled_from(RULES),
)
def test_ewm_mean_equals_pandas_with_missing_values(rows: list[float], rule: dict[str, bool]) -> None:
    x = torch.tensor(rows, dtype=torch.double).unsqueeze(-1)
    assert_close(ops.ewm_mean(x, span=5, **rule), to_frame(x).ewm(span=5, **rule).mean(), 1e-10)


@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "rtol"), [("ewm_mean", 1e-7), ("ewm_std", 1e-5)])
def test_keeps_digits_over_a_million_rows_at_a_high_level(name: str, rtol: float, dtype: torch.dtype) -> None:
    noise = 1e-2 if dtype == torch.double else 1.0
    generator = torch.Generator().manual_seed(0)
    x = (1e6 + noise * torch.randn(1_000_000, 1, dtype=torch.double, generator=generator)).to(dtype)
    operator, method = EWM[name]
    expected = method(to_frame(x).iloc[-3000:].ewm(span=20)).iloc[-2000:]
    assert_close(operator(x, span=20)[-2000:], expected, rtol)


@pytest.mark.parametrize("rule", RULES, ids=RULE_IDS)
@pytest.mark.parametrize("operator", [ops.ewm_mean, ops.ewm_var])
def test_gradient_of_halflife(prices: Tensor, operator: Callable[..., Tensor], rule: dict[str, bool]) -> None:
    x = prices[:30].log()
    halflife = torch.tensor([2.0, 3.0, 4.0, 5.0], dtype=torch.double, requires_grad=True)

    def of_halflife(halflife: Tensor) -> Tensor:
        return operator(x, halflife=halflife, **rule).nan_to_num(0)

    assert torch.autograd.gradcheck(of_halflife, halflife, atol=1e-4, rtol=1e-3)


def test_ewm_mean_second_gradient_of_halflife(prices: Tensor) -> None:
    x = prices[:30].log()
    halflife = torch.tensor([2.0, 3.0, 4.0, 5.0], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda h: ops.ewm_mean(x, halflife=h), halflife, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("operator", [ops.ewm_std, ops.ewm_covariance, ops.ewm_correlation])
def test_is_differentiable_and_causal(prices: Tensor, operator: Callable[..., Tensor]) -> None:
    assert_differentiable_and_causal(lambda x: operator(x, span=5), prices[35:55, :3].log())

"""log_returns and riskmetrics_variance: definition, oracle, gaps, gradients, causality."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from arch.data import wti
from torch import Tensor

from torchcommodity import ops


@pytest.fixture
def prices() -> Tensor:
    # (T, 2): spot oil, and the same with a gap, a zero and a negative price
    oil = torch.tensor(wti.load().to_numpy()[-300:])
    gaps = oil.clone()
    gaps[[0, 7, 8, 200]] = torch.nan
    gaps[50], gaps[51] = 0.0, -37.63
    return torch.cat([oil, gaps], 1)


def test_log_returns_are_their_definition(prices: Tensor) -> None:
    found = ops.log_returns(prices)
    for n in range(2):
        last = None
        for t, p in enumerate(prices[:, n].tolist()):
            usable = math.isfinite(p) and p > 0
            expected = math.log(p) - math.log(last) if usable and last else math.nan
            assert found[t, n].item() == pytest.approx(expected, abs=1e-12, nan_ok=True)
            last = p if usable else last


def test_log_returns_sum_to_the_whole_way(prices: Tensor) -> None:
    positive = prices[:, 1][prices[:, 1] > 0]
    whole = (positive[-1] / positive[0]).log()
    assert torch.allclose(ops.log_returns(prices)[:, 1].nansum(), whole)


@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("halflife", [1.0, 11.2, 63])
def test_ewm_variance_is_pandas(prices: Tensor, halflife: float, adjust: bool) -> None:
    returns = ops.log_returns(prices)
    squared = pd.DataFrame(returns.numpy()) ** 2
    expected = squared.ewm(halflife=halflife, ignore_na=True, adjust=adjust).mean().to_numpy()
    np.testing.assert_allclose(ops.riskmetrics_variance(returns, halflife, adjust=adjust).numpy(), expected, rtol=1e-10)


def test_no_look_ahead(prices: Tensor) -> None:
    changed = prices.clone()
    changed[150:] *= 3
    for formula in (ops.log_returns, lambda p: ops.riskmetrics_variance(ops.log_returns(p), 21)):
        assert torch.equal(formula(prices)[:150].nan_to_num(9), formula(changed)[:150].nan_to_num(9))


def test_gradients(prices: Tensor) -> None:
    few = prices[45:56].clone()
    few[5] = -1.0  # a zero price would become positive under gradcheck's step
    few.requires_grad_()

    def known(p: Tensor) -> Tensor:
        r = ops.log_returns(p)
        v = ops.riskmetrics_variance(r, 3.0)
        return torch.cat([r[r.isfinite()], v[v.isfinite()]])

    assert torch.autograd.gradcheck(known, few)
    assert torch.autograd.gradgradcheck(known, few)


def test_nan_rows_take_no_part_in_the_backward_pass(prices: Tensor) -> None:
    prices = prices.requires_grad_()
    v = ops.riskmetrics_variance(ops.log_returns(prices), 3.0)
    (gradient,) = torch.autograd.grad(v, prices, torch.where(v.isnan(), torch.nan, 1.0).to(v))
    assert gradient.isfinite().all()
    assert gradient[50:52, 1].tolist() == [0.0, 0.0]  # prices without a logarithm


def test_bad_input_is_refused_in_words(prices: Tensor) -> None:
    with pytest.raises(
        ValueError, match=r"riskmetrics_variance: halflife must be > 0; got halflife=0 with returns \(300, 2\)"
    ):
        ops.riskmetrics_variance(prices, 0)
    with pytest.raises(TypeError, match="log_returns: prices must be floating-point"):
        ops.log_returns(torch.ones(3, 2, dtype=torch.long))

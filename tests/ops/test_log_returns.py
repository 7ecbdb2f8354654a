"""log_returns on real prices: definition, gaps, gradients, causality, errors."""

import math

import pytest
import torch
from rolling_checks import load_oil_prices
from torch import Tensor

from torchcommodity import ops


@pytest.fixture
def prices() -> Tensor:
    return load_oil_prices()


def test_log_returns_match_definition(prices: Tensor) -> None:
    returns = ops.log_returns(prices)
    for n in range(2):
        last = None
        for t, price in enumerate(prices[:, n].tolist()):
            valid = math.isfinite(price) and price > 0
            expected = math.log(price) - math.log(last) if valid and last else math.nan
            assert returns[t, n].item() == pytest.approx(expected, abs=1e-12, nan_ok=True)
            last = price if valid else last


def test_log_returns_sum_to_total_return(prices: Tensor) -> None:
    valid = prices[:, 1][prices[:, 1] > 0]
    assert torch.allclose(ops.log_returns(prices)[:, 1].nansum(), (valid[-1] / valid[0]).log())


def test_log_returns_are_causal(prices: Tensor) -> None:
    changed = prices.clone()
    changed[150:] *= 3
    assert torch.equal(ops.log_returns(prices)[:150].nan_to_num(9), ops.log_returns(changed)[:150].nan_to_num(9))


def test_log_returns_gradient(prices: Tensor) -> None:
    few = prices[45:56].clone()
    few[5] = -1.0  # gradcheck's step would make a zero price positive
    few.requires_grad_()

    def valid_returns(prices: Tensor) -> Tensor:
        returns = ops.log_returns(prices)
        return returns[returns.isfinite()]

    assert torch.autograd.gradcheck(valid_returns, few)
    assert torch.autograd.gradgradcheck(valid_returns, few)


def test_log_returns_gradient_ignores_nan_rows(prices: Tensor) -> None:
    prices.requires_grad_()
    returns = ops.log_returns(prices)
    (gradient,) = torch.autograd.grad(returns, prices, torch.where(returns.isnan(), torch.nan, 1.0).to(returns))
    assert gradient.isfinite().all()
    assert gradient[50:52, 1].tolist() == [0.0, 0.0]  # zero and negative price


def test_log_returns_reject_integers() -> None:
    with pytest.raises(TypeError, match="log_returns: prices must be floating-point"):
        ops.log_returns(torch.ones(3, 2, dtype=torch.long))

"""riskmetrics_variance on real prices: pandas, gradients, causality, errors."""

import numpy as np
import pandas as pd
import pytest
import torch
from rolling_checks import load_oil_prices
from torch import Tensor

from torchcommodity import ops


@pytest.fixture
def returns() -> Tensor:
    return ops.log_returns(load_oil_prices())


@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("halflife", [1.0, 11.2, 63])
def test_riskmetrics_variance_equals_pandas(returns: Tensor, halflife: float, adjust: bool) -> None:
    squared = pd.DataFrame(returns.numpy()) ** 2
    expected = squared.ewm(halflife=halflife, ignore_na=True, adjust=adjust).mean().to_numpy()
    np.testing.assert_allclose(ops.riskmetrics_variance(returns, halflife, adjust=adjust).numpy(), expected, rtol=1e-10)


def test_riskmetrics_variance_is_causal(returns: Tensor) -> None:
    changed = returns.clone()
    changed[150:] *= 3
    variance, variance_changed = (ops.riskmetrics_variance(r, 21)[:150].nan_to_num(9) for r in (returns, changed))
    assert torch.equal(variance, variance_changed)


def test_riskmetrics_variance_gradient(returns: Tensor) -> None:
    few = returns[45:56].clone().requires_grad_()

    def valid_variance(returns: Tensor) -> Tensor:
        variance = ops.riskmetrics_variance(returns, 3.0)
        return variance[variance.isfinite()]

    assert torch.autograd.gradcheck(valid_variance, few)
    assert torch.autograd.gradgradcheck(valid_variance, few)


def test_riskmetrics_variance_gradient_ignores_nan_rows(returns: Tensor) -> None:
    returns.requires_grad_()
    variance = ops.riskmetrics_variance(returns, 3.0)
    (gradient,) = torch.autograd.grad(variance, returns, torch.where(variance.isnan(), torch.nan, 1.0).to(variance))
    assert gradient.isfinite().all()
    assert gradient[50:52, 1].tolist() == [0.0, 0.0]  # missing returns


def test_riskmetrics_variance_rejects_halflife_zero(returns: Tensor) -> None:
    with pytest.raises(
        ValueError, match=r"riskmetrics_variance: halflife must be > 0; got halflife=0 with returns \(300, 2\)"
    ):
        ops.riskmetrics_variance(returns, 0)

"""`EwmVolatility`, `GarchVariance` and `VolatilityTarget`."""

import pytest
import torch
from learned_layers import three_symbols
from torch import Tensor

from torchcommodity import nn, ops


@pytest.fixture(scope="module")
def returns() -> Tensor:  # (T, 3)
    return ops.log_returns(three_symbols())


def test_ewm_volatility_equals_the_operator(returns: Tensor) -> None:
    volatility = nn.EwmVolatility([5.0, 21.0], dtype=torch.double)(returns)
    for k, halflife in enumerate((5, 21)):
        expected = ops.riskmetrics_variance(returns, halflife).sqrt()
        torch.testing.assert_close(volatility[..., k], expected, equal_nan=True)


def test_garch_variance_equals_the_operator(returns: Tensor) -> None:
    garch = nn.GarchVariance(3, 1e-4, 0.95, 0.1, dtype=torch.double)
    h = ops.garch_variance(returns, 0.05e-4, 0.095, 0.855)
    torch.testing.assert_close(garch(returns), h)
    torch.testing.assert_close(garch.next_variance(returns)[:-1], h[1:])
    assert {name: value[0].item() for name, value in garch.learned_parameters().items()} == pytest.approx(
        {"omega": 0.05e-4, "alpha": 0.095, "beta": 0.855}
    )


def test_ewm_volatility_and_garch_variance_reject_bad_start_values() -> None:
    with pytest.raises(ValueError, match=r"EwmVolatility: halflives must be positive; got halflives=\[0.0\]"):
        nn.EwmVolatility([0.0])
    with pytest.raises(ValueError, match=r"Interval: the parameter must be between 0 and 0\.9995"):
        nn.GarchVariance(persistence=1.0)

"""`CorrelationRegime` and `CorrelationConv`."""

from typing import Any

import pytest
import torch
from learned_layers import three_symbols
from torch import Tensor

from torchcommodity import nn, ops


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (T, 3)
    return three_symbols()


def test_correlation_regime_equals_the_operators(prices: Tensor) -> None:
    layer = nn.CorrelationRegime(30, min_periods=20, lag=10, threshold=0.2, softness=1e-4)
    result = layer(prices)
    correlation = ops.rolling_correlation(ops.log_returns(prices), 30, min_periods=20)
    torch.testing.assert_close(result.correlation, correlation, equal_nan=True)
    shift, regime = ops.correlation_regime(correlation, 0.2, 10)
    torch.testing.assert_close(result.shift, shift, equal_nan=True)
    assert torch.equal(layer.regime(prices), regime)
    assert regime[-1] > 2


def test_correlation_regime_gate_opens_at_a_new_regime(prices: Tensor) -> None:
    layer = nn.CorrelationRegime(30, min_periods=20, lag=10, threshold=0.2, softness=1e-4)
    result, regime = layer(prices), layer.regime(prices)
    starts = torch.cat([torch.zeros(1, dtype=torch.bool), regime.diff() > 0])
    assert (result.gate[starts] > 0.5).all()
    assert torch.equal(result.gate > 0.5, result.shift > 0.2)
    assert (result.age[starts] < 2).all()


def test_correlation_regime_of_fewer_rows_than_the_window(prices: Tensor) -> None:
    result = nn.CorrelationRegime(30)(prices[:7])
    assert result.correlation.isnan().all()
    assert result.gate.eq(0).all()
    assert result.age.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_correlation_conv_is_permutation_equivariant_and_causal(prices: Tensor) -> None:
    torch.manual_seed(0)
    correlation = nn.CorrelationRegime(30, min_periods=20)(prices.float()).correlation
    correlation[100, 1] = correlation[100, :, 1] = torch.nan
    layer, order = nn.CorrelationConv(1, 6), torch.tensor([2, 0, 1])
    layer(correlation.unsqueeze(-3))  # one training step, for the running statistics
    features = layer.eval()(correlation.unsqueeze(-3))
    assert features.shape == (len(prices), 3, 6)
    assert features.isfinite().all()
    assert features[:19].eq(0).all()  # warm-up
    assert features[100, 1].eq(0).all()  # no pair
    permuted = layer(correlation[:, order][:, :, order].unsqueeze(-3))
    torch.testing.assert_close(permuted, features[:, order])
    changed = correlation.clone()
    changed[200:] = 0.5
    assert torch.equal(layer(changed.unsqueeze(-3))[:200], features[:200])


def test_correlation_regime_and_correlation_conv_reject_bad_input() -> None:
    with pytest.raises(ValueError, match="CorrelationRegime: softness must be > 0"):
        nn.CorrelationRegime(30, softness=0)
    with pytest.raises(TypeError, match="CorrelationRegime: softness must be a number; got softness='x'"):
        nn.CorrelationRegime(30, softness="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"matrices must be \(\.\.\., K, N, N\) with K = 2; got matrices \(1, 3, 3\)"):
        nn.CorrelationConv(2, 4)(torch.ones(1, 3, 3))


@pytest.mark.parametrize("layer", [nn.CorrelationRegime, nn.RollingCorrelation])
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"window": 0}, ValueError, "window must be >= 2; got window=0"),
        ({"window": "60"}, TypeError, "window must be an int; got window='60'"),
        ({"window": 5, "lag": 0}, ValueError, "lag must be >= 1; got lag=0"),
        (
            {"window": 5, "min_periods": 6},
            ValueError,
            r"min_periods must be in \[1, window\]; got min_periods=6, window=5",
        ),
    ],
)
def test_correlation_layers_check_their_rows_at_once(
    layer: Any, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{layer.__name__}: {message}$"):
        layer(**settings)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (torch.ones(30), ValueError, r"prices must be \(\.\.\., T, N\); got prices \(30,\)"),
        ([[1.0]], TypeError, r"prices must be a Tensor \(\.\.\., T, N\); got prices='list'"),
    ],
)
def test_correlation_regime_refuses_what_are_not_prices(values: Any, error: type[Exception], message: str) -> None:
    for call in (nn.CorrelationRegime(10), nn.CorrelationRegime(10).regime):
        with pytest.raises(error, match=f"^CorrelationRegime: {message}$"):
            call(values)

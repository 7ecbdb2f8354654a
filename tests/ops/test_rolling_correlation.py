"""rolling_correlation, packed and as matrices, and correlation_regime: real prices, gradients, a million rows."""

import pandas as pd
import pytest
import torch
from arch.data import nasdaq, sp500, vix, wti
from torch import Tensor

from torchcommodity import nn, ops


@pytest.fixture(scope="module")
def prices() -> Tensor:
    # (T, 4): two stock indices, volatility and oil, on the union of their days
    columns = [sp500.load()["Adj Close"], nasdaq.load()["Adj Close"], vix.load().iloc[:, -1], wti.load().iloc[:, 0]]
    return torch.tensor(pd.concat(columns, axis=1, sort=True).loc["2015":"2018"].to_numpy())


def test_correlation_regime_layer_equals_its_operators(prices: Tensor) -> None:
    assert prices.isnan().any()
    output = nn.RollingCorrelation(60, min_periods=40, threshold=0.2, lag=60)(prices)
    expected = pd.DataFrame(ops.log_returns(prices).numpy()).rolling(60, 40).corr().to_numpy()
    torch.testing.assert_close(output.correlation.flatten(0, 1), torch.tensor(expected), equal_nan=True)
    shift, regime = ops.correlation_regime(output.correlation, 0.2, 60)
    assert torch.equal(output.regime, regime)
    assert torch.equal(output.shift.nan_to_num(9), shift.nan_to_num(9))
    assert output.regime[-1] > 0


def test_rolling_correlation_packed_equals_matrices(prices: Tensor) -> None:
    full, packed = (nn.RollingCorrelation(60, min_periods=40, threshold=0.2, packed=p)(prices) for p in (False, True))
    row, column = torch.triu_indices(4, 4, offset=1)
    assert torch.equal(packed.correlation.nan_to_num(9), full.correlation[:, row, column].nan_to_num(9))
    assert torch.equal(ops.correlation_matrix(packed.correlation).nan_to_num(9), full.correlation.nan_to_num(9))
    torch.testing.assert_close(packed.shift, full.shift, equal_nan=True)
    assert torch.equal(packed.regime, full.regime)


def test_correlation_regime_compiles_with_a_threshold_that_changes(prices: Tensor) -> None:
    correlation = ops.rolling_correlation(ops.log_returns(prices), 21)
    compiled = torch.compile(ops.correlation_regime, backend="eager", fullgraph=True)
    for threshold in (0.1, 0.2):
        assert torch.equal(
            compiled(correlation, threshold).regime, ops.correlation_regime(correlation, threshold).regime
        )


@pytest.mark.parametrize("packed", [False, True])
def test_correlation_regime_gradient_reaches_prices(prices: Tensor, packed: bool) -> None:
    layer = nn.RollingCorrelation(5, min_periods=3, lag=2, packed=packed)
    few = prices[300:316, :3].clone().requires_grad_()

    def shift(p: Tensor) -> Tensor:
        return layer(p).shift.nan_to_num(0.0)

    assert torch.autograd.gradcheck(shift, few, eps=1e-4, atol=1e-6)
    (gradient,) = torch.autograd.grad(layer(prices.requires_grad_()).shift.nansum(), prices)
    assert gradient.isfinite().all()


@pytest.mark.parametrize(("dtype", "noise"), [(torch.float32, 1.0), (torch.float64, 1e-2)])
def test_rolling_correlation_keeps_digits_over_a_million_rows_at_a_high_level(dtype: torch.dtype, noise: float) -> None:
    generator = torch.Generator().manual_seed(0)
    common, idiosyncratic = (torch.randn(1_000_000, n, dtype=torch.double, generator=generator) for n in (1, 3))
    x = (1e6 + noise * (common + idiosyncratic)).to(dtype)
    correlation = ops.rolling_correlation(x, 60, packed=True)
    ends = torch.randint(59, len(x), (2000,), generator=generator)
    rows = x[ends.unsqueeze(-1) + torch.arange(-59, 1)].double()  # (2000, 60, 3)
    centered = rows - rows.mean(-2, keepdim=True)
    unit = centered / centered.norm(dim=-2, keepdim=True)
    expected = (unit.mT @ unit)[:, [0, 0, 1], [1, 2, 2]]
    torch.testing.assert_close(correlation[ends].double(), expected, rtol=0, atol=1e-5)
    assert correlation[59:].isfinite().all()


def test_correlation_matrix_rejects_invalid_number_of_pairs() -> None:
    with pytest.raises(
        ValueError, match=r"correlation_matrix: pairs must be \(\.\.\., T, N \(N - 1\) / 2\); got pairs \(3, 4\)"
    ):
        ops.correlation_matrix(torch.zeros(3, 4))


def test_rolling_correlation_of_a_window_beyond_the_panel_needs_no_memory_for_it(prices: Tensor) -> None:
    returns = ops.log_returns(prices)[..., :40, :].clone().requires_grad_()
    results = [torch.ops.commodity.rolling_correlation(returns, window, 5) for window in (42, 2**40)]
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)
    gradients = [torch.autograd.grad(y.nan_to_num(0.0).square().sum(), returns)[0] for y in results]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=0)

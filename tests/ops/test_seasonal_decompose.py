"""`seasonal_decompose` against statsmodels on WTI prices."""

import pytest
import torch

from torchcommodity import ops

wti = pytest.importorskip("arch.data.wti")
statsmodels = pytest.importorskip("statsmodels.tsa.seasonal")


@pytest.fixture(scope="module")
def monthly() -> torch.Tensor:
    prices = wti.load().iloc[:, 0].dropna()
    return torch.tensor(prices.groupby(prices.index.to_period("M")).mean().to_numpy()).unsqueeze(-1)


@pytest.mark.parametrize("model", ["additive", "multiplicative"])
@pytest.mark.parametrize("period", [7, 12])
def test_seasonal_decompose_matches_statsmodels_on_wti(monthly: torch.Tensor, model: str, period: int) -> None:
    result = ops.seasonal_decompose(monthly, period, model, causal=False)
    reference = statsmodels.seasonal_decompose(monthly.squeeze(-1).numpy(), model, period=period)
    for part, expected in zip(result, (reference.trend, reference.seasonal, reference.resid)):
        torch.testing.assert_close(part.squeeze(-1), torch.tensor(expected), equal_nan=True, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("period", [7, 12])
def test_seasonal_decompose_causal_trend_is_lagged_two_sided_trend(monthly: torch.Tensor, period: int) -> None:
    causal = ops.seasonal_decompose(monthly, period).trend[period // 2 :]
    two_sided = ops.seasonal_decompose(monthly, period, causal=False).trend[: len(causal)]
    torch.testing.assert_close(causal, two_sided, equal_nan=True)


def test_seasonal_decompose_multiplicative_skips_negative_price(monthly: torch.Tensor) -> None:
    negative, missing = monthly.clone(), monthly.clone()
    negative[100], missing[100] = -37.63, torch.nan
    for x, y in zip(*(ops.seasonal_decompose(prices, 12, "multiplicative") for prices in (negative, missing))):
        assert torch.equal(x.nan_to_num(-1), y.nan_to_num(-1))
        assert x[-1].isfinite()

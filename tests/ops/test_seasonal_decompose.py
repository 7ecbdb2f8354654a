"""What the contract cannot see: real prices against statsmodels, and what the seasonal sums to."""

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
def test_monthly_oil_as_statsmodels(monthly: torch.Tensor, model: str, period: int) -> None:
    ours = ops.seasonal_decompose(monthly, period, model, causal=False)
    theirs = statsmodels.seasonal_decompose(monthly.squeeze(-1).numpy(), model, period=period)
    for part, expected in zip(ours, (theirs.trend, theirs.seasonal, theirs.resid)):
        torch.testing.assert_close(part.squeeze(-1), torch.tensor(expected), equal_nan=True, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("period", [7, 12])
def test_trailing_trend_is_the_two_sided_one_delivered_later(monthly: torch.Tensor, period: int) -> None:
    late = ops.seasonal_decompose(monthly, period).trend[period // 2 :]
    torch.testing.assert_close(
        late, ops.seasonal_decompose(monthly, period, causal=False).trend[: len(late)], equal_nan=True
    )


def test_multiplicative_skips_what_is_not_positive(monthly: torch.Tensor) -> None:
    negative, missing = monthly.clone(), monthly.clone()
    negative[100], missing[100] = -37.63, torch.nan
    for x, y in zip(*(ops.seasonal_decompose(prices, 12, "multiplicative") for prices in (negative, missing))):
        assert torch.equal(x.nan_to_num(-1), y.nan_to_num(-1))
        assert x[-1].isfinite()

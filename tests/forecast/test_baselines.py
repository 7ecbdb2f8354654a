"""The baselines against their definitions."""

import numpy as np
import pandas as pd
import pytest
import torch
from arch import arch_model

from torchcommodity.data import Panel, embedded, targets
from torchcommodity.forecast import baselines
from torchcommodity.models import Har, HarConfig
from torchcommodity.training import ModelInputs


def test_unconditional_baseline_is_the_empirical_quantiles_of_the_past(backtest_panel: Panel) -> None:
    prices, start = backtest_panel.values.plain(), 1000
    result = baselines()["unconditional"](ModelInputs(prices), start, HarConfig())
    past = targets(prices[:start], [21])[:, 0, 1]
    expected = np.quantile(past[past.isfinite()].numpy(), HarConfig().levels)
    np.testing.assert_allclose(result.quantiles[7, 1, 1].numpy(), expected)


def test_garch_baseline_is_the_forecast_of_arch(backtest_panel: Panel) -> None:
    prices, config = backtest_panel.values.plain(), HarConfig(cap=9.0)
    prices = prices[:, 1:][prices[:, 1].isfinite()]
    returns = 100 * Har(1, config).returns(prices)[1:, 0].numpy()
    past = 1000
    model = arch_model(returns, mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False)
    fitted = arch_model(returns[:past], mean="Zero", vol="GARCH", p=1, q=1, dist="t", rescale=False).fit(disp="off")
    variance = model.fix(fitted.params).forecast(horizon=5, start=len(returns) - 1, reindex=False).variance
    result = baselines()["garch"](ModelInputs(prices), past + 1, config)
    assert result.variance[-1, 0, 0].item() == pytest.approx(variance.to_numpy().sum().item() / 1e4, rel=1e-6)


def test_garch_baseline_of_monthly_prices_ignores_years_of_one_price() -> None:
    """Gas, nickel and urea stood for up to 47 months at one price; a fit to the zeros has log-returns in thousands."""
    panel = embedded(["NATURAL_GAS_US", "NICKEL", "UREA"], frequency="monthly")
    config = HarConfig.for_frequency("monthly")
    result = baselines("monthly")["garch"](ModelInputs(panel.values.plain()), len(panel) - 24, config)
    year = config.horizons.index(12)
    width = result.quantiles[:, year, :, -1] - result.quantiles[:, year, :, 0]
    volatility = result.variance[:, year].sqrt()
    assert 0.5 < width.min() < width.max() < 5
    assert 0.1 < volatility.min() < volatility.max() < 1.5


def test_ewma_baseline_is_riskmetrics(backtest_panel: Panel) -> None:
    prices, config = backtest_panel.values.plain()[:, :1], HarConfig()
    result = baselines()["ewma"](ModelInputs(prices), 1000, config)
    squared = pd.Series(Har(1, config).returns(prices)[:, 0].numpy()) ** 2
    v = squared.ewm(alpha=0.06, ignore_na=True).mean().iloc[-1]
    assert result.variance[-1, 2, 0].item() == pytest.approx(63 * v, rel=1e-9)


def test_baselines_are_calibrated_on_the_rows_after_the_warmup(backtest_panel: Panel) -> None:
    prices, config, start = backtest_panel.values.plain(), HarConfig(), 1000
    result = baselines()["ewma"](ModelInputs(prices), start, config)
    everything = baselines()["ewma"](ModelInputs(prices), 1, config).variance[: start - 1, 1].sqrt()  # from row 1 on
    warm = Har(2, config).returns(prices)[1:start].isfinite().cumsum(0) >= config.warmup
    assert torch.equal(everything.isfinite(), warm)
    standard = targets(prices[:start], config.horizons)[1:, 1] / everything
    expected = np.quantile(standard[standard.isfinite()].numpy(), config.levels)
    z = result.quantiles[7, 1, 1] / result.variance[7, 1, 1].sqrt()
    np.testing.assert_allclose(z.numpy(), expected)

"""HAR coefficients and standardized quantiles against their definitions."""

import pandas as pd
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.models import HarConfig, ModelInputs
from torchcommodity.training import fit_mix, pool_rows, standard_quantiles
from torchcommodity.training._calibration import MIN_ROWS, PooledRows, own_quantiles, shrink_mix


def test_fit_mix_recovers_non_negative_coefficients() -> None:
    panel = data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2016-12-31")
    har = forecast.fit(panel).model.har
    terms = har.variance_terms(har.adjust_rolls(ModelInputs(panel.values.plain()[None])))[0, :, 0].detach()
    true = torch.tensor([0.3, 0.0, 0.2, 0.0, 0.4, 0.1, 0.0], dtype=torch.double)
    ahead = (5 * (terms * true).sum(-1)).sqrt()
    torch.testing.assert_close(fit_mix(pool_rows(terms, ahead, 5, scale=3)), true, atol=1e-6, rtol=0)
    assert (har.mix >= 0).all()


def test_standard_quantiles_symmetry_removes_the_drift() -> None:
    rows = torch.arange(1.0, 102.0, dtype=torch.double)[:, None, None]
    levels = (0.25, 0.5, 0.75)
    assert standard_quantiles(rows, levels, 0.0).tolist() == [[26.0, 51.0, 76.0]]
    assert standard_quantiles(rows, levels, 1.0).tolist() == [[-25.0, 0.0, 25.0]]
    assert standard_quantiles(rows, levels, 0.5).tolist() == [[0.5, 25.5, 50.5]]


def test_own_quantiles_are_drawn_toward_the_pool() -> None:
    torch.manual_seed(0)
    rows = 2 * MIN_ROWS
    standard = torch.randn(rows, 1, 3, dtype=torch.double) * torch.tensor([1.0, 2.0, 3.0])
    standard[MIN_ROWS:, :, 2] = torch.nan  # a symbol with too few rows has the pooled quantiles
    config = HarConfig(horizons=(5,))
    pooled = standard_quantiles(standard, config.levels, 0.5)[0]
    quantiles = own_quantiles(standard, config, 0.5)
    assert quantiles.shape == (1, 3, len(config.levels))
    assert torch.equal(quantiles[0, 2], pooled)
    own, outcomes = standard_quantiles(standard[..., :1], config.levels, 0.5)[0], rows / 5
    expected = (outcomes * own + 20 * pooled) / (outcomes + 20)
    torch.testing.assert_close(quantiles[0, 0], expected)


def test_shrink_mix_keeps_the_mean_and_the_coefficient_of_the_rolls() -> None:
    terms = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 0.0]], dtype=torch.double)
    rows = PooledRows(terms, torch.tensor([2.0, 5.0], dtype=torch.double))
    coefficients = torch.tensor([1.0, 0.0, 0.7], dtype=torch.double)
    # kappa = 3.5 / 1.75 = 2, two terms: 1 each
    assert shrink_mix(coefficients, rows, 1.0).tolist() == [1.0, 1.0, 0.7]
    assert shrink_mix(coefficients, rows, 0.25).tolist() == [1.0, 0.25, 0.7]
    rows = PooledRows(
        torch.cat([rows.terms[:, :2], torch.full_like(rows.terms[:, :1], 9.0), rows.terms[:, 2:]], 1), rows.realized
    )
    coefficients = torch.cat([coefficients[:2], torch.tensor([0.4]).double(), coefficients[2:]])
    assert shrink_mix(coefficients, rows, 0.25, extra=1).tolist() == pytest.approx([1.0, 0.25, 0.3, 0.7])


def test_calibrate_rejects_prices_that_repeat_with_a_horizon() -> None:
    days = pd.bdate_range("2015-01-01", periods=600)
    weekly = pd.DataFrame({"OIL": [50.0 + i % 7 for i in range(600)]}, index=days)
    with pytest.raises(ValueError, match="fit: prices must change over every horizon; got no change over 21 rows"):
        forecast.fit(weekly)

"""HAR coefficients and standardized quantiles against their definitions."""

import pandas as pd
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.training import fit_mix, standard_quantiles


def test_fit_mix_recovers_non_negative_coefficients() -> None:
    panel = data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2016-12-31")
    har = forecast.fit(panel).model.har
    returns, _, unpriced_rolls = har.adjust_rolls(panel.values.plain()[None])
    terms = har.variance_terms(returns, unpriced_rolls)[0, :, 0].detach()
    true = torch.tensor([0.3, 0.0, 0.2, 0.0, 0.4, 0.1, 0.0], dtype=torch.double)
    ahead = (5 * (terms * true).sum(-1)).sqrt()
    torch.testing.assert_close(fit_mix(terms, ahead, 5, scale=3), true, atol=1e-6, rtol=0)
    assert (har.mix >= 0).all()


def test_standard_quantiles_symmetry_removes_the_drift() -> None:
    rows = torch.arange(1.0, 102.0, dtype=torch.double)[:, None, None]
    levels = (0.25, 0.5, 0.75)
    assert standard_quantiles(rows, levels, 0.0).tolist() == [[26.0, 51.0, 76.0]]
    assert standard_quantiles(rows, levels, 1.0).tolist() == [[-25.0, 0.0, 25.0]]
    assert standard_quantiles(rows, levels, 0.5).tolist() == [[0.5, 25.5, 50.5]]


def test_calibrate_rejects_prices_that_repeat_with_a_horizon() -> None:
    days = pd.bdate_range("2015-01-01", periods=600)
    weekly = pd.DataFrame({"OIL": [50.0 + i % 7 for i in range(600)]}, index=days)
    with pytest.raises(ValueError, match="fit: prices must change over every horizon; got no change over 21 rows"):
        forecast.fit(weekly)

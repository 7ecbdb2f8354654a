"""Quantiles between horizons: linear in the square root of time, exact at the horizons."""

import math

import pytest
import torch

from torchcommodity.data import embedded
from torchcommodity.forecast import fit, interpolate_quantiles, make_fan


def test_interpolated_quantiles_equal_the_forecast_at_its_horizons() -> None:
    forecast = fit(panel := embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-28")).predict(panel)
    fan = interpolate_quantiles(forecast.log_returns, forecast.horizons, (0, *forecast.horizons))
    assert torch.equal(fan[1:], forecast.log_returns)
    assert not fan[0].any()


def test_interpolated_quantiles_grow_with_the_square_root_of_time() -> None:
    quantiles = torch.tensor([-0.1, 0.0, 0.2], dtype=torch.float64) * torch.tensor([[5.0], [21.0]]).sqrt()
    fan = interpolate_quantiles(quantiles, (5, 21), range(22))
    expected = torch.tensor([[-0.1 * math.sqrt(t), 0.0, 0.2 * math.sqrt(t)] for t in range(22)], dtype=torch.float64)
    torch.testing.assert_close(fan, expected)


def test_interpolated_quantiles_of_a_symbol_without_forecast_are_nan() -> None:
    fan = interpolate_quantiles(torch.full((2, 1, 3), torch.nan), (5, 21), (1, 5, 10))
    assert fan.isnan().all()


@pytest.mark.parametrize("row", [-1, 22])
def test_interpolate_quantiles_rejects_rows_beyond_the_horizons(row: int) -> None:
    with pytest.raises(ValueError, match=f"rows must lie between 0 and 21; got {row}"):
        interpolate_quantiles(torch.zeros(2, 3), (5, 21), (row,))


def test_fan_starts_on_the_day_of_the_last_price_where_the_exchange_is_closed() -> None:
    panel = embedded(["BRENT"]).between("2014-01-01", "2016-11-24").with_calendars("NYSE")  # Thanksgiving
    fan = make_fan(fit(panel).predict(panel), 0, [0, 1, 5])
    assert (str(fan.dates[0]), str(fan.dates[1]), fan.rows[0]) == ("2016-11-24", "2016-11-25", 0)
    assert (fan.prices[0] == panel.values.plain()[-1, 0].item()).all()

"""The map of prices of any sign into the model, and back."""

import pytest
import torch
from embedded_spreads import brent_wti

from torchcommodity.models import (
    Har,
    HarConfig,
    ModelInputs,
    fit_price_scale,
    positive_prices,
    price_after,
    scale_change,
    scale_inputs,
)

SCALE = torch.tensor([20.0, torch.nan], dtype=torch.double)
CONFIG = HarConfig()


def spread_prices() -> torch.Tensor:
    return brent_wti().values.plain().clone()


def test_scale_is_25_mean_changes_of_own_rows() -> None:
    prices = torch.tensor([[1.0], [torch.nan], [-3.0], [0.0]], dtype=torch.double)
    assert fit_price_scale(prices, torch.tensor([True])).tolist() == [25 * (4 + 3) / 2]
    assert fit_price_scale(prices, torch.tensor([False])) is None


def test_positive_prices_are_exp_asinh_and_leave_logs_alone() -> None:
    prices = torch.linspace(-300, 300, 601, dtype=torch.double)[:, None].expand(-1, 2)
    y = positive_prices(prices, SCALE)
    torch.testing.assert_close(y[:, 0].log(), (prices[:, 0] / 20).asinh(), atol=1e-14, rtol=1e-12)
    assert (y[:, 0].diff() > 0).all()
    assert torch.equal(y[:, 1], prices[:, 1])
    assert positive_prices(prices, None) is prices


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.double, 1e-9), (torch.float, 1e-4)])
def test_price_after_inverts_scale_change_from_minus_1e6_scales_on(dtype: torch.dtype, rtol: float) -> None:
    scale = SCALE[:1].to(dtype)
    prices = scale * torch.tensor([-1e6, -1e3, -1.0, -1e-3, 0.0, 1e-3, 1.0, 1e3, 1e6], dtype=dtype)
    for last in prices:
        change = scale_change(last.expand_as(prices), prices, scale)
        assert change.isfinite().all()
        torch.testing.assert_close(price_after(last.expand_as(prices), change, scale), prices, rtol=rtol, atol=1e-2)


def test_missing_and_infinite_prices_are_missing() -> None:
    y = positive_prices(torch.tensor([torch.nan, -torch.inf, torch.inf]), torch.tensor([2.0] * 3))
    assert not ((y > 0) & (y < torch.inf)).any()


def test_har_of_a_spread_in_float32_is_that_of_float64_at_minus_1e6_scales() -> None:
    prices = spread_prices()
    prices[-1] = -1e6 * 20
    har = Har(1)
    har.set_price_scale(SCALE[:1])
    double = har.last_quantiles(har(prices[None]))
    single = har.last_quantiles(har(prices[None].float()))
    assert double.isfinite().all()
    torch.testing.assert_close(single.double(), double, rtol=2e-3, atol=1e-4)


def test_har_of_a_spread_depends_on_earlier_rows_only() -> None:
    prices = spread_prices()[None, :900]
    har = Har(1)
    har.set_price_scale(SCALE[:1])
    assert har.location is not None
    har.location.reversion.coefficients.fill_(-0.1)
    whole, part = har(prices), har(prices[:, :700])
    for x, y in zip(whole, part):
        assert torch.equal(x[:, :700].nan_to_num(), y.nan_to_num())
    assert (whole.shift != 0).any()


def test_zero_is_a_price_of_a_spread() -> None:
    prices = spread_prices()[None, :400]
    prices[0, 350] = 0.0
    har = Har(1)
    har.set_price_scale(SCALE[:1])
    assert har(prices).returns[0, 350].isfinite()
    har.set_price_scale(None)
    assert har(prices).returns[0, 350].isnan()


def test_returns_of_a_spread_are_capped_at_a_quarter_whatever_the_frequency() -> None:
    prices = 50 + spread_prices()[:30].expand(-1, 2).clone()
    prices[20] *= 4
    har = Har(2, HarConfig.for_frequency("monthly"))
    har.set_price_scale(SCALE)
    assert har.clip(torch.tensor([0.6, 0.6], dtype=torch.double)).tolist() == [0.25, 0.6]
    assert har(prices[None]).returns[0, 20].tolist() == [0.25, 1.0]


def test_nearby_spreads_of_any_sign_give_the_change_at_a_roll() -> None:
    price, curve = torch.tensor([[-1.5]]), torch.tensor([[[-1.4, -0.6, 0.2]]])  # (T, N), (T, N, C)
    scaled = scale_inputs(ModelInputs(price, curve=curve), torch.tensor([8.0]))
    assert scaled.curve is not None
    change = (scaled.curve / scaled.curve[..., :1]).log()
    expected = [torch.asinh((price + c - -1.4) / 8) - torch.asinh(price / 8) for c in (-1.4, -0.6, 0.2)]
    torch.testing.assert_close(change, torch.stack(expected, -1))


def test_symbols_in_logs_have_the_bits_of_a_model_without_a_spread() -> None:
    spread = spread_prices()
    both = torch.cat([spread, 50 + spread], 1)[None]
    mixed, alone = Har(2), Har(2)
    mixed.set_price_scale(SCALE)
    for x, y in zip(mixed(both), alone(both)):
        own = (..., 1, slice(None)) if x is not None and x.dim() == 4 and x.shape[-1] == CONFIG.features else (..., 1)
        assert torch.equal(x[own].nan_to_num(), y[own].nan_to_num())


def test_state_has_a_scale_only_with_a_spread() -> None:
    har = Har(2)
    assert not [name for name in har.state_dict() if "scale" in name or "reversion" in name]
    har.set_price_scale(torch.full((2,), torch.nan, dtype=torch.double))
    assert har.scale is None
    har.set_price_scale(SCALE)
    other = Har(2)
    other.load_state_dict(har.state_dict())
    assert torch.equal(other.scale.nan_to_num(), SCALE.nan_to_num())
    other.load_state_dict(Har(2).state_dict())
    assert other.scale is None


@pytest.mark.parametrize("scale", [[0.0, 1.0], [-1.0, 1.0], [torch.inf, 1.0], [1.0]])
def test_har_refuses_a_scale_that_is_not_positive(scale: list[float]) -> None:
    with pytest.raises(ValueError, match="Har: scale must be 2 positive numbers, or NaN"):
        Har(2).set_price_scale(torch.tensor(scale))

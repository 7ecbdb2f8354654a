"""The reversion of spreads to their average of a quarter, fitted in closed form."""

import torch
from embedded_spreads import brent_wti

from torchcommodity.data import targets
from torchcommodity.models import Har, positive_prices
from torchcommodity.ops import ewm_mean
from torchcommodity.training import calibrate, model_inputs, price_scale


def calibrated(rows: int | None = None) -> tuple[Har, torch.Tensor]:
    panel = brent_wti("2006-01-01")
    inputs = model_inputs(panel, 126)
    inputs = inputs if rows is None else inputs.before(rows)
    inputs = inputs._replace(days=None)  # no season
    har = Har(1)
    har.set_price_scale(price_scale(inputs.prices, panel.symbols, panel.symbols))
    calibrate(har, inputs, symmetry=0.5)
    return har, inputs.prices


def test_reversion_is_the_regression_of_the_closed_form() -> None:
    har, prices = calibrated()
    reversion = har.location.reversion
    x = positive_prices(prices, har.scale).log()
    e = (x - ewm_mean(x, halflife=63, min_periods=252, ignore_na=True))[:, 0]
    output = har(prices[None])
    variance = har.slow_variance(har.variance_terms(har.adjust_rolls(_scaled(har, prices))))[0, :, 0]
    outcomes = targets(positive_prices(prices, har.scale), har.config.horizons)[..., 0]
    for i, h in enumerate(har.config.horizons):
        sigma = (h * variance).sqrt()
        y, z = outcomes[:, i] / sigma, e / sigma
        valid = y.isfinite() & z.isfinite()
        y, z = y[valid], z[valid]
        b = (z * y).sum() / z.square().sum()
        f = b**2 * z.square().sum() / ((y - b * z).var(correction=0) * max(h, 126))
        torch.testing.assert_close(reversion.coefficients[i, 0], b.clamp(max=0) * f / (f + 12))
        m = (reversion.coefficients[i, 0] * e).clamp(-sigma / 2, sigma / 2)
        last = m[valid.nonzero()[-1, 0]]
        torch.testing.assert_close(output.shift[0, valid.nonzero()[-1, 0], i, 0], last)
    assert (reversion.coefficients < 0).any()


def test_reversion_needs_500_outcomes() -> None:
    har, _ = calibrated(rows=252 + 480)
    assert (har.location.reversion.coefficients == 0).all()


def _scaled(har: Har, prices: torch.Tensor):
    from torchcommodity.models import ModelInputs, scale_inputs

    return scale_inputs(ModelInputs(prices[None]), har.scale)

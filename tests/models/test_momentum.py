"""Momentum of monthly prices: its fit against pandas and numpy, later rows, live updates, few symbols, words."""

import numpy as np
import pandas as pd
import pytest
import torch

from torch_opkit import Past
from torchcommodity import data, forecast
from torchcommodity.models import Har, HarConfig, ModelInputs
from torchcommodity.training import calibrate, model_inputs

METALS = ["COPPER", "ALUMINUM", "LEAD", "TIN", "NICKEL", "ZINC", "GOLD", "PLATINUM", "SILVER"]
OTHERS = [
    "COCOA",
    "COFFEE_ARABICA",
    "TEA_COLOMBO",
    "SOYBEANS",
    "MAIZE",
    "RICE_THAI_5",
    "BEEF",
    "SUGAR_WORLD",
    "UREA",
    "TSP",
    "DAP",
]
HORIZONS = (1, 3, 6, 12)


@pytest.fixture(scope="module")
def panel() -> data.Panel:
    panel = data.embedded(METALS + OTHERS, frequency="monthly").between("1975-01-01", "2009-12-31").with_averages([])
    values = panel.values.plain().clone()
    values[300:303, 2] = values[410:, 3] = torch.nan
    return data.Panel(type(panel.values)(values), panel.dates, panel.symbols, panel.units, panel.provenance)


def calibrated(panel: data.Panel, momentum: bool = True) -> tuple[Har, ModelInputs]:
    config = HarConfig(**{**vars(HarConfig.for_frequency("monthly")), "momentum": momentum})
    har, inputs = Har(len(panel.symbols), config), model_inputs(panel, HORIZONS[-1])
    calibrate(har, inputs, symmetry=1.0)
    return har, inputs


@pytest.fixture(scope="module")
def fitted(panel: data.Panel) -> tuple[Har, ModelInputs]:
    return calibrated(panel)


@torch.no_grad()
def shift(har: Har, inputs: ModelInputs, **options: int) -> torch.Tensor:  # (L, H, N)
    return har(*inputs.batch(), **options).shift[0]


@torch.no_grad()
def test_is_the_ridge_regression_of_what_related_prices_and_the_season_leave(
    panel: data.Panel, fitted: tuple[Har, ModelInputs]
) -> None:
    har, inputs = fitted
    before = shift(calibrated(panel, momentum=False)[0], inputs).numpy()
    output = har(*inputs.batch())
    slow = har.slow_variance(har.variance_terms(har.adjust_rolls(inputs.unsqueeze())))
    assert har.location is not None
    deviations = har.location.deviations(inputs.prices[None], None, Past(), 420)
    related = har.location.limit(har.location.related(deviations, slow), slow)[0]
    log, v = np.log(panel.to_pandas()).reset_index(drop=True), slow[0].numpy()
    returns = output.returns[0].numpy()
    features = []
    for halflife in (6, 24, 60):
        deviation = log - log.ewm(halflife=halflife, ignore_na=True, min_periods=12).mean()
        features.append(deviation.fillna(0).where(log.notna()).ffill().fillna(0).to_numpy() / np.sqrt(v))
    for k in (1, 3, 12):
        sums = [pd.Series(r).dropna().rolling(k, min_periods=1).sum().reindex(range(len(r))).ffill() for r in returns.T]
        features.append(np.stack(sums, 1) / np.sqrt(k * v))
    for x in features[3:5]:
        with np.errstate(invalid="ignore"):
            common = pd.DataFrame(x).where(log.notna().to_numpy()).mean(axis=1).to_numpy()
        features.append(np.repeat(common[:, None], x.shape[1], 1))
    target = data.targets(inputs.prices, HORIZONS).numpy()
    for i, h in enumerate(HORIZONS):
        sigma = np.sqrt(h * v)
        x = np.nan_to_num(np.stack([related[:, i].numpy() / sigma, *features], -1))
        u = np.clip((target[:, i] - before[:, i]) / sigma, -4, 4)
        valid = np.isfinite(u)
        u, x = np.where(valid, u, 0), x * valid[..., None]
        rms = np.sqrt((x**2).sum((0, 1)) / valid.sum())
        z = np.clip(x / rms, -4, 4).reshape(-1, 9)
        weight = (u**2).sum() / (u.sum(1) ** 2).sum() / h
        beta = np.linalg.solve(weight * z.T @ z + 10 * np.eye(9), weight * z.T @ u.ravel())
        error = np.mean((u - (z @ beta).reshape(u.shape))[valid] ** 2)
        evidence = weight * beta @ z.T @ z @ beta / 9 / error
        expected = beta * evidence / (evidence + 2)
        momentum = har.location.momentum
        assert momentum is not None
        np.testing.assert_allclose(momentum.coefficients[i], expected, rtol=1e-6, atol=1e-9)
        change = np.clip(z @ expected, -0.25, 0.25).reshape(u.shape) * sigma
        np.testing.assert_allclose((shift(har, inputs)[:, i].numpy() - before[:, i])[valid], change[valid], atol=1e-9)


def test_later_rows_change_nothing_and_the_last_rows_have_the_bits_of_all(fitted: tuple[Har, ModelInputs]) -> None:
    har, inputs = fitted
    prices = inputs.prices.clone()
    prices[300:] *= 3.0
    prices[301::5] = torch.nan
    assert torch.equal(shift(har, inputs)[:300], shift(har, inputs._replace(prices=prices))[:300])
    assert torch.equal(shift(har, inputs)[-30:], shift(har, inputs, last_rows=30))


def test_few_symbols_have_none(panel: data.Panel) -> None:
    few = panel.select(panel.symbols[:19])
    har, inputs = calibrated(few)
    assert torch.equal(shift(har, inputs), shift(calibrated(few, momentum=False)[0], inputs))


def test_live_updates_have_the_bits_of_predict(panel: data.Panel) -> None:
    forecaster = forecast.fit(panel.between(None, "2008-12-31"))
    state = forecaster.start(panel.between(None, "2008-12-31"))
    for month in ("2009-01", "2009-02", "2009-03"):
        row = panel.between(f"{month}-01", f"{month}-31" if month != "2009-02" else "2009-02-28")
        state, live = forecaster.step(state, row)
    assert torch.equal(live.log_returns, forecaster.predict(panel.between(None, "2009-03-31")).log_returns)


def test_is_a_part_of_the_location_in_words(panel: data.Panel) -> None:
    forecaster = forecast.fit(panel)
    location, output = forecaster.location(panel), shift(forecaster.model.har, model_inputs(panel, 12), last_rows=1)
    assert "momentum: " in str(location)
    table = location.to_pandas().query("symbol == 'GOLD'")
    np.testing.assert_allclose(
        table.groupby("horizon").log_return.sum(), output[0, :, METALS.index("GOLD")], atol=1e-12
    )

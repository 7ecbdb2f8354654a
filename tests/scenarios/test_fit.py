"""`fit_scenarios`, `ScenarioModel` and `Scenarios`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_scenarios import CONFIG, SMALL, THROUGH, oil_and_shares

from torchcommodity import ops, portfolio
from torchcommodity.data import Panel
from torchcommodity.forecast import backtest, fit, score
from torchcommodity.models import ScenarioGenerator
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioFitConfig,
    ScenarioModel,
    Scenarios,
    evaluate_scenarios,
    fit_scenarios,
)
from torchcommodity.scenarios._moments import initialize_by_moments
from torchcommodity.training import FitConfig, tune


@pytest.fixture(scope="module")
def prices() -> Panel:
    return oil_and_shares()


@pytest.fixture(scope="module")
def model(prices: Panel) -> ScenarioModel:
    return fit_scenarios(prices, CONFIG, through=THROUGH)


@pytest.fixture(scope="module")
def scenarios(model: ScenarioModel) -> Scenarios:
    return model.sample(3, seed=1)


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "fit": fit,
    "backtest": backtest,
    "fit_scenarios": fit_scenarios,
    "portfolio.backtest": portfolio.backtest,
    "portfolio.train": portfolio.train,
    "tune": lambda panel: tune(panel, FitConfig()),
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_scenarios_are_rejected_by_training_and_scoring(name: str, scenarios: Scenarios, prices: Panel) -> None:
    path = scenarios.to_panel(0, prices)
    for synthetic in (path, path.select(path.symbols[:1]), path.between(path.dates[3])):
        with pytest.raises(ValueError, match=f"^{name}: expected real prices; got synthetic ones"):
            CONSUMERS[name](synthetic)


def test_scenarios_are_rejected_by_evaluation(model: ScenarioModel, scenarios: Scenarios, prices: Panel) -> None:
    with pytest.raises(ValueError, match="score: expected real prices; got synthetic ones"):
        score(scenarios)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="evaluate_scenarios: expected real prices"):
        evaluate_scenarios(model, scenarios.to_panel(0, prices))


def test_scenarios_to_panel_starts_at_the_last_price(scenarios: Scenarios, prices: Panel) -> None:
    path = scenarios.to_panel(1, prices)
    last = prices.to_pandas().ffill().iloc[-1].to_numpy()
    first_return = path.values.plain()[0].log().numpy() - np.log(last)
    np.testing.assert_allclose(first_return, scenarios.returns.plain()[1, 0].numpy())
    assert path.dates[0] > prices.dates[-1]
    assert path.synthetic


def test_scenarios_to_pandas_marks_every_row(scenarios: Scenarios) -> None:
    table = scenarios.to_pandas()
    assert set(table["source"]) == {"synthetic"}
    assert len(table) == 3 * 70 * 2


def test_fit_scenarios_is_reproducible_for_panel_and_dataframe(model: ScenarioModel, prices: Panel) -> None:
    again = fit_scenarios(prices.to_pandas(), CONFIG, through=THROUGH)
    assert torch.equal(again.sample(3, seed=1).returns, model.sample(3, seed=1).returns)
    assert not torch.equal(model.sample(3, seed=2).returns, model.sample(3, seed=1).returns)


def test_fit_scenarios_does_not_use_later_prices(model: ScenarioModel, prices: Panel) -> None:
    frame = prices.to_pandas()
    frame.loc["2017-07-01":] *= 3.0  # type: ignore[misc]
    other = fit_scenarios(frame, CONFIG, through=THROUGH)
    assert torch.equal(other.sample(3).returns, model.sample(3).returns)


def test_fit_scenarios_trains_the_generator(model: ScenarioModel, prices: Panel) -> None:
    moments_only = fit_scenarios(prices, ScenarioFitConfig(SMALL, AdversarialConfig(steps=0)), through=THROUGH)
    assert not torch.equal(moments_only.sample(1).returns, model.sample(1).returns)


def test_fit_scenarios_rejects_a_short_panel(prices: Panel) -> None:
    with pytest.raises(ValueError, match="fit_scenarios: at least 140 rows must have a return of every symbol; got"):
        fit_scenarios(prices.between("2018-09-01"), CONFIG)


def test_scenario_model_saves_and_loads(model: ScenarioModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = ScenarioModel.load(tmp_path / "model")
    assert loaded.record == model.record
    assert torch.equal(loaded.sample(3, seed=1).returns, model.sample(3, seed=1).returns)


def test_scenario_model_rejects_a_damaged_file(model: ScenarioModel, tmp_path: Path) -> None:
    content = bytearray(model.to_bytes())
    content[-1] ^= 1
    (tmp_path / "model").write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"ScenarioModel\.load: .* is damaged"):
        ScenarioModel.load(tmp_path / "model")


def test_initialize_by_moments_matches_volatility_and_correlation(prices: Panel) -> None:
    returns = ops.log_returns(prices.values.plain())
    returns = returns[returns.isfinite().all(1)]
    generator = ScenarioGenerator(2).eval()
    initialize_by_moments(generator, returns)
    with torch.no_grad():
        noise = torch.randn(200, 252, generator.noise_channels, generator=torch.Generator().manual_seed(0))
        sample = generator(noise).flatten(0, 1).double()
    ratio = sample.std(0) / returns.std(0)
    assert (ratio.log().abs() < 0.15).all(), ratio
    assert abs(torch.corrcoef(sample.T)[0, 1] - torch.corrcoef(returns.T)[0, 1]) < 0.15


@pytest.mark.parametrize("name", ["steps", "penalty", "average"])
def test_adversarial_config_rejects_negative_values(name: str) -> None:
    with pytest.raises(ValueError, match=f"AdversarialConfig: {name} must be .*; got -1"):
        AdversarialConfig(**{name: -1})  # type: ignore[arg-type]

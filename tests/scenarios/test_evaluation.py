"""`stylized_facts`, `fact_distances`, `stationary_bootstrap` and `evaluate_scenarios`."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from arch.bootstrap import StationaryBootstrap
from scipy.stats import kurtosis, wasserstein_distance
from small_scenarios import CONFIG, THROUGH, oil_and_shares
from torch import Tensor

from torchcommodity import ops
from torchcommodity.data import Panel, is_synthetic
from torchcommodity.scenarios import (
    ScenarioModel,
    evaluate_scenarios,
    fact_distances,
    fit_scenarios,
    stationary_bootstrap,
    stylized_facts,
)


@pytest.fixture(scope="module")
def prices() -> Panel:
    return oil_and_shares()


@pytest.fixture(scope="module")
def model(prices: Panel) -> ScenarioModel:
    return fit_scenarios(prices, CONFIG, through=THROUGH)


@pytest.fixture(scope="module")
def windows(prices: Panel) -> Tensor:
    returns = ops.log_returns(prices.values.plain())
    return returns[returns.isfinite().all(1)].unfold(0, 252, 100).mT


def autocorrelation(x: np.ndarray, lag: int) -> float:
    z = x - x.mean()
    return float(np.sum(z[:-lag] * z[lag:]) / np.sum(z**2))


def test_stylized_facts_equal_independent_formulas(windows: Tensor) -> None:
    facts, x = stylized_facts(windows), windows.numpy()[2, :, 1]
    r = x - x.mean()
    largest = np.sort(np.abs(r))[::-1][: int(0.05 * 252)]
    pooled = np.concatenate([w[:, 1] - w[:, 1].mean() for w in windows.numpy()])
    clustering = np.mean([autocorrelation(np.abs(r), k) for k in range(1, 6)])
    leverage = [np.sum(r[:-k] * (r**2 - (r**2).mean())[k:]) / 252 / r.std() / (r**2).std() for k in range(1, 11)]
    np.testing.assert_allclose(facts["volatility"][2, 1], np.log(r.std() / np.sqrt((pooled**2).mean())))
    np.testing.assert_allclose(np.sinh(facts["tails"][2, 1]), kurtosis(x))
    np.testing.assert_allclose(facts["tails"][2, 3], np.mean(np.log(largest[:-1] / largest[-1])))
    np.testing.assert_allclose(facts["clustering"][2, 1], clustering)
    np.testing.assert_allclose(facts["autocorrelation"][2, 1], autocorrelation(x, 1))
    np.testing.assert_allclose(facts["leverage"][2, 1], np.mean(leverage))
    np.testing.assert_allclose(facts["cross-correlation"][2, 0], np.corrcoef(windows.numpy()[2].T)[0, 1])


def test_stylized_facts_reject_short_windows(windows: Tensor) -> None:
    with pytest.raises(ValueError, match=r"stylized_facts: returns must be finite \(P, T, N\) with T > 64; got"):
        stylized_facts(windows[:, :60])


def test_fact_distances_equal_their_definition(windows: Tensor) -> None:
    real, other = stylized_facts(windows), stylized_facts(windows[:5] * 2 + 0.001)
    leverage = [
        wasserstein_distance(real["leverage"][:, k], other["leverage"][:, k]) / real["leverage"][:, k].std()
        for k in range(2)
    ]
    distances = fact_distances(real, other)
    assert distances["leverage"] == pytest.approx(np.mean(leverage))
    assert distances["total"] == pytest.approx(np.mean([v for k, v in distances.items() if k != "total"]))


def test_stationary_bootstrap_equals_arch(windows: Tensor) -> None:
    past = windows[0]
    scenarios = stationary_bootstrap(past, ("A", "B"), 3, 100, seed=5, block=9.0)
    ((expected,), _), *_ = StationaryBootstrap(9.0, past.numpy(), seed=5).bootstrap(1)
    np.testing.assert_array_equal(scenarios.returns.plain()[0], expected[:100])
    assert is_synthetic(scenarios.returns)
    assert scenarios.symbols == ("synthetic:A", "synthetic:B")


@pytest.mark.parametrize(
    ("rows", "block", "value", "message"),
    [
        (11, 2.0, 0.0, r"rows in \[1, 10\], .* rows=11"),
        (0, 2.0, 0.0, r"rows in \[1, 10\], .* rows=0"),
        (5, 0.5, 0.0, r"block must be >= 1 row; got block=0\.5"),
        (5, math.nan, 0.0, "block must be >= 1 row; got block=nan"),
        (5, 2.0, math.nan, "returns must be finite"),
    ],
)
def test_stationary_bootstrap_rejects_what_it_cannot_resample(
    rows: int, block: float, value: float, message: str
) -> None:
    with pytest.raises(ValueError, match=f"stationary_bootstrap: .*{message}"):
        stationary_bootstrap(torch.full((10, 1), value), ("A",), 1, rows, block=block)


def test_evaluate_scenarios_has_every_source(model: ScenarioModel, prices: Panel) -> None:
    evaluation = evaluate_scenarios(model, prices.to_pandas(), CONFIG, paths=20)
    assert list(evaluation.to_pandas().columns) == ["scenario-gan", "untrained", "bootstrap", "past"]
    assert evaluation.first > THROUGH
    assert set(evaluation.leave_one_year_out) <= {"2017", "2018", "2019"}
    assert pd.DataFrame(evaluation.fact_means()).notna().all().all()
    assert repr(evaluation).startswith("ScenarioEvaluation(")


def test_evaluate_scenarios_rejects_too_few_later_rows(model: ScenarioModel, prices: Panel) -> None:
    message = "at least 70 rows with a return of every symbol must follow 2017-06-30; got 19; choose an earlier date"
    with pytest.raises(ValueError, match=f"evaluate_scenarios: {message}"):
        evaluate_scenarios(model, prices.between(None, "2017-07-31"), CONFIG)

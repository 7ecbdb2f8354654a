"""Sharpe ratios against luck, backtest overfitting, model confidence set and SPA."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from torchcommodity.data import embedded
from torchcommodity.risk import (
    deflated_sharpe_ratio,
    expected_maximum_sharpe,
    model_confidence_set,
    probabilistic_sharpe_ratio,
    probability_of_backtest_overfitting,
    sharpe_probability,
    superior_predictive_ability,
)


def oil_returns() -> pd.DataFrame:
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2010-01-01", "2018-12-31").to_pandas().pct_change().dropna()


@pytest.mark.parametrize(
    ("trials", "skewness", "kurtosis", "published"), [(100, -3, 10, 0.9004), (46, -3, 10, 0.9505), (88, 0, 3, 0.9505)]
)
def test_deflated_sharpe_ratio_of_the_published_example(
    trials: int, skewness: float, kurtosis: float, published: float
) -> None:
    """Bailey, Lopez de Prado (2014): ratio 2.5 a year on 1250 days, variance 1/2 of the trials, 250 days a year."""
    benchmark = expected_maximum_sharpe((0.5 / 250) ** 0.5, trials)
    assert trials != 100 or round(benchmark, 4) == 0.1132
    assert round(sharpe_probability(2.5 / 250**0.5, benchmark, 1250, skewness, kurtosis), 4) == published


def test_expected_maximum_sharpe_is_near_that_of_normal_ratios() -> None:
    sample = np.random.default_rng(0).standard_normal((20_000, 10)).max(1)
    assert expected_maximum_sharpe(1.0, 10) == pytest.approx(sample.mean(), rel=0.03)


def test_sharpe_probabilities_of_real_returns() -> None:
    returns = oil_returns()["BRENT"].to_numpy()
    ratio, T = returns.mean() / returns.std(ddof=1), len(returns)
    g3, g4 = stats.skew(returns), stats.kurtosis(returns) + 3
    expected = stats.norm.cdf((ratio - 0.01) * np.sqrt(T - 1) / np.sqrt(1 - g3 * ratio + (g4 - 1) / 4 * ratio**2))
    assert probabilistic_sharpe_ratio(returns, 0.01 * 252**0.5) == pytest.approx(expected)
    deflated = deflated_sharpe_ratio(returns, [0.1, 0.5, -0.2, np.nan])
    assert deflated.sharpe_ratio == pytest.approx(252**0.5 * ratio)
    assert deflated.trials == 3
    assert deflated.probability == pytest.approx(probabilistic_sharpe_ratio(returns, deflated.expected_maximum))
    assert deflated.probability < probabilistic_sharpe_ratio(returns)


def test_sharpe_probabilities_of_constant_and_missing_returns() -> None:
    constant = np.full(100, 0.01)
    assert constant.std() > 0  # by rounding
    assert np.isnan(probabilistic_sharpe_ratio(constant))
    assert np.isnan(deflated_sharpe_ratio(constant, [0.1, 0.2]).sharpe_ratio)
    with pytest.raises(
        ValueError, match=r"probabilistic_sharpe_ratio: returns must have at least 2 finite .*; got v.*=0"
    ):
        probabilistic_sharpe_ratio([np.nan])
    with pytest.raises(
        ValueError, match=r"deflated_sharpe_ratio: trials must have at least 2 finite ratios; got t.*=1"
    ):
        deflated_sharpe_ratio(np.ones(10), [0.1])


def test_backtest_overfitting_equals_its_definition() -> None:
    returns = oil_returns().to_numpy()[:600]
    result = probability_of_backtest_overfitting(returns, blocks=6)
    parts, logits, losses = np.array_split(returns, 6), [], []
    for chosen in combinations(range(6), 3):
        inside, outside = (
            np.concatenate([part for i, part in enumerate(parts) if (i in chosen) is flag]) for flag in (True, False)
        )
        best = (inside.mean(0) / inside.std(0)).argmax()
        ratios = outside.mean(0) / outside.std(0)
        relative = stats.rankdata(ratios)[best] / 4
        logits.append(np.log(relative / (1 - relative)))
        losses.append(ratios[best] < 0)
    assert result.logits == pytest.approx(logits)
    assert (result.probability, result.loss) == (np.mean(np.array(logits) <= 0), np.mean(losses))


def test_backtest_overfitting_of_noise_and_of_skill() -> None:
    noise = np.random.default_rng(1).standard_normal((800, 20))
    assert probability_of_backtest_overfitting(noise, blocks=8).probability > 0.3
    noise[:, 0] += 0.5
    assert probability_of_backtest_overfitting(noise, blocks=8).probability == 0
    assert repr(probability_of_backtest_overfitting(noise, blocks=8)).endswith("; 70 splits)")


@pytest.mark.parametrize(
    ("returns", "blocks"), [(np.ones((50, 1)), 4), (np.ones((50, 2)), 5), (np.full((50, 2), np.nan), 4)]
)
def test_backtest_overfitting_rejects_bad_input(returns: np.ndarray, blocks: int) -> None:
    with pytest.raises(ValueError, match=r"returns must be finite \(T, N\) with N >= 2 and T >= 2 blocks, blocks even"):
        probability_of_backtest_overfitting(returns, blocks=blocks)


def test_backtest_overfitting_of_a_strategy_without_a_position_is_defined() -> None:
    returns = np.random.default_rng(0).normal(-0.1, 1, (200, 2))
    returns[:100, 1] = 0.0
    assert np.isfinite(probability_of_backtest_overfitting(returns, blocks=4).logits).all()


def test_backtest_overfitting_rejects_too_many_blocks() -> None:
    with pytest.raises(ValueError, match=r"blocks must be in \[2, 20\]; got blocks=40"):
        probability_of_backtest_overfitting(np.zeros((50, 2)), blocks=40)


def losses(*means: float) -> pd.DataFrame:
    table = np.random.default_rng(3).standard_normal((400, len(means))) + means
    return pd.DataFrame(table, columns=list("abcdef")[: len(means)])


def test_model_confidence_set_keeps_the_best_and_its_equals() -> None:
    table = losses(0.0, 0.0, 0.6, 0.9)
    table.iloc[3, 1] = np.nan
    result = model_confidence_set(table, block=2, replications=200)
    assert (result.included, result.excluded, result.observations) == (("a", "b"), ("c", "d"), 399)
    assert all((p > result.size) is (name in result.included) for name, p in result.p_values.items())
    assert result == model_confidence_set(table, block=2, replications=200)


def test_model_confidence_set_treats_models_of_equal_losses_alike() -> None:
    table = losses(0.0, 0.6)
    pair, alone = model_confidence_set(table.assign(c=table["b"]), block=2), model_confidence_set(table, block=2)
    assert pair.p_values == alone.p_values | {"c": alone.p_values["b"]}
    assert (pair.included, pair.excluded) == (("a",), ("b", "c"))
    assert model_confidence_set(table.assign(b=table["a"]), block=2).p_values == {"a": 1.0, "b": 1.0}


def test_superior_predictive_ability_finds_a_better_model_only_if_there_is_one() -> None:
    better = superior_predictive_ability(losses(0.5, 0.4, 0.0), "a", block=2, replications=200)
    assert (better.best, better.benchmark) == ("c", "a")
    assert better.p_value < 0.01
    none = superior_predictive_ability(losses(0.0, 0.1, 0.1), "a", block=2, replications=200)
    assert none.p_value > 0.3
    assert none.p_lower <= none.p_value <= none.p_upper


def test_superior_predictive_ability_of_equal_losses_is_one() -> None:
    table = losses(0.0, 0.3).assign(b=lambda x: x["a"])
    assert superior_predictive_ability(table, "a", block=2).p_value == 1.0


def test_model_selection_rejects_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"model_confidence_set: losses must have at least 2 models, and 2 blocks of rows"
    ):
        model_confidence_set(losses(0.0, 0.0), block=300)
    with pytest.raises(ValueError, match=r"superior_predictive_ability: benchmark must be one of a, b; got .*='z'"):
        superior_predictive_ability(losses(0.0, 0.0), "z", block=2)
    with pytest.raises(ValueError, match=r"model_confidence_set: size must be in \(0, 1\); got size=1"):
        model_confidence_set(losses(0.0, 0.0), block=2, size=1)
    with pytest.raises(TypeError, match=r"model_confidence_set: losses must be a DataFrame \(T, K\); got .*'ndarray'"):
        model_confidence_set(losses(0.0, 0.0).to_numpy(), block=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"every model must have a name of its own; got columns=\['a', 'a'\]"):
        superior_predictive_ability(losses(0.0, 0.0).set_axis(["a", "a"], axis=1), "a", block=2)

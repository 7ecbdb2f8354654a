"""Scenarios: the mark that training and scoring refuse, the penalty's double backward, the facts, the same seed."""

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from arch.bootstrap import StationaryBootstrap
from scipy.stats import kurtosis, wasserstein_distance
from torch import Tensor

from torchcommodity import data, ops
from torchcommodity.data import DataError, Panel, SyntheticTensor, is_synthetic
from torchcommodity.forecast import backtest, fit, score
from torchcommodity.models import ScenarioConfig, ScenarioCritic, ScenarioGenerator
from torchcommodity.opkit import MetadataTensor
from torchcommodity.portfolio import walk
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioFitConfig,
    ScenarioMaker,
    Scenarios,
    distance,
    evaluate_scenarios,
    fit_scenarios,
    gradient_penalty,
    stationary_bootstrap,
    stylized_facts,
)
from torchcommodity.scenarios._moments import start_by_moments
from torchcommodity.training import FitConfig

TINY = ScenarioConfig(window=70, halflives=(0.0, 20.0), channels=2, spans=(3.0,), lags=(1, 5), critic=2)
QUICK = ScenarioFitConfig(TINY, AdversarialConfig(steps=2, critic_steps=1, batch=4))


@pytest.fixture(scope="module")
def prices() -> Panel:
    return data.embedded()["WTI", "SP500"].between("2014-01-01")


@pytest.fixture(scope="module")
def maker(prices: Panel) -> ScenarioMaker:
    return fit_scenarios(prices, QUICK, through="2017-06-30")


@pytest.fixture(scope="module")
def made(maker: ScenarioMaker) -> Scenarios:
    return maker.sample(3, seed=1)


REAL = torch.linspace(0.1, 1.0, 6).reshape(3, 2).double()
KEEPING: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda x: x[:2, 0],
    "clone": lambda x: x.clone().detach(),
    "real + synthetic": lambda x: REAL + x,
    "metadata + synthetic": lambda x: data.embedded().values[:3, :2] * x,
    "cat": lambda x: torch.cat([data.embedded().values[:3, :2], x]),
    "where": lambda x: torch.where(REAL > 0.5, REAL, x),
    "dtype": lambda x: x.to(torch.float32),
    "native operator": lambda x: ops.ewm_mean(x, halflife=2.0),
    "deepcopy": copy.deepcopy,
    "with_metadata": lambda x: x.with_metadata(note="mine"),  # type: ignore[attr-defined]
    "MetadataTensor": lambda x: MetadataTensor(x),
    "module": lambda x: torch.nn.Linear(2, 2).double()(x),
}


@pytest.mark.parametrize("name", KEEPING)
def test_what_comes_of_synthetic_numbers_is_synthetic(name: str) -> None:
    assert is_synthetic(KEEPING[name](SyntheticTensor(REAL)))


def test_a_saved_tensor_keeps_its_mark() -> None:
    file = io.BytesIO()
    torch.save(SyntheticTensor(REAL), file)
    file.seek(0)
    assert is_synthetic(torch.load(file, weights_only=False))


@pytest.mark.parametrize(
    "write", [lambda x, y: x.copy_(y), lambda x, y: x.__setitem__(0, y[0]), lambda x, y: torch.add(y, y, out=x)]
)
def test_synthetic_numbers_are_not_written_into_real_ones(write: Callable[[Tensor, Tensor], Any]) -> None:
    real = REAL.clone()
    with pytest.raises(ValueError, match="expected to write synthetic values into a SyntheticTensor"):
        write(real, SyntheticTensor(-REAL))
    assert torch.equal(real, REAL)


LEARNING: dict[str, Callable[[Any], Any]] = {
    "fit": fit,
    "backtest": backtest,
    "score": score,
    "fit_scenarios": fit_scenarios,
    "portfolio": walk,
}


@pytest.mark.parametrize("name", LEARNING)
def test_training_and_scoring_refuse_scenarios(name: str, made: Scenarios, prices: Panel) -> None:
    path = made.panel(0, prices)
    for synthetic in (made, path, path.select(path.symbols[:1]), path.between(path.dates[3]), made.returns):
        with pytest.raises(ValueError, match=f"{name}: expected real prices; got synthetic ones"):
            LEARNING[name](synthetic)


def test_tuning_and_judging_refuse_them(maker: ScenarioMaker, made: Scenarios, prices: Panel) -> None:
    from torchcommodity.training._tune import tune

    path = made.panel(0, prices)
    with pytest.raises(ValueError, match="tune: expected real prices"):
        tune(path, FitConfig())
    with pytest.raises(ValueError, match="evaluate_scenarios: expected real prices"):
        evaluate_scenarios(maker, path)


def test_a_frame_a_file_and_the_store_keep_the_mark(made: Scenarios, prices: Panel, tmp_path: Path) -> None:
    path = made.panel(0, prices)
    assert Panel.from_pandas(path.to_pandas()).synthetic
    path.to_pandas().to_csv(tmp_path / "wide.csv")
    assert data.read(tmp_path / "wide.csv").synthetic
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(path, "path")
    assert store.load("path").synthetic


def test_a_source_that_says_synthetic_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("date,symbol,close,source\n2020-01-02,WTI,60,eia\n2020-01-03,WTI,61,synthetic\n")
    assert data.read(file).synthetic


def test_a_panel_of_synthetic_values_must_say_so(prices: Panel) -> None:
    real = prices.between("2018-12-27")
    values = SyntheticTensor(real.values)
    with pytest.raises(DataError, match="expected 'synthetic' as publisher of synthetic values"):
        Panel(values, real.dates, real.symbols, real.units, real.provenance)


def test_real_columns_of_a_mixed_panel_are_real(prices: Panel) -> None:
    frame = prices.between("2018-12-01").to_pandas().assign(**{"synthetic:WTI": 50.0})
    mixed = Panel.from_pandas(frame)
    assert mixed.synthetic
    assert mixed["synthetic:WTI"].synthetic
    assert not mixed["WTI"].synthetic


def test_a_path_goes_on_from_the_last_price(made: Scenarios, prices: Panel) -> None:
    path = made.panel(1, prices)
    last = prices.to_pandas().ffill().iloc[-1].to_numpy()
    moved = path.values.plain()[0].log().numpy() - np.log(last)
    np.testing.assert_allclose(moved, made.returns.plain()[1, 0].numpy())
    assert path.dates[0] > prices.dates[-1]
    assert set(made.frame()["source"]) == {"synthetic"}


def test_the_same_seed_makes_the_same_paths(maker: ScenarioMaker, prices: Panel, tmp_path: Path) -> None:
    again = fit_scenarios(prices, QUICK, through="2017-06-30")
    assert torch.equal(again.sample(3, seed=1).returns, maker.sample(3, seed=1).returns)
    assert not torch.equal(maker.sample(3, seed=2).returns, maker.sample(3, seed=1).returns)
    maker.save(tmp_path / "maker")
    loaded = ScenarioMaker.load(tmp_path / "maker")
    assert loaded.record == maker.record
    assert torch.equal(loaded.sample(3, seed=1).returns, maker.sample(3, seed=1).returns)


def test_later_prices_do_not_reach_the_fit(maker: ScenarioMaker, prices: Panel) -> None:
    frame = prices.to_pandas()
    frame.loc["2017-07-01":] *= 3.0
    other = fit_scenarios(Panel.from_pandas(frame), QUICK, through="2017-06-30")
    assert torch.equal(other.sample(3).returns, maker.sample(3).returns)


def test_training_moves_the_generator(maker: ScenarioMaker, prices: Panel) -> None:
    silent = fit_scenarios(prices, ScenarioFitConfig(TINY, AdversarialConfig(steps=0)), through="2017-06-30")
    assert not torch.equal(silent.sample(1).returns, maker.sample(1).returns)


def test_a_damaged_file_is_refused(maker: ScenarioMaker, tmp_path: Path) -> None:
    maker.save(tmp_path / "maker")
    raw = bytearray((tmp_path / "maker").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "maker").write_bytes(bytes(raw))
    with pytest.raises(ValueError, match=r"ScenarioMaker\.load: .* is damaged"):
        ScenarioMaker.load(tmp_path / "maker")


def _small() -> tuple[ScenarioCritic, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    config = ScenarioConfig(window=24, spans=(3.0,), lags=(1, 2, 3, 4), critic=2)
    critic = ScenarioCritic(torch.tensor([0.01, 0.02]).double(), config).double()
    real, fake = 0.02 * torch.randn(2, 24, 2).double(), 0.02 * torch.randn(2, 24, 2).double()
    return critic, real, fake, torch.rand(2, 1, 1).double()


def test_the_penalty_differentiates_twice_through_our_operators() -> None:
    critic, real, fake, share = _small()
    weights = [critic.near.weight, critic.whole.bias]

    def penalty(*_: Tensor) -> Tensor:
        return gradient_penalty(critic, real, fake, critic.scale, share)

    assert torch.autograd.gradcheck(penalty, weights, rtol=1e-4, atol=1e-7, fast_mode=True)
    x = (real / critic.scale).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: critic(x * critic.scale), x, rtol=1e-4, atol=1e-7, fast_mode=True)


def test_the_penalty_by_finite_slopes() -> None:
    critic, real, fake, share = _small()
    x = (share * real + (1 - share) * fake) / critic.scale
    step, slopes = 1e-5, torch.zeros_like(x)
    with torch.no_grad():
        for place in np.ndindex(*x.shape[1:]):
            bump = torch.zeros_like(x)
            bump[(slice(None), *place)] = step
            slopes[(slice(None), *place)] = (critic((x + bump) * critic.scale) - critic((x - bump) * critic.scale)) / (
                2 * step
            )
    expected = (slopes.flatten(1).norm(dim=1) - 1).square().mean()
    torch.testing.assert_close(
        gradient_penalty(critic, real, fake, critic.scale, share), expected, rtol=1e-6, atol=1e-8
    )


def test_the_generator_never_looks_ahead() -> None:
    torch.manual_seed(0)
    generator = ScenarioGenerator(2, TINY).eval()
    torch.nn.init.normal_(generator.head.weight)
    noise = torch.randn(1, 70, generator.noise)
    later = noise.clone()
    later[:, 40:] = torch.randn(1, 30, generator.noise)
    assert torch.equal(generator(noise)[:, :40], generator(later)[:, :40])


def test_moments_start_at_the_volatility_and_correlation_of_the_past(prices: Panel) -> None:
    returns = ops.log_returns(prices.values.plain())
    returns = returns[returns.isfinite().all(1)]
    generator = ScenarioGenerator(2).eval()
    start_by_moments(generator, returns)
    with torch.no_grad():
        noise = torch.randn(200, 252, generator.noise, generator=torch.Generator().manual_seed(0))
        made = generator(noise).flatten(0, 1).double()
    ratio = made.std(0) / returns.std(0)
    assert (ratio.log().abs() < 0.15).all(), ratio
    assert abs(torch.corrcoef(made.T)[0, 1] - torch.corrcoef(returns.T)[0, 1]) < 0.15


@pytest.fixture(scope="module")
def windows(prices: Panel) -> Tensor:
    returns = ops.log_returns(prices.values.plain())
    return returns[returns.isfinite().all(1)].unfold(0, 252, 100).mT


def test_facts_by_independent_formulas(windows: Tensor) -> None:
    facts, x = stylized_facts(windows), windows.numpy()[2, :, 1]
    r = x - x.mean()
    size = np.sort(np.abs(r))[::-1][: int(0.05 * 252)]
    pooled = np.concatenate([w[:, 1] - w[:, 1].mean() for w in windows.numpy()])
    np.testing.assert_allclose(facts["volatility"][2, 1], np.log(r.std() / np.sqrt((pooled**2).mean())))
    np.testing.assert_allclose(np.sinh(facts["tails"][2, 1]), kurtosis(x))
    np.testing.assert_allclose(facts["tails"][2, 3], np.mean(np.log(size[:-1] / size[-1])))
    np.testing.assert_allclose(facts["clustering"][2, 1], np.mean([_acf(np.abs(r), k) for k in range(1, 6)]))
    np.testing.assert_allclose(facts["autocorrelation"][2, 1], _acf(x, 1))
    lead = [np.sum(r[:-k] * (r**2 - (r**2).mean())[k:]) / 252 / r.std() / (r**2).std() for k in range(1, 11)]
    np.testing.assert_allclose(facts["leverage"][2, 1], np.mean(lead))
    np.testing.assert_allclose(facts["cross-correlation"][2, 0], np.corrcoef(windows.numpy()[2].T)[0, 1])


def _acf(x: np.ndarray, lag: int) -> float:
    z = x - x.mean()
    return float(np.sum(z[:-lag] * z[lag:]) / np.sum(z**2))


def test_distance_by_its_definition(windows: Tensor) -> None:
    real, other = stylized_facts(windows), stylized_facts(windows[:5] * 2 + 0.001)
    leverage = [
        wasserstein_distance(real["leverage"][:, k], other["leverage"][:, k]) / real["leverage"][:, k].std()
        for k in range(2)
    ]
    found = distance(real, other)
    assert found["leverage"] == pytest.approx(np.mean(leverage))
    assert found["total"] == pytest.approx(np.mean([v for k, v in found.items() if k != "total"]))
    with pytest.raises(ValueError, match="expected finite returns"):
        stylized_facts(windows[:, :60])


def test_the_bootstrap_is_that_of_arch(windows: Tensor) -> None:
    past = windows[0]
    found = stationary_bootstrap(past, ("A", "B"), 3, 100, seed=5, block=9.0)
    ((expected,), _), *_ = StationaryBootstrap(9.0, past.numpy(), seed=5).bootstrap(1)
    np.testing.assert_array_equal(found.returns.plain()[0], expected[:100])
    assert is_synthetic(found.returns)
    assert found.symbols == ("synthetic:A", "synthetic:B")


def test_a_judgement_has_every_maker_and_an_error(maker: ScenarioMaker, prices: Panel) -> None:
    found = evaluate_scenarios(maker, prices, QUICK, paths=20)
    assert list(found.frame().columns) == ["scenario-gan", "untrained", "bootstrap", "past"]
    assert found.first > "2017-06-30"
    assert set(found.without) <= {"2017", "2018", "2019"}
    assert pd.DataFrame(found.means()).notna().all().all()


def test_too_short_a_panel_is_refused(maker: ScenarioMaker, prices: Panel) -> None:
    with pytest.raises(ValueError, match="fit_scenarios: expected returns of all symbols on at least 140 rows"):
        fit_scenarios(prices.between("2018-09-01"), QUICK)
    with pytest.raises(ValueError, match="evaluate_scenarios: expected 70 rows after"):
        evaluate_scenarios(maker, prices.between(None, "2017-07-31"), QUICK)

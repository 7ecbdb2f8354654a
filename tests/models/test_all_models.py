"""Every forecaster of the registry: it starts at the baseline, never looks ahead, learns whole, leaves Python whole."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.export import Dim

from torchcommodity import data, forecast, opkit
from torchcommodity.forecast import Forecaster
from torchcommodity.losses import pinball
from torchcommodity.models import MODELS, HarConfig, ModelConfig, build_model, learned_parameters
from torchcommodity.training import FitConfig, TrainConfig

HAR = HarConfig(horizons=(5, 21), levels=(0.1, 0.5, 0.9), halflives=(5, 21, 63), trends=(5, 21), warmup=42)
SETTINGS: dict[str, dict[str, Any]] = {
    "har-regime": {"window": 20, "min_periods": 10, "lag": 5},
    "har-mlp-lstm": {"window": 20, "min_periods": 10, "lag": 5, "season": 5},
}
NETWORKS = [name for name in MODELS if name != "har-garch"]
FIVE = ["WTI", "HEATOIL", "CORN", "SOYBEAN", "NATGAS"]

pytestmark = pytest.mark.parametrize("name", NETWORKS)


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (1, T, 3)
    """Oil, a share index and volatility with their own holidays, and in oil a day as of 20 April 2020."""
    panel = data.embedded().select(["WTI", "SP500", "VIX"]).between("2014-01-01", "2015-06-30")
    values = panel.values.plain().clone()
    values[200, 0], values[201, 0], values[230:240, 1] = -37.63, 0.0, torch.nan
    return values[None]


def config(name: str) -> ModelConfig:
    made: ModelConfig = MODELS[name].config(har=HAR, **SETTINGS.get(name, {}))
    return made


def bent(name: str, assets: int = 3) -> Any:
    """A model whose head is no longer zero, whose running statistics have seen a batch, in evaluation mode."""
    model = build_model(config(name), assets)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.head.weight.copy_(torch.randn(model.head.weight.shape, generator=generator))
    return model.eval()


def all_rows(model: Any, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    market = model.har(prices)
    quantiles: Tensor = model.har.quantiles(market, model.correction(market))
    return quantiles


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def test_untrained_it_is_the_baseline_bit_for_bit(name: str, prices: Tensor) -> None:
    model = build_model(config(name), 3)
    baseline = model.har.quantiles(model.har(prices))
    for mode in (True, False):
        assert same(all_rows(model.train(mode), prices), baseline)
    rows = all_rows(bent(name), prices)
    assert not same(rows, baseline)
    assert torch.equal(rows.isfinite(), baseline.isfinite())  # missing prices poison nothing
    assert torch.equal(bent(name)(prices), rows[:, -1])


@pytest.mark.parametrize("row", [1, 200, 235])
def test_no_look_ahead(name: str, row: int, prices: Tensor) -> None:
    model, changed = bent(name), prices.clone()
    changed[:, row:] = changed[:, row:].abs().sqrt() + 1
    changed[:, -1] = torch.nan
    before, after = all_rows(model, prices), all_rows(model, changed)
    assert same(before[:, :row], after[:, :row])
    assert row == 1 or not same(before[:, row:], after[:, row:])


def test_rolls_and_their_gaps_reach_the_network_as_no_return(name: str, prices: Tensor) -> None:
    """A gap of any size on the day of a roll leaves every later correction as it was."""
    model, rolls = bent(name), torch.zeros(1, prices.shape[1] + 21, 3, dtype=torch.int64)
    rolls[:, 150] = 6
    jumped = prices.clone()
    jumped[:, 150:] *= 1.3
    one, other = (model.correction(model.har(x, rolls)) for x in (prices, jumped))
    torch.testing.assert_close(one[:, -100:], other[:, -100:], rtol=1e-4, atol=1e-4)


def test_a_loss_reaches_every_parameter_and_the_doctor_finds_nothing(name: str, prices: Tensor) -> None:
    model = bent(name).train()
    model.har.mix.fill_(0.2)

    def loss(market_rows: Tensor) -> Tensor:
        return pinball(market_rows, torch.full(market_rows.shape[:-1], 0.02).to(market_rows), levels)

    levels = torch.tensor(HAR.levels, dtype=torch.double)
    loss(all_rows(model, prices)[:, HAR.warmup + 30 :]).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.any(), key
    found = opkit.diagnose(model.eval(), prices, loss)
    assert found.healthy, found


def test_what_is_learnt_is_trained_and_reported(name: str, prices: Tensor) -> None:
    model = bent(name).train()
    before = learned_parameters(model)
    optimizer = torch.optim.AdamW([p for key, p in model.named_parameters() if not key.startswith("har.")], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        rows = all_rows(model, prices)
        torch.where(rows.isfinite(), rows, 0.0).square().sum().backward()
        optimizer.step()
    after = learned_parameters(model)
    assert before.keys() == after.keys()
    assert bool(before) == (name in {"har-regime", "garch-lstm", "har-mlp-lstm", "har-orthogonal-lstm"})
    assert all(not after[key].equal(before[key]) for key in before)
    assert all(value.isfinite().all() and (value > 0).all() for value in after.values())


@pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn of themselves
def test_compilers_take_it_whole_with_any_batch_and_any_time(name: str, prices: Tensor) -> None:
    """Strict export is Dynamo with fullgraph: one graph, whatever the shapes."""
    torch._dynamo.reset()
    model, two = bent(name), prices[:, :100].repeat(2, 1, 1)
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    program = torch.export.export(model, (two,), dynamic_shapes=shapes, strict=True)
    for other in (two, prices[:, 40:250].repeat(3, 1, 1)):
        torch.testing.assert_close(program.module()(other), model(other), equal_nan=True)


def test_it_is_fitted_saved_and_loaded(name: str, tmp_path: Path) -> None:
    panel = data.embedded().select(["WTI", "SP500"]).between("2013-06-01", "2015-12-31")
    fitted = forecast.fit(panel, FitConfig(config(name), train=TrainConfig(epochs=1, window=120)))
    fitted.save(tmp_path / "model")
    loaded = Forecaster.load(tmp_path / "model")
    assert same(*(forecast.predict(x, panel).log_returns for x in (fitted, loaded)))


def test_five_commodities_by_four_horizons(name: str, shared_data: Path) -> None:
    table = pd.read_csv(shared_data / "daily.csv.gz", usecols=["date", "symbol", "close"])
    wide = table.pivot(index="date", columns="symbol", values="close").loc["2012":"2016", FIVE]  # type: ignore[misc]
    found = build_model(MODELS[name].config(), 5).eval()(torch.tensor(wide.to_numpy())[None])
    assert found.shape == (1, 4, 5, 19)
    assert found.isfinite().all()

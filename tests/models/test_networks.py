"""Contract of every model with a network: starts at the baseline, is causal, trains whole, exports, saves and loads."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import torch_opkit as opkit
from torchcommodity import data, forecast
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
WITH_LEARNED_PARAMETERS = {"har-regime", "garch-lstm", "har-mlp-lstm", "har-orthogonal-lstm"}

pytestmark = pytest.mark.parametrize("name", NETWORKS)


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (1, T, 3)
    """Two oils and gas with different holidays; oil with a negative price as on 20 April 2020."""
    panel = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01", "2015-06-30")
    values = panel.values.plain().clone()
    values[200, 0], values[201, 0], values[230:240, 1] = -37.63, 0.0, torch.nan
    return values[None]


def config(name: str) -> ModelConfig:
    return MODELS[name].config(har=HAR, **SETTINGS.get(name, {}))


def with_random_head(name: str, assets: int = 3) -> Any:
    """A model in evaluation mode whose corrections are not zero."""
    model = build_model(config(name), assets)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.head.weight.copy_(torch.randn(model.head.weight.shape, generator=generator))
    return model.eval()


def all_rows(model: Any, prices: Tensor) -> Tensor:  # (B, T, N) -> (B, T, H, N, Q)
    har_output = model.har(prices)
    quantiles: Tensor = model.har.quantiles(har_output, model.correction(har_output))
    return quantiles


def equal_with_nan(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def test_untrained_model_equals_baseline(name: str, prices: Tensor) -> None:
    model = build_model(config(name), 3)
    baseline = model.har.quantiles(model.har(prices))
    for training in (True, False):
        assert equal_with_nan(all_rows(model.train(training), prices), baseline)
    rows = all_rows(with_random_head(name), prices)
    assert not equal_with_nan(rows, baseline)
    assert torch.equal(rows.isfinite(), baseline.isfinite())  # NaNs do not propagate
    last = with_random_head(name)(prices)
    if name == "har-lstm":  # its head reads the last row alone: a product of another shape, whose sums BLAS may reorder
        torch.testing.assert_close(last, rows[:, -1], rtol=1e-6, atol=1e-7)
    else:
        assert torch.equal(last, rows[:, -1])


@pytest.mark.parametrize("row", [1, 200, 235])
def test_model_is_causal(name: str, row: int, prices: Tensor) -> None:
    model, changed = with_random_head(name), prices.clone()
    changed[:, row:] = changed[:, row:].abs().sqrt() + 1
    changed[:, -1] = torch.nan
    before, after = all_rows(model, prices), all_rows(model, changed)
    assert equal_with_nan(before[:, :row], after[:, :row])
    assert row == 1 or not equal_with_nan(before[:, row:], after[:, row:])


def test_correction_ignores_roll_gaps(name: str, prices: Tensor) -> None:
    """A gap of any size on the day of a roll leaves every later correction unchanged."""
    model, rolls = with_random_head(name), torch.zeros(1, prices.shape[1] + 21, 3, dtype=torch.int64)
    rolls[:, 150] = 6
    with_gap = prices.clone()
    with_gap[:, 150:] *= 1.3
    before, after = (model.correction(model.har(x, rolls)) for x in (prices, with_gap))
    torch.testing.assert_close(before[:, -100:], after[:, -100:], rtol=1e-4, atol=1e-4)


def test_gradient_reaches_every_parameter(name: str, prices: Tensor) -> None:
    model = with_random_head(name).train()
    model.har.mix.fill_(0.2)

    def loss(quantiles: Tensor) -> Tensor:
        return pinball(quantiles, torch.full(quantiles.shape[:-1], 0.02).to(quantiles), levels)

    levels = torch.tensor(HAR.levels, dtype=torch.double)
    loss(all_rows(model, prices)[:, HAR.warmup + 30 :]).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.any(), key
    diagnosis = opkit.diagnose(model.eval(), prices, loss)
    assert diagnosis.ok, diagnosis


def test_learned_parameters_change_in_training(name: str, prices: Tensor) -> None:
    model = with_random_head(name).train()
    before = learned_parameters(model)
    optimizer = torch.optim.AdamW([p for key, p in model.named_parameters() if not key.startswith("har.")], lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        rows = all_rows(model, prices)
        torch.where(rows.isfinite(), rows, 0.0).square().sum().backward()
        optimizer.step()
    after = learned_parameters(model)
    assert before.keys() == after.keys()
    assert bool(before) == (name in WITH_LEARNED_PARAMETERS)
    assert all(not after[key].equal(before[key]) for key in before)
    assert all(value.isfinite().all() and (value > 0).all() for value in after.values())


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_strict_export_has_dynamic_batch_and_time(name: str, prices: Tensor) -> None:
    torch._dynamo.reset()
    model, two = with_random_head(name), prices[:, :100].repeat(2, 1, 1)
    shapes = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    program = torch.export.export(model, (two,), dynamic_shapes=shapes, strict=True)
    for inputs in (two, prices[:, 40:250].repeat(3, 1, 1)):
        torch.testing.assert_close(program.module()(inputs), model(inputs), equal_nan=True)


def test_fitted_model_saves_and_loads(name: str, tmp_path: Path) -> None:
    panel = data.embedded(["WTI", "BRENT"]).between("2013-06-01", "2015-12-31")
    fitted = forecast.fit(panel, FitConfig(config(name), train=TrainConfig(epochs=1, window=120)))
    fitted.save(tmp_path / "model")
    loaded = Forecaster.load(tmp_path / "model")
    assert equal_with_nan(*(forecast.predict(x, panel).log_returns for x in (fitted, loaded)))


def test_five_symbols_by_four_horizons(name: str) -> None:
    prices = data.embedded().between("2012-01-01", "2016-12-31").values.plain()
    five = torch.cat([prices, prices[:, :2].flip(0)], 1)[None]
    quantiles = build_model(MODELS[name].config(), 5).eval()(five)
    assert quantiles.shape == (1, 4, 5, 19)
    assert quantiles.isfinite().all()

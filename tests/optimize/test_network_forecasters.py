"""A forecaster of a network of the user's goes through the steps of every other, or is refused in words."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarNetwork, HarOutput, ModelConfig
from torchcommodity.optimize import (
    benchmark_inputs,
    benchmark_table,
    correction_importance,
    fine_tune,
    mixed_precision,
    model_size,
    pipeline,
    profile,
    prune,
    prune_units,
    quantize,
)
from torchcommodity.training import FitConfig, ModelInputs, TrainConfig

Predict = Callable[[Forecaster], Tensor]


class Mlp(nn.Module):
    """Quantiles (B, H, N, Q), with a setting for its units."""

    lookback = 20

    def __init__(
        self, assets: int, horizons: tuple[int, ...], levels: tuple[float, ...], lookback: int, hidden: int = 8
    ) -> None:
        super().__init__()
        outputs = len(horizons) * assets * len(levels)
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(lookback * assets, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
        )
        self.shape = len(horizons), assets, len(levels)

    def forward(self, prices: Tensor) -> Tensor:
        return 0.1 * self.layers(20 * (prices / prices[:, -1:]).log()).unflatten(-1, self.shape)


class Mixture(nn.Module):
    """A mixture of two normal distributions, whose sizes are no settings."""

    lookback = 20

    def __init__(self, assets: int, horizons: tuple[int, ...], lookback: int) -> None:
        super().__init__()
        self.shape, self.linear = (
            (len(horizons), assets, 3, 2),
            nn.Linear(lookback * assets, len(horizons) * assets * 6),
        )

    def forward(self, prices: Tensor) -> MixtureSameFamily:
        x = self.linear((prices / prices[:, -1:]).log().flatten(1)).unflatten(-1, self.shape)
        return MixtureSameFamily(
            Categorical(logits=x[..., 0, :]), Normal(0.1 * x[..., 1, :], 0.05 * x[..., 2, :].exp())
        )


class Correction(HarNetwork):
    """Corrects the scale of `Har`, and names the layer whose units its head reads."""

    recurrence = "gru"

    def __init__(self, assets: int, config: ModelConfig, units: int = 8) -> None:
        super().__init__(assets, config)
        self.gru = nn.GRU(config.har.features, units, batch_first=True)
        self.head = nn.Linear(units, len(config.har.horizons))

    def correction(self, har_output: HarOutput) -> Tensor:
        return self.from_sequences(self.head(self.gru(self.to_sequences(har_output.features))[0])).transpose(-1, -2)


def fit(panel: Panel, model: object) -> Forecaster:
    config = FitConfig(train=TrainConfig(epochs=1))
    return forecast.fit(panel.with_references(None), config, model=model, horizons=(5, 21))


@pytest.fixture(scope="module")
def mlp(panel: Panel) -> Forecaster:
    return fit(panel, Mlp)


def test_every_step_of_the_pipeline_takes_a_network_on_windows(mlp: Forecaster, inputs: ModelInputs) -> None:
    pytest.importorskip("torchao")
    start = len(inputs.prices) - 120
    example = benchmark_inputs(inputs, 400, 1, 21)
    variants = pipeline(mlp, inputs.before(start), example, epochs=1, compiled=False)
    assert {"75 % of units pruned", "distilled", "int8", "combined", "no network"} < set(variants)
    assert variants["75 % of units pruned"].forecaster.model.config.numbers() == {"lookback": 20, "settings.hidden": 2}
    assert variants["distilled"].forecaster.model.config.numbers()["settings.hidden"] == 4
    assert variants["original"].note == (
        "Left out: inputs and rows pruned (the network must select its inputs, and one on look-back windows reads all "
        "that it is given)"
    )
    rows = {row.variant: row for row in benchmark_table(variants, inputs, start, rows=400, batch_size=2, calls=5)}
    assert rows["float32 prices"].crps == pytest.approx(rows["original"].crps, rel=1e-4)
    assert rows["combined"].size.bytes < rows["original"].size.bytes
    assert rows["no network"].crps != rows["original"].crps


@pytest.mark.parametrize("network", [Mlp, Correction])
def test_pruned_units_are_those_of_the_settings_in_a_file(
    network: type[nn.Module], panel: Panel, tmp_path: Path
) -> None:
    forecaster = fit(panel, network)
    small = prune_units(forecaster, 0.5)
    assert model_size(small).parameters < model_size(forecaster).parameters
    small.save(tmp_path / "small.safetensors")
    loaded = Forecaster.load(tmp_path / "small.safetensors", model=network)
    expected = small.predict(panel).log_returns
    assert torch.equal(loaded.predict(panel).log_returns, expected)
    assert expected.shape == forecaster.predict(panel).log_returns.shape


def test_units_that_are_no_setting_are_refused(panel: Panel) -> None:
    forecaster = fit(panel, lambda assets, horizons, levels, lookback: Mlp(assets, horizons, levels, lookback))
    with pytest.raises(
        ValueError, match=r"prune_units: the units of the layers must be one of the settings .*settings='lookback'"
    ):
        prune_units(forecaster, 0.5)


@pytest.mark.parametrize("network", [Mlp, Correction, Mixture])
def test_zero_units_of_a_forecaster_need_no_example(network: type[nn.Module], panel: Panel, predict: Predict) -> None:
    forecaster = fit(panel, network)
    if network is Mixture:  # it has the last layer only
        with pytest.raises(ValueError, match=r"layer to prune before the last one, .*last=\['network.linear'\]"):
            prune_units(forecaster, 0.5, method="zero")
        return
    zeros = prune_units(forecaster, 0.5, method="zero")
    assert model_size(zeros).sparsity > model_size(forecaster).sparsity
    assert predict(zeros).shape == predict(forecaster).shape


def test_prices_are_batches_of_a_profile(mlp: Forecaster, inputs: ModelInputs) -> None:
    assert "network" in profile(mlp, inputs, steps=1, warmup=0, stacks=False).stages


def test_inputs_of_a_network_on_windows_are_not_selected(mlp: Forecaster, inputs: ModelInputs) -> None:
    message = "correction_importance: the network must select its inputs, .*fit it with a shorter lookback.*lookback=20"
    with pytest.raises(ValueError, match=message):
        correction_importance(mlp, inputs)


def test_a_mixture_is_trained_by_its_quantiles(panel: Panel, inputs: ModelInputs, predict: Predict) -> None:
    forecaster = fit(panel, Mixture)
    tuned = fine_tune(prune(forecaster, 0.5), inputs, epochs=2)
    assert "fine-tun" in tuned.record.note
    for small in (quantize(forecaster), mixed_precision(forecaster)):
        difference = (predict(small) - predict(forecaster)).abs().nan_to_num().max()
        assert 0 < difference < 0.05


def test_gradients_of_quantiles_of_a_distribution_are_those_of_the_inverse() -> None:
    from torchcommodity.models._window_network import quantiles_of

    levels = torch.tensor([0.1, 0.5, 0.9])
    mean, deviation = torch.tensor([[[0.1]]], requires_grad=True), torch.tensor([[[0.3]]], requires_grad=True)
    one = MixtureSameFamily(Categorical(torch.ones(1, 1, 1, 1)), Normal(mean.unsqueeze(-1), deviation.unsqueeze(-1)))
    expected = torch.autograd.grad(Normal(mean, deviation).icdf(levels).square().sum(), (mean, deviation))
    received = torch.autograd.grad(quantiles_of(one, levels, torch.ones(1, 1, 1)).square().sum(), (mean, deviation))
    torch.testing.assert_close(received, expected, rtol=1e-4, atol=1e-5)

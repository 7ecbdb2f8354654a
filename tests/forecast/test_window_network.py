"""A network of one's own is fitted, back-tested, saved, exported and simulated as the models of the package are."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import network_examples
import numpy as np
import pytest
import torch
from torch import nn

from torchcommodity import data, export, forecast
from torchcommodity.models import HarLstmConfig, HarNetwork, HarOutput, ModelConfig, to_model_config, windowed
from torchcommodity.training import FitConfig, TrainConfig, from_toml, to_toml, tune

SHORT = FitConfig(train=TrainConfig(epochs=2))
OTHERS = ["Transformer", "ResidualCnn", "Mixture"]


@pytest.fixture(scope="module")
def prices() -> data.Panel:
    return data.embedded(["WTI", "BRENT"]).with_references(None).between("2010-01-01", "2016-12-31")


@pytest.fixture(scope="module")
def fitted(prices: data.Panel) -> forecast.Forecaster:
    return forecast.fit(prices, SHORT, model=network_examples.windowed_lstm)


@pytest.mark.slow
def test_a_lstm_goes_from_a_class_to_an_artifact(
    prices: data.Panel, fitted: forecast.Forecaster, tmp_path: Path
) -> None:
    expected = fitted.predict(prices)
    assert torch.isfinite(expected.log_returns).all()
    assert (expected.log_returns.diff(dim=-1) >= 0).all()
    assert fitted.simulate(prices, horizon=5, paths=50).prices.shape == (50, 5, 2)
    assert "network_examples:lstm" in repr(fitted)
    fitted.save(tmp_path / "lstm.safetensors")
    loaded = forecast.Forecaster.load(tmp_path / "lstm.safetensors", model=network_examples.windowed_lstm)
    assert torch.equal(loaded.predict(prices).log_returns, expected.log_returns)
    again = pickle.loads(pickle.dumps(fitted)).predict(prices)
    assert torch.equal(again.log_returns, expected.log_returns)
    export.export(fitted, tmp_path / "lstm.pt2")
    code = (
        "import sys; from torchcommodity import data, export\n"
        "p = data.embedded(['WTI', 'BRENT']).with_references(None).between('2010-01-01', '2016-12-31')\n"
        "a = export.Artifact.load(sys.argv[1]).predict(p)\n"
        "assert 'network_examples' not in sys.modules; print(*a.log_returns.flatten().tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "lstm.pt2"], capture_output=True, text=True, check=True
    )
    served = torch.tensor([float(x) for x in done.stdout.split()], dtype=torch.double)
    torch.testing.assert_close(served, expected.log_returns.flatten(), rtol=0, atol=1e-6)


def test_a_file_never_chooses_what_is_imported(
    fitted: forecast.Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path / "lstm.safetensors")
    with pytest.raises(ValueError, match="network_examples:lstm: pass model="):
        forecast.Forecaster.load(tmp_path / "lstm.safetensors")
    with pytest.raises(ValueError, match="expected what makes network_examples:lstm; got 'har-lstm'"):
        forecast.Forecaster.load(tmp_path / "lstm.safetensors", model="har-lstm")
    with pytest.raises(ValueError, match=r"weights: expected"):
        forecast.Forecaster.load(tmp_path / "lstm.safetensors", model=windowed(lambda: nn.LSTM(2, 9, batch_first=True)))
    monkeypatch.setenv("TORCHCOMMODITY_NETWORKS", "network_examples")
    assert forecast.Forecaster.load(tmp_path / "lstm.safetensors").symbols == ("WTI", "BRENT")


@pytest.mark.parametrize("name", ["nn.Linear", "torch.hub.load", "torch.load"])
def test_a_module_that_is_allowed_does_not_allow_what_it_imports(
    fitted: forecast.Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    network = f"network_examples:{name}"
    config = replace(fitted.model.config, network=network, settings={"path": str(tmp_path / "made")})
    monkeypatch.setattr(fitted.model, "config", config)
    fitted.save(tmp_path / "lstm.safetensors")
    monkeypatch.setenv("TORCHCOMMODITY_NETWORKS", "network_examples")
    with pytest.raises(ValueError, match=f"weights made by {network}, which is no class of networks, and no function"):
        forecast.Forecaster.load(tmp_path / "lstm.safetensors")


@pytest.mark.parametrize("name", [":lstm", ".network_examples:lstm"])
def test_a_file_with_an_empty_module_name_is_not_allowed_by_no_permission(
    fitted: forecast.Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(fitted.model, "config", replace(fitted.model.config, network=name))
    fitted.save(tmp_path / "lstm.safetensors")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    with pytest.raises(ValueError, match=f"{name}: pass model="):
        forecast.Forecaster.load(tmp_path / "lstm.safetensors")
    assert "" not in sys.path  # the working directory


def test_a_symbol_that_begins_later_leaves_no_nan_in_the_weights(prices: data.Panel) -> None:
    values = prices.values.plain().clone()
    values[:900, 1] = torch.nan
    late = replace(prices, values=type(prices.values)(values))
    fitted = forecast.fit(late, SHORT, model=network_examples.windowed_lstm)
    assert all(torch.isfinite(x).all() for x in fitted.model.network.parameters())
    assert torch.isfinite(fitted.predict(late).log_returns).all()


def test_a_gradient_that_is_not_finite_is_an_error(prices: data.Panel) -> None:
    class Broken(network_examples.ResidualCnn):
        def forward(self, prices: torch.Tensor) -> torch.Tensor:
            return super().forward(prices) + (self.output.bias - self.output.bias.detach()).sqrt().sum()

    with pytest.raises(ValueError, match=r"the gradient of .*Broken must be finite; got (nan|inf) in epoch 1"):
        forecast.fit(prices, SHORT, model=Broken)


def test_a_backtest_trains_a_fresh_network_for_each_fold(prices: data.Panel) -> None:
    settings = {"first_year": 2015, "refit_network": 1, "baselines": {}}
    result = forecast.backtest(prices, SHORT, model="network_examples:windowed_lstm", **settings)
    assert set(result.quantiles) == {"network_examples:windowed_lstm", "har-garch"}
    last = forecast.backtest(prices, SHORT, model=network_examples.windowed_lstm, **{**settings, "first_year": 2016})
    quantiles = result.quantiles["network_examples:windowed_lstm"][-len(last.origins) :]
    assert torch.equal(quantiles, last.quantiles["network_examples:lstm"])


def test_later_prices_change_no_forecast(prices: data.Panel) -> None:
    values = prices.values.plain().clone()
    values[prices.dates >= np.datetime64("2016-01-01")] *= 3
    changed = replace(prices, values=type(prices.values)(values))
    settings = {"first_year": 2015, "baselines": {}, "model": network_examples.ResidualCnn}
    one, other = (forecast.backtest(panel, SHORT, **settings) for panel in (prices, changed))
    before = one.origins < np.datetime64("2016-01-01")
    name = "network_examples:ResidualCnn"
    assert torch.equal(one.quantiles[name][before], other.quantiles[name][before])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            network_examples.Bidirectional,
            r":Bidirectional looks ahead: its correction of row \d+ changes",
        ),
        (
            network_examples.BatchNormalized,
            r":BatchNormalized looks ahead: its forecast from row \d+ changes",
        ),
    ],
)
def test_a_network_that_looks_ahead_is_refused(prices: data.Panel, network: type[nn.Module], message: str) -> None:
    with pytest.raises(ValueError, match=f"fit: model .*{message}"):
        forecast.fit(prices, SHORT, model=network)
    with pytest.raises(ValueError, match=f"backtest: model .*{message}"):
        forecast.backtest(prices, SHORT, model=network, first_year=2016, baselines={})


def test_a_correction_needs_no_layer_of_a_certain_name(prices: data.Panel) -> None:
    class Convolution(HarNetwork):
        def __init__(self, assets: int, config: ModelConfig) -> None:
            super().__init__(assets, config)
            self.layer = nn.Conv1d(config.har.features, len(config.har.horizons), 1)

        def correction(self, har_output: HarOutput) -> torch.Tensor:
            sequences = self.to_sequences(har_output.features)
            return self.from_sequences(self.layer(sequences.mT).mT).transpose(-1, -2)

    assert forecast.fit(prices, SHORT, model=Convolution).predict(prices).log_returns.isfinite().all()


def test_a_network_of_quantiles_explains_its_median_itself(prices: data.Panel, fitted: forecast.Forecaster) -> None:
    explained = fitted.location(prices), export.Artifact.from_forecaster(fitted).location(prices)
    assert {x.sentence("WTI", "3m") for x in explained} == {"3 months: forecast by the network"}
    scale = forecast.fit(prices, SHORT, model=windowed(network_examples.ResidualCnn, output="scale"))
    assert scale.location(prices).parts


@pytest.mark.parametrize("network", [network_examples.Mlp, network_examples.SizedCorrection])
def test_settings_of_a_network_are_those_of_its_file(
    prices: data.Panel, network: type[nn.Module], tmp_path: Path
) -> None:
    path = f"network_examples:{network.__name__}"
    fitted = forecast.fit(prices, SHORT, model=partial(network, hidden=6))
    fitted.save(tmp_path / "network.safetensors")
    loaded = forecast.Forecaster.load(tmp_path / "network.safetensors", model=path)
    assert loaded.model.config.settings == {"hidden": 6}
    assert torch.equal(loaded.predict(prices).log_returns, fitted.predict(prices).log_returns)
    text = f'[model]\nname = "{path}"\nsettings = {{ hidden = 6 }}\n[train]\nepochs = 2\n'
    again = forecast.fit(prices, from_toml(text))
    assert again.to_bytes() == fitted.to_bytes()
    assert from_toml(to_toml(from_toml(text))) == from_toml(text)
    assert to_model_config(network).settings == {"hidden": 3 if network is network_examples.Mlp else 4}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"hiden": 6}, ValueError, "among the arguments of network_examples:Mlp, hidden; got hiden"),
        ({"assets": 6}, ValueError, "network_examples:Mlp, hidden; got assets"),
        (
            {"hidden": -1},
            ValueError,
            "network_examples:Mlp must make a network of its settings; got RuntimeError: Trying",
        ),
        ({"hidden": nn.ReLU}, TypeError, "must be numbers, texts, true or false, .*; got hidden=<class"),
    ],
)
def test_other_settings_of_a_network_are_refused(
    prices: data.Panel, settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        forecast.fit(prices, SHORT, model=partial(network_examples.Mlp, **settings))


def test_training_computes_in_the_precision_of_the_config_and_refuses_what_it_ignores(prices: data.Panel) -> None:
    low = replace(SHORT, train=replace(SHORT.train, precision="bf16-mixed"))
    one, other = (forecast.fit(prices, config, model=network_examples.Mlp) for config in (SHORT, low))
    difference = (one.predict(prices).log_returns - other.predict(prices).log_returns).abs().max()
    assert 1e-5 < difference < 0.05
    short = replace(SHORT, train=replace(SHORT.train, window=63))
    with pytest.raises(ValueError, match=r"fit: train.window is of networks that .* lookback=60 rows.*; got window=63"):
        forecast.fit(prices, short, model=network_examples.Mlp)


def test_an_interrupted_training_resumes_to_the_same_bits(prices: data.Panel, tmp_path: Path) -> None:
    def progress(done: int, total: int, description: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    config = replace(SHORT, train=TrainConfig(epochs=3))
    model = windowed(lambda: nn.LSTM(2, 4, 2, dropout=0.5, batch_first=True), lookback=30, inputs="returns")
    settings = {"model": model, "checkpoint": tmp_path / "checkpoint.pt", "checkpoint_seconds": 0.0}
    with pytest.raises(KeyboardInterrupt):
        forecast.fit(prices, config, progress=progress, **settings)
    with pytest.raises(ValueError, match="belongs to other prices, settings"):
        forecast.fit(prices, config, seed=1, **settings)
    epochs: list[int] = []
    resumed = forecast.fit(prices, config, progress=lambda done, *_: epochs.append(done), **settings)
    assert epochs == [3]
    assert resumed.to_bytes() == forecast.fit(prices, config, model=model).to_bytes()
    assert not (tmp_path / "checkpoint.pt").exists()


@pytest.mark.slow
def test_tune_searches_the_settings_of_a_network(prices: data.Panel) -> None:
    result = tune(prices, SHORT, model=partial(network_examples.Mlp, hidden=6), trials=3, years=1)
    assert {"model.lookback", "model.settings.hidden", "train.learning_rate"} < set(result.best.settings)
    assert "train.window" not in result.best.settings
    assert result.trials[0].settings["model.settings.hidden"] == 6
    assert len({trial.settings["model.settings.hidden"] for trial in result.trials}) > 1
    assert all(np.isfinite(trial.change) for trial in result.trials)


def test_a_backtest_of_code_that_may_change_is_not_cached(prices: data.Panel) -> None:
    settings = replace(SHORT, train=TrainConfig(epochs=1), model=to_model_config(network_examples.Mlp))
    one, two = (forecast.cached_backtest(prices, settings, first_year=2016) for _ in range(2))
    assert (one[1], two[1]) == (False, False)
    assert one[0] == two[0]


def test_an_export_checks_again_that_a_network_does_not_look_ahead(
    fitted: forecast.Forecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = copy.deepcopy(fitted.model)
    layer = model.network.forward
    monkeypatch.setattr(model.network, "forward", lambda x: layer(x - x.mean((0, 1))))
    with pytest.raises(ValueError, match=r"export: model network_examples:lstm looks ahead: its forecast from row \d+"):
        export.export(replace(fitted, model=model), tmp_path / "lstm.pt2")


def test_a_module_is_copied_and_one_trained_elsewhere_is_only_calibrated(prices: data.Panel) -> None:
    module = network_examples.Transformer(2, (5, 21, 63, 126), SHORT.model.har.levels, 30)
    before = {name: x.clone() for name, x in module.state_dict().items()}
    fitted = forecast.fit(prices, SHORT, model=module)
    assert all(torch.equal(x, before[name]) for name, x in module.state_dict().items())
    assert not torch.equal(fitted.model.network.output.weight, module.output.weight)
    given = forecast.Forecaster.from_module(module, prices)
    assert torch.equal(given.model.network.output.weight, module.output.weight)
    outcomes = data.targets(prices.values.plain(), given.horizons)[-300:-130]
    with torch.no_grad():
        inputs = [
            given.predict(prices.between(None, day)).log_returns for day in prices.dates[-300:-130:10].astype(str)
        ]
    inside = torch.stack([(x[..., 0] <= y) & (y <= x[..., -1]) for x, y in zip(inputs, outcomes[::10])])
    assert inside.double().mean() > 0.75  # a network that knows nothing is calibrated


def test_names_and_configs_are_other_words_for_the_same_model(prices: data.Panel) -> None:
    by_name = forecast.fit(prices, SHORT, model="har-lstm")
    by_config = forecast.fit(prices, replace(SHORT, model=HarLstmConfig()))
    assert by_name.to_bytes() == by_config.to_bytes()


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("har-lsmt", ValueError, "did you mean 'har-lstm'"),
        ("network_examples:Nothing", ValueError, "no Nothing in network_examples"),
        ("no_such_module:Network", ValueError, "No module named 'no_such_module'"),
        (3, TypeError, "fit: model must be a name, a config, a Module"),
        (lambda hidden: nn.Linear(2, hidden), TypeError, "needs hidden: give it a default"),
        (nn.Conv1d(2, 3, 60), ValueError, r"must return \(B, H, N, Q\) .* for a window of shape \(2, 60, 2\)"),
        (lambda: "network", TypeError, "must return a Module; got str"),
    ],
)
def test_what_is_no_network_is_refused(prices: data.Panel, model: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        forecast.fit(prices, SHORT, model=model)


def test_two_models_are_refused(prices: data.Panel) -> None:
    with pytest.raises(ValueError, match="expected one model; got model='har-tcn' and 'har-lstm' in config"):
        forecast.fit(prices, FitConfig(HarLstmConfig()), model="har-tcn")


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("format", ["pt2", "aoti", "onnx"])
def test_every_kind_of_output_is_exported(prices: data.Panel, tmp_path: Path, name: str, format: str) -> None:
    fitted = forecast.fit(prices, SHORT, model=getattr(network_examples, name))
    path = export.export(fitted, tmp_path / "network", format)
    served = export.Artifact.load(path, trusted=True).predict(prices)
    torch.testing.assert_close(served.log_returns, fitted.predict(prices).log_returns, rtol=0, atol=1e-5)

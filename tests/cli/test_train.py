"""`torchcommodity train` and `tune`, and their settings as TOML: what is written, what is printed, what is refused."""

import string
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from torchcommodity.cli._application import app
from torchcommodity.data import embedded
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, config_from_dict
from torchcommodity.training import FitConfig, TrainConfig, load_config, to_config, to_toml, to_values

NETWORKS = [name for name in MODELS if name != "har-garch"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def told(result: Result) -> str:
    return " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prices") / "prices.csv"
    embedded()["WTI", "SP500"].between("2013-07-01", "2018-12-31").to_pandas().to_csv(path)
    return path


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text("[train]\nepochs = 1\nwindow = 63\nbatch_size = 4\n")
    return path


@pytest.mark.parametrize("name", NETWORKS)
def test_every_model_is_trained_from_the_shell(name: str, prices: Path, short: Path, tmp_path: Path) -> None:
    result = run("train", "--model", name, "--data", prices, "--config", short, "--out", tmp_path / "a", "--seed", 4)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"forecaster.safetensors", "config.toml"}
    assert type(Forecaster.load(tmp_path / "a" / "forecaster.safetensors").model) is MODELS[name].model
    assert "epoch" in result.stdout
    if name == "garch-lstm":
        assert "before" in result.stdout
        assert "halflife" in result.stdout
    written = tmp_path / "a" / "config.toml"
    again = run("train", "--data", prices, "--config", written, "--out", tmp_path / "b", "--seed", 4, "--quiet")
    assert (again.exit_code, again.output) == (0, "")
    for file in ("forecaster.safetensors", "config.toml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_checkpoint_is_refused_in_words_or_left_behind(prices: Path, short: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "checkpoint.pt").write_bytes(b"not one")
    command = ("train", "--model", "har-lstm", "--data", prices, "--config", short, "--out", tmp_path / "a")
    refused = run(*command)
    assert refused.exit_code == 2
    assert "checkpoint.pt is damaged" in told(refused)
    assert run(*command, "--no-resume").exit_code == 0


def test_models_and_settings_are_listed() -> None:
    assert [line.split()[0] for line in run("train", "--list").stdout.splitlines()] == list(MODELS)
    for name in MODELS:
        assert run("train", "--model", name, "--print-config").stdout == to_toml(to_config({"model": {"name": name}}))


def test_tune_writes_settings_that_train_reads(prices: Path, short: Path, tmp_path: Path) -> None:
    command = ("tune", "--model", "har-lstm", "--config", short, "--data", prices, "--years", 1, "--trials", 2)
    result = run(*command, "--through", "2017-12-31", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "2017-01-03 to 2017-12-29" in " ".join(result.stdout.split())
    found = load_config(tmp_path / "config.toml")
    assert found.train.epochs == 1
    assert "address needs the ray executor" in told(run(*command, "--address", "10.0.0.1:6379"))


WRONG: dict[str, tuple[str, str]] = {
    "unknown key": ("[train]\nepoch = 3", "unknown key 'train.epoch'; did you mean 'train.epochs'?"),
    "key of a table": ("epochs = 3", "unknown key 'epochs'; did you mean 'train.epochs'?"),
    "key of a model": ("[model]\nhiden = 4", "unknown key 'model.hiden'; did you mean 'model.hidden'?"),
    "nested key": ("[model.har]\nhorizon = [5]", "unknown key 'model.har.horizon'; did you mean 'model.har.horizons'?"),
    "wrong type": ('[train]\nepochs = "many"', "train.epochs must be an integer; got 'many'"),
    "no whole number": ("[train]\nepochs = 2.5", "train.epochs must be an integer; got 2.5"),
    "no choice": ('[train]\ndevice = "tpu"', 'train.device must be "auto" or "cpu" or "cuda" or "mps"; got \'tpu\''),
    "wrong entry": ('[model.har]\nhorizons = [5, "x"]', "a list, each entry an integer; got [5, 'x']"),
    "no table": ("train = 3", "train must be a table; got 3"),
    "out of range": ("[train]\nvalidation_fraction = 1.5", "validation_fraction must be in (0, 1); got 1.5"),
    "no TOML": ("[train", "must be TOML"),
    "another model": ('[model]\nname = "har-lltm"', "model.name must match --model har-lstm; got har-lltm"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_settings_are_refused_in_words(kind: str, tmp_path: Path) -> None:
    text, message = WRONG[kind]
    path = tmp_path / "config.toml"
    path.write_text(text)
    result = run("train", "--model", "har-lstm", "--config", path, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert message in told(result)
    assert not (tmp_path / "out").exists()


def test_the_extra_that_is_missing_is_named(prices: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torchcommodity.forecast.tune", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    found = run("tune", "--model", "har-lstm", "--data", prices)
    assert found.exit_code == 2
    assert "pip install 'torchcommodity[tune]'" in told(found)
    assert "[forecast]" not in told(found)


def test_a_model_must_be_named() -> None:
    assert "--model: expected one of har-garch, har-lstm" in told(run("train"))
    assert "unknown model 'har-lsm'; did you mean 'har-lstm'?" in told(run("train", "--model", "har-lsm"))


@given(
    st.sampled_from(list(MODELS)),
    st.floats(1e-8, 1e3),
    st.integers(0, 10**6),
    st.sampled_from(["auto", "cpu", "cuda", "mps"]),
)
def test_settings_go_to_toml_and_back(name: str, rate: float, epochs: int, device: Any) -> None:
    config = replace(
        to_config({"model": {"name": name}}), train=TrainConfig(learning_rate=rate, epochs=epochs, device=device)
    )
    values = to_values(config)
    assert to_config(values) == config
    assert load_text(to_toml(config)) == config


def load_text(text: str) -> FitConfig:
    from torchcommodity.training._toml import tomllib

    return to_config(tomllib.loads(text))


@given(st.text(string.ascii_lowercase, min_size=1))
def test_every_unknown_key_is_refused_with_a_known_one(key: str) -> None:
    known = TrainConfig.__dataclass_fields__
    if key in known:
        return
    with pytest.raises(ValueError, match=r"unknown key .*; did you mean ") as error:
        config_from_dict(TrainConfig, {key: 1})
    assert str(error.value).split("'")[3] in known

"""Settings as TOML: round trips, and errors that name the key and suggest another."""

import math
import re
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.models import MODELS, HarConfig, HarGarchConfig, config_from_dict
from torchcommodity.training import FitConfig, TrainConfig, from_toml, load_config, to_config, to_toml, to_values

INVALID: dict[str, tuple[str, str]] = {
    "unknown key": ("[train]\nepoch = 3", "unknown key 'train.epoch'; did you mean 'train.epochs'?"),
    "key of a table": ("epochs = 3", "unknown key 'epochs'; did you mean 'train.epochs'?"),
    "key of a model": ("[model]\nhiden = 4", "unknown key 'model.hiden'; did you mean 'model.hidden'?"),
    "nested key": ("[model.har]\nhorizon = [5]", "unknown key 'model.har.horizon'; did you mean 'model.har.horizons'?"),
    "wrong type": ('[train]\nepochs = "many"', "train.epochs must be an integer; got 'many'"),
    "no whole number": ("[train]\nepochs = 2.5", "train.epochs must be an integer; got 2.5"),
    "no device": (
        '[train]\ndevice = "tpu"',
        "device must be auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got 'tpu'",
    ),
    "wrong entry": ('[model.har]\nhorizons = [5, "x"]', "a list, each entry an integer; got [5, 'x']"),
    "no table": ("train = 3", "train must be a table; got 3"),
    "model no table": ("model = 3", "model must be a table; got 3"),
    "model name": ("[model]\nname = 3", "model.name must be a string; got 3"),
    "out of range": ("[train]\nvalidation_fraction = 1.5", "validation_fraction must be in (0, 1); got 1.5"),
    "no TOML": ("[train", "must be TOML"),
    "another model": ('[model]\nname = "har-lltm"', "model.name must match --model har-lstm; got har-lltm"),
}


@pytest.mark.parametrize("kind", INVALID)
def test_load_config_rejects_invalid_settings(kind: str, tmp_path: Path) -> None:
    text, message = INVALID[kind]
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        load_config(path, "har-lstm")


@given(
    st.sampled_from(list(MODELS)),
    st.floats(1e-8, 1e3),
    st.integers(0, 10**6),
    st.sampled_from(["auto", "cpu", "cuda", "mps"]),
)
def test_to_toml_and_from_toml_are_inverse(name: str, rate: float, epochs: int, device: Any) -> None:
    config = replace(
        to_config({"model": {"name": name}}), train=TrainConfig(learning_rate=rate, epochs=epochs, device=device)
    )
    values = to_values(config)
    assert to_config(values) == config
    assert from_toml(to_toml(config)) == config


@given(st.text(string.ascii_lowercase, min_size=1))
def test_config_from_dict_suggests_a_known_key(key: str) -> None:
    known = TrainConfig.__dataclass_fields__
    if key in known:
        return
    with pytest.raises(ValueError, match=r"unknown key .*; did you mean ") as error:
        config_from_dict(TrainConfig, {key: 1})
    assert str(error.value).split("'")[3] in known


def test_infinite_settings_survive_a_round_trip() -> None:
    config = FitConfig(HarGarchConfig(HarConfig(shape_prior=math.inf)))
    assert "inf" in to_toml(config)
    assert from_toml(to_toml(config)) == config

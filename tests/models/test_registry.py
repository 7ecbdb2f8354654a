"""Registry of the forecasters, and configs from plain values."""

from dataclasses import asdict
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.models import (
    MODELS,
    HarConfig,
    HarGarch,
    HarGarchConfig,
    HarLstmConfig,
    build_model,
    config_from_dict,
    model_config,
    model_entry,
    model_name,
)


@pytest.mark.parametrize("name", MODELS)
def test_model_config_round_trips_through_plain_values(name: str) -> None:
    config = MODELS[name].config()
    assert model_name(config) == name
    assert model_config(name, asdict(config)) == config


def test_model_entry_suggests_a_name() -> None:
    assert model_entry("har-garch").model is HarGarch
    with pytest.raises(ValueError, match=r"^unknown model 'har-lsmt'; did you mean 'har-lstm'\?$"):
        model_entry("har-lsmt")
    with pytest.raises(ValueError, match=r"^unknown model 'prophet'; expected one of har-garch, har-lstm"):
        model_entry("prophet")


def test_model_name_rejects_other_configs() -> None:
    with pytest.raises(ValueError, match=r"model_name: expected the config of one of har-garch.*; got HarConfig"):
        model_name(HarConfig())  # type: ignore[arg-type]


def test_build_model_depends_on_its_seed_only() -> None:
    before = torch.get_rng_state()
    weights = [build_model(HarLstmConfig(), 2, seed).lstm.weight_ih_l0 for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_config_from_dict_reads_nested_tables() -> None:
    config = config_from_dict(HarLstmConfig, {"hidden": 4, "har": {"trends": [5, 63], "cap": 1}})
    assert (config.har.trends, config.har.cap, config.har.levels) == ((5, 63), 1.0, HarConfig().levels)
    assert isinstance(config.har.cap, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"har": 3}, "har must be a table; got 3"),
        ({"har": {"trends": [5, "x"]}}, r"har.trends must be a list, each entry an integer; got \[5, 'x'\]"),
        ({"har": {"caps": 1.0}}, r"unknown key 'har.caps'; did you mean 'har.cap'\?"),
        ({"hidden": 2.5}, "hidden must be an integer; got 2.5"),
        ({"hidden": True}, "hidden must be an integer; got True"),
    ],
)
def test_config_from_dict_rejects(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^config: {message}$"):
        config_from_dict(HarLstmConfig, values)


@given(st.text(min_size=1))
def test_config_from_dict_suggests_a_known_key(key: str) -> None:
    if key == "har" or key in HarConfig.__dataclass_fields__:
        return
    with pytest.raises(ValueError, match=r"unknown key .*; did you mean '") as error:
        config_from_dict(HarConfig, {key: 1})
    assert str(error.value).split("'")[-2] in HarConfig.__dataclass_fields__


def test_config_from_dict_needs_no_values() -> None:
    assert config_from_dict(HarGarchConfig, {}) == HarGarchConfig()


def test_build_model_from_a_name_says_how_to_get_its_config() -> None:
    with pytest.raises(TypeError, match=r"build_model: config must be .*'har-lstm'; see default_config\('har-lstm'\)"):
        build_model("har-lstm", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("assets", "error"), [("2", TypeError), (0, ValueError)])
def test_build_model_rejects_assets(assets: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^build_model: assets must be .*; got assets={assets!r}$"):
        build_model(HarGarchConfig(), assets)

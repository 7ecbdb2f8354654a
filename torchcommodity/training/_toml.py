"""Read and write the settings of a fit as TOML."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torchcommodity._choices import DEFAULT_MODEL
from torchcommodity.models import Frequency, ModelConfig, config_from_dict, model_name, to_model_config
from torchcommodity.training._config import FitConfig, TrainConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load_config(path: str | Path, model: str | None = None, frequency: Frequency = "daily") -> FitConfig:
    """Read settings from a TOML file; missing keys keep their defaults.

    Args:
        path: the file.
        model: name of a registered model; by default the one in the file.
        frequency: of the prices, unless the file has `model.har.frequency`; the defaults depend on it.

    Raises:
        ValueError: invalid TOML, an unknown key (the message suggests the nearest one), a value of the wrong type, or a
            model in the file other than `model`.
    """
    try:
        return from_toml(Path(path).read_text("utf-8"), model, frequency)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"config: {path} must be TOML; {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Values of TOML text.

    Raises:
        tomllib.TOMLDecodeError: other text.
        RecursionError: lists in lists without an end.

    >>> parse_toml("epochs = 3")
    {'epochs': 3}
    """
    values: dict[str, Any] = tomllib.loads(text)
    return values


def from_toml(text: str, model: str | ModelConfig | None = None, frequency: Frequency = "daily") -> FitConfig:
    """Parse settings from TOML, the inverse of `to_toml`; missing keys keep their defaults.

    >>> from_toml(to_toml(FitConfig())) == FitConfig()
    True
    """
    return to_config(parse_toml(text), model, frequency)


def to_config(
    values: dict[str, Any], model: str | ModelConfig | None = None, frequency: Frequency = "daily"
) -> FitConfig:
    """Build settings from nested dicts of plain values, as parsed from TOML or JSON; see `load_config`.

    With the config of the model in place of its name nothing is imported.

    >>> to_config({"train": {"epochs": 3}, "model": {"name": "har-lstm", "hidden": 4}}).model.hidden
    4
    >>> to_config({"train": {"epoch": 3}})
    Traceback (most recent call last):
    ValueError: config: unknown key 'train.epoch'; did you mean 'train.epochs'?
    """
    table = values.get("model", {})
    if not isinstance(table, dict):
        raise ValueError(f"config: model must be a table; got {table!r}")
    own = model if isinstance(model, ModelConfig) else None
    model = own.name if own is not None else model
    name = table.get("name", model or DEFAULT_MODEL)
    if not isinstance(name, str):
        raise ValueError(f"config: model.name must be a string; got {name!r}")
    if model not in (None, name):
        raise ValueError(f"config: model.name must match --model {model}; got {name}")
    settings = {key: value for key, value in table.items() if key != "name"}
    tables = {"model": type(own or to_model_config(name, frequency))}
    config_from_dict(FitConfig, {**values, "model": settings}, tables)  # raises for what is wrong with the values
    rows = settings.get("har", {}).get("frequency", frequency)
    model_config = own or to_model_config(name, rows)
    defaults = to_values(FitConfig(model_config, TrainConfig.for_frequency(rows)))
    del defaults["model"]["name"]
    merged = _merge(defaults, {**values, "model": settings})
    config = config_from_dict(FitConfig, merged, tables)
    return replace(config, model=model_config.from_dict(merged["model"]))


def _merge(defaults: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The defaults, overridden by nested values."""
    merged = {**defaults, **values}
    nested = [key for key in values if isinstance(values[key], dict) and isinstance(defaults.get(key), dict)]
    return merged | {key: _merge(defaults[key], values[key]) for key in nested}


def to_values(config: FitConfig) -> dict[str, Any]:
    """Convert settings to nested dicts of plain values, the inverse of `to_config`."""
    model = {"name": model_name(config.model), **config.model.to_dict()}
    return {"model": model, "train": asdict(config.train), "symmetry": config.symmetry}


def to_toml(config: FitConfig) -> str:
    """Write all settings as TOML, the inverse of `from_toml`."""
    return "\n".join(_lines(to_values(config))) + "\n"


def _lines(table: dict[str, Any], name: str = "") -> Iterator[str]:
    for key, value in table.items():
        if value is not None and not isinstance(value, dict):
            yield f"{key} = {'inf' if value == math.inf else json.dumps(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            path = f"{name}.{key}" if name else key
            yield from ("", f"[{path}]")
            yield from _lines(value, path)

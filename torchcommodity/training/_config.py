"""The settings of a fit as TOML, there and back."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchcommodity.models import config_from_dict, model_entry, model_name
from torchcommodity.training._fit_config import FitConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT = model_name(FitConfig().model)


def load_config(path: str | Path, model: str | None = None) -> FitConfig:
    """The settings in a TOML file; what it leaves out keeps its default.

    Args:
        path: of the file.
        model: the name of a registered model; None takes that of the file.

    Raises:
        ValueError: not TOML, a key that is unknown (the nearest known one is named), a value of the wrong type, another
            model in the file than the one asked for.
    """
    try:
        values = tomllib.loads(Path(path).read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"config: {path} must be TOML; {error}") from None
    return to_config(values, model)


def to_config(values: dict[str, Any], model: str | None = None) -> FitConfig:
    """The settings from tables of plain values, as TOML and JSON hold them.

    >>> to_config({"train": {"epochs": 3}, "model": {"name": "har-lstm", "hidden": 4}}).model.hidden
    4
    >>> to_config({"train": {"epoch": 3}})
    Traceback (most recent call last):
    ValueError: config: unknown key 'train.epoch'; did you mean 'train.epochs'?
    """
    table = values.get("model", {})
    if not isinstance(table, dict):
        raise ValueError(f"config: model must be a table; got {table!r}")
    named = table.get("name", model or DEFAULT)
    if not isinstance(named, str):
        raise ValueError(f"config: model.name must be a text; got {named!r}")
    if model not in (None, named):
        raise ValueError(f"config: the settings are those of {named}; got --model {model}")
    rest = {key: value for key, value in table.items() if key != "name"}
    return config_from_dict(FitConfig, {**values, "model": rest}, {"model": model_entry(named).config})


def to_values(config: FitConfig) -> dict[str, Any]:
    """The settings as tables of plain values, for `to_config`."""
    values: dict[str, Any] = asdict(config)
    values["model"] = {"name": model_name(config.model), **values["model"]}
    return values


def to_toml(config: FitConfig) -> str:
    """Every setting as TOML, for `load_config`.

    >>> to_config(tomllib.loads(to_toml(FitConfig()))) == FitConfig()
    True
    """
    return "\n".join(_lines(to_values(config))) + "\n"


def _lines(table: dict[str, Any], name: str = "") -> Iterator[str]:
    for key, value in table.items():
        if value is not None and not isinstance(value, dict):
            yield f"{key} = {json.dumps(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            inner = f"{name}.{key}" if name else key
            yield from ("", f"[{inner}]")
            yield from _lines(value, inner)

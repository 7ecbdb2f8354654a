"""Build frozen dataclasses from the plain values of TOML and JSON, with checks of every key and type."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from torchcommodity.models._field_types import NO_TABLES, describe, field_types, has_type

T = TypeVar("T")


def config_from_dict(cls: type[T], values: Mapping[str, Any], tables: Mapping[str, type[Any]] = NO_TABLES) -> T:
    """Build a dataclass from nested dictionaries; lists become tuples, integers are accepted as floats.

    Args:
        cls: the dataclass; a field whose type is a dataclass is a nested dictionary (a TOML table).
        values: values by field name; a missing field keeps its default.
        tables: dataclass of each field whose annotation is a protocol.

    Returns:
        An instance of `cls`.

    Raises:
        ValueError: an unknown key (the closest known one is suggested), or a value of the wrong type.

    Example:
        >>> from torchcommodity.models import HarLstmConfig
        >>> config_from_dict(HarLstmConfig, {"hidden": 4, "har": {"trends": [5, 63]}}).har.trends
        (5, 63)
        >>> config_from_dict(HarLstmConfig, {"hiden": 4})
        Traceback (most recent call last):
        ValueError: config: unknown key 'hiden'; did you mean 'hidden'?
    """
    types = dict(_leaf_types(cls, tables))
    for key, value in _flatten(values, types):
        if key not in types:
            closest = get_close_matches(key, types, n=1, cutoff=0.0)[0]
            raise ValueError(f"config: unknown key {key!r}; did you mean {closest!r}?")
        if not has_type(value, types[key]):
            raise ValueError(f"config: {key} must be {describe(types[key])}; got {value!r}")
    return _build(cls, values, tables)


def _leaf_types(cls: type[Any], tables: Mapping[str, type[Any]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, annotation in field_types(cls, tables).items():
        if is_dataclass(annotation):
            yield from _leaf_types(annotation, NO_TABLES, f"{prefix}{name}.")  # type: ignore[arg-type]
        else:
            yield prefix + name, annotation


def _flatten(values: Mapping[str, Any], types: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        key = prefix + name
        is_table = any(leaf.startswith(f"{key}.") for leaf in types)
        if is_table and not isinstance(value, Mapping):
            raise ValueError(f"config: {key} must be a table; got {value!r}")
        if isinstance(value, Mapping) and (is_table or key not in types):
            yield from _flatten(value, types, f"{key}.") if value or is_table else [(key, value)]
        else:
            yield key, value


def _build(cls: type[T], values: Mapping[str, Any], tables: Mapping[str, type[Any]]) -> T:
    types = field_types(cls, tables)
    return cls(**{name: _convert(types[name], value) for name, value in values.items()})


def _convert(annotation: Any, value: Any) -> Any:
    if is_dataclass(annotation):
        return _build(annotation, value, NO_TABLES)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return tuple(_convert(get_args(annotation)[0], item) for item in value)
    return float(value) if annotation is float else value

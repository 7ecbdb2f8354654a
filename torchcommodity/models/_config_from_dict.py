"""Build frozen dataclasses from the plain values of TOML and JSON, with checks of every key and type."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

NO_TABLES: Mapping[str, type[Any]] = MappingProxyType({})


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
        if not _has_type(value, types[key]):
            raise ValueError(f"config: {key} must be {_describe(types[key])}; got {value!r}")
    return _build(cls, values, tables)


def _field_types(cls: type[Any], tables: Mapping[str, type[Any]] = NO_TABLES) -> dict[str, Any]:
    annotations = get_type_hints(cls)
    return {field.name: tables.get(field.name, annotations[field.name]) for field in fields(cls)}


def _leaf_types(cls: type[Any], tables: Mapping[str, type[Any]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, annotation in _field_types(cls, tables).items():
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
    types = _field_types(cls, tables)
    return cls(**{name: _convert(types[name], value) for name, value in values.items()})


def _convert(annotation: Any, value: Any) -> Any:
    if is_dataclass(annotation):
        return _build(annotation, value, NO_TABLES)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return tuple(_convert(get_args(annotation)[0], item) for item in value)
    return float(value) if annotation is float else value


def _has_type(value: Any, annotation: Any) -> bool:
    if get_origin(annotation) in (Union, UnionType):
        return any(_has_type(value, option) for option in get_args(annotation))
    if get_origin(annotation) is Literal:
        return value in get_args(annotation) and isinstance(value, str)
    if get_origin(annotation) is tuple:
        return isinstance(value, list | tuple) and all(_has_type(item, get_args(annotation)[0]) for item in value)
    if annotation in (int, float):
        return isinstance(value, (int, annotation)) and not isinstance(value, bool)
    return isinstance(value, annotation)


def _describe(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_describe(option) for option in get_args(annotation))
    if get_origin(annotation) is Literal:
        return " or ".join(f'"{option}"' for option in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"a list, each entry {_describe(get_args(annotation)[0])}"
    words = {int: "an integer", float: "a number", str: "a string", bool: "true or false", type(None): "absent"}
    return words.get(annotation, str(annotation))

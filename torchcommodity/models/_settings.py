"""Frozen dataclasses from plain values, as TOML and JSON hold them: every key and every type is checked, in words."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

NO_TABLES: Mapping[str, type[Any]] = MappingProxyType({})


def read(kind: type[T], values: Mapping[str, Any], tables: Mapping[str, type[Any]] = NO_TABLES) -> T:
    """A dataclass from nested tables of plain values; a list is a tuple, a whole number may stand for a float.

    Args:
        kind: the dataclass; fields that are dataclasses are tables.
        values: by field name; what is absent keeps its default.
        tables: the class of a field whose annotation is a protocol.

    Raises:
        ValueError: a key is unknown (the nearest known one is named), or a value is not of its field's type.

    >>> from torchcommodity.models import HarLstmConfig
    >>> read(HarLstmConfig, {"hidden": 4, "har": {"trends": [5, 63]}}).har.trends
    (5, 63)
    >>> read(HarLstmConfig, {"hiden": 4})
    Traceback (most recent call last):
    ValueError: config: there is no key hiden; the nearest is hidden
    """
    kinds = dict(_leaves(kind, tables))
    for key, value in _flat(values, kinds):
        if key not in kinds:
            nearest = get_close_matches(key, kinds, n=1, cutoff=0.0)[0]
            raise ValueError(f"config: there is no key {key}; the nearest is {nearest}")
        if not _fits(value, kinds[key]):
            raise ValueError(f"config: {key} must be {_words(kinds[key])}; got {value!r}")
    return _made(kind, values, tables)


def hints(kind: type[Any], tables: Mapping[str, type[Any]] = NO_TABLES) -> dict[str, Any]:
    """The class of every field of a dataclass."""
    found = get_type_hints(kind)
    return {field.name: tables.get(field.name, found[field.name]) for field in fields(kind)}


def _leaves(kind: type[Any], tables: Mapping[str, type[Any]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, hint in hints(kind, tables).items():
        if is_dataclass(hint):
            yield from _leaves(hint, NO_TABLES, f"{prefix}{name}.")  # type: ignore[arg-type]
        else:
            yield prefix + name, hint


def _flat(values: Mapping[str, Any], kinds: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        key = prefix + name
        table = any(known.startswith(f"{key}.") for known in kinds)
        if table and not isinstance(value, Mapping):
            raise ValueError(f"config: {key} must be a table; got {value!r}")
        if isinstance(value, Mapping) and (table or key not in kinds):
            yield from _flat(value, kinds, f"{key}.") if value or table else [(key, value)]
        else:
            yield key, value


def _made(kind: type[T], values: Mapping[str, Any], tables: Mapping[str, type[Any]]) -> T:
    classes = hints(kind, tables)
    return kind(**{name: _value(classes[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if is_dataclass(hint):
        return _made(hint, value, NO_TABLES)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return tuple(_value(get_args(hint)[0], item) for item in value)
    return float(value) if hint is float else value


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint) and isinstance(value, str)
    if get_origin(hint) is tuple:
        return isinstance(value, list | tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(f'"{option}"' for option in get_args(hint))
    if get_origin(hint) is tuple:
        return f"a list, each entry {_words(get_args(hint)[0])}"
    plain = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "absent"}
    return plain.get(hint, str(hint))

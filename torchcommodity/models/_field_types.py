"""The types that the fields of a config are annotated with, checked where a config is built."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from types import MappingProxyType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

NO_TABLES: Mapping[str, type[Any]] = MappingProxyType({})


def check_fields(config: Any, positive: tuple[str, ...] = ()) -> None:
    """Check that every field has the type of its annotation, and that the numbers in the named ones are above zero.

    Raises:
        TypeError: a field has another type.
        ValueError: a field is none of its choices, or not positive.

    Example:
        >>> from torchcommodity.models import HarConfig
        >>> HarConfig(horizons=21)
        Traceback (most recent call last):
        TypeError: HarConfig: horizons must be a list, each entry an integer; got 21
    """
    name_of_config = type(config).__name__
    for name, annotation in field_types(type(config)).items():
        value = getattr(config, name)
        if not has_type(value, annotation):
            error = ValueError if get_origin(annotation) is Literal else TypeError
            raise error(f"{name_of_config}: {name} must be {describe(annotation)}; got {value!r}")
    for name in positive:
        value = getattr(config, name)
        if not all(number > 0 for number in (value if isinstance(value, list | tuple) else (value,))):
            raise ValueError(f"{name_of_config}: {name} must be positive; got {value}")


def field_types(cls: type[Any], tables: Mapping[str, type[Any]] = NO_TABLES) -> dict[str, Any]:
    """Annotation of every field; `tables` has the dataclass of each field whose annotation is a protocol."""
    annotations = get_type_hints(cls)
    return {field.name: tables.get(field.name, annotations[field.name]) for field in fields(cls)}


def has_type(value: Any, annotation: Any) -> bool:
    """Whether a field may hold the value: an integer is a number, too; a bool is neither."""
    if get_origin(annotation) in (Union, UnionType):
        return any(has_type(value, option) for option in get_args(annotation))
    if get_origin(annotation) is Literal:
        return isinstance(value, str) and value in get_args(annotation)
    if get_origin(annotation) is tuple:
        return isinstance(value, list | tuple) and all(has_type(item, get_args(annotation)[0]) for item in value)
    if annotation in (int, float):
        return isinstance(value, Integral if annotation is int else Real) and not isinstance(value, bool)
    return isinstance(value, annotation)


def describe(annotation: Any) -> str:
    """An annotation in words."""
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(describe(option) for option in get_args(annotation))
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(get_args(annotation))}"
    if get_origin(annotation) is tuple:
        return f"a list, each entry {describe(get_args(annotation)[0])}"
    words = {int: "an integer", float: "a number", str: "a string", bool: "true or false", type(None): "absent"}
    return words.get(annotation) or f"of type {annotation.__name__}"

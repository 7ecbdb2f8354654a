"""Fields of a config: types and ranges from their annotations, checked where it is built, in Python or from TOML."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Tables = Mapping[str, type[object]]
NO_TABLES: Tables = MappingProxyType({})


@dataclass(frozen=True)
class Bounds:
    """Range of a field, in its annotation: `hidden: Annotated[int, Bounds(gt=0)]`; of a tuple, that of each entry."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def __contains__(self, value: Any) -> bool:
        return all(
            (self.gt is None or number > self.gt)
            and (self.ge is None or number >= self.ge)
            and (self.lt is None or number < self.lt)
            and (self.le is None or number <= self.le)
            for number in (value if isinstance(value, list | tuple) else (value,))
        )

    def __str__(self) -> str:
        lower = f"({self.gt}" if self.ge is None else f"[{self.ge}"
        upper = f"{self.lt})" if self.le is None else f"{self.le}]"
        if self.lt is None and self.le is None:
            return "positive" if self.gt == 0 else f"at least {self.ge}"
        return f"in {lower}, {upper}"


class Increasing:
    """Range of a tuple: one or more positive numbers, each above the one before."""

    def __contains__(self, values: Any) -> bool:
        return bool(values) and all(a < b for a, b in zip((0, *values), values))  # not so for NaN

    def __str__(self) -> str:
        return "positive and strictly increasing"


PositiveInt = Annotated[int, Bounds(gt=0)]
PositiveFloat = Annotated[float, Bounds(gt=0)]
PositiveInts = Annotated[tuple[int, ...], Bounds(gt=0)]
NonNegativeFloat = Annotated[float, Bounds(ge=0)]
PositiveFloats = Annotated[tuple[float, ...], Bounds(gt=0)]
IncreasingInts = Annotated[tuple[int, ...], Increasing()]


def check_fields(config: object) -> None:
    """Check every field against its annotation: the type, and ranges such as `Bounds`.

    A range is any object in `Annotated` with `__contains__`, and with `__str__` for the message.

    Raises:
        TypeError: a field has another type.
        ValueError: a field is none of its choices, or out of its range.

    Example:
        >>> from torchcommodity.models import HarConfig
        >>> HarConfig(horizons=21)
        Traceback (most recent call last):
        TypeError: HarConfig: horizons must be a tuple, each entry an integer; got 21
    """
    cls: Any = type(config)
    for name, annotation in _annotations(cls).items():
        value, (kind, *ranges) = getattr(config, name), _split(annotation)
        if not has_type(value, kind):
            error = ValueError if get_origin(kind) is Literal else TypeError
            raise error(f"{cls.__name__}: {name} must be {describe(kind, 'a tuple')}; got {value!r}")
        for allowed in ranges:
            if value not in allowed:
                raise ValueError(f"{cls.__name__}: {name} must be {allowed}; got {value!r}")


@cache
def _annotations(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}


def _split(annotation: Any) -> tuple[Any, ...]:
    """Type and ranges of an annotation."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)


def config_from_dict(cls: type[T], values: Mapping[str, object], tables: Tables = NO_TABLES) -> T:
    """Build a dataclass from nested dictionaries; lists become tuples, integers are accepted as floats.

    Args:
        cls: the dataclass; a field whose type is a dataclass is a nested dictionary (a TOML table).
        values: values by field name; a missing field keeps its default.
        tables: dataclass of each field whose annotation is only a base class of it.

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
            raise ValueError(f"config: {key} must be {describe(types[key], 'a list')}; got {value!r}")
    return _build(cls, values, tables)


def _field_types(cls: Any, tables: Tables) -> dict[str, Any]:
    return {name: tables.get(name, _split(annotation)[0]) for name, annotation in _annotations(cls).items()}


def _leaf_types(cls: Any, tables: Tables, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, kind in _field_types(cls, tables).items():
        if is_dataclass(kind):
            yield from _leaf_types(kind, NO_TABLES, f"{prefix}{name}.")
        else:
            yield prefix + name, kind


def _flatten(values: Mapping[str, object], types: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        key = prefix + name
        is_table = any(leaf.startswith(f"{key}.") for leaf in types)
        if is_table and not isinstance(value, Mapping):
            raise ValueError(f"config: {key} must be a table; got {value!r}")
        if isinstance(value, Mapping) and (is_table or key not in types):
            yield from _flatten(value, types, f"{key}.") if value or is_table else [(key, value)]
        else:
            yield key, value


def _build(cls: type[T], values: Mapping[str, object], tables: Tables) -> T:
    types = _field_types(cls, tables)
    return cls(**{name: _convert(types[name], value) for name, value in values.items()})


def _convert(kind: Any, value: Any) -> object:
    if is_dataclass(kind):
        return _build(kind, value, NO_TABLES)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        return tuple(_convert(get_args(kind)[0], item) for item in value)
    return float(value) if kind is float else value


def has_type(value: object, kind: Any) -> bool:
    """Whether a field may hold the value: an integer is a number, too; a bool is neither."""
    if kind is Any:
        return True
    if get_origin(kind) in (Union, UnionType):
        return any(has_type(value, option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple) and all(has_type(item, get_args(kind)[0]) for item in value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def describe(kind: Any, sequence: str) -> str:
    """A type in words; `sequence` is the word for a tuple."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(describe(option, sequence) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        return f"{sequence}, each entry {describe(get_args(kind)[0], sequence)}"
    words = {int: "an integer", float: "a number", str: "a string", bool: "true or false", type(None): "absent"}
    return words.get(kind) or f"of type {kind.__name__}"

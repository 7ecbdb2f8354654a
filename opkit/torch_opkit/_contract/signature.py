"""The parameters of a callable, from its schema or its Python signature, and how a call is made of a sample."""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from torch_opkit._cases import Sample

Kind = Literal["tensor", "tensors", "int", "float", "bool", "other", "unknown"]
SCALARS: dict[Any, Kind] = {bool: "bool", int: "int", float: "float"}
SCHEMA_KINDS: dict[str, Kind] = {
    "Tensor": "tensor", "List[Tensor]": "tensors", "int": "int", "SymInt": "int", "float": "float", "number": "float",
    "bool": "bool",
}  # fmt: skip
REQUIRED = inspect.Parameter.empty
UNNAMED = 16  # arguments that a callable without a signature may take


@dataclass(frozen=True)
class Parameter:
    """One parameter of a callable. `optional`: it may be None; `default` is `REQUIRED` if there is none."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    optional: bool = False
    keyword_only: bool = False
    variadic: bool = False
    unnamed: bool = False  # of a callable without a signature

    @property
    def required(self) -> bool:
        return self.default is REQUIRED and not self.variadic

    @property
    def is_setting(self) -> bool:
        """Whether it has a default that is not a Tensor: a number, a word."""
        return self.kind not in ("tensor", "tensors") and self.default is not REQUIRED and self.default is not None


@dataclass(frozen=True)
class TensorList:
    """Stands for a list argument in the settings of a sample; its tensors are among the sample's tensors."""

    length: int

    def __repr__(self) -> str:
        return f"[{self.length} tensors]"


def schema_parameters(schema: torch.FunctionSchema) -> tuple[Parameter, ...]:
    parameters = []
    for argument in schema.arguments:
        text = str(argument.type)
        optional = text.startswith("Optional[")
        kind = SCHEMA_KINDS.get(text.removeprefix("Optional[").removesuffix("]") if optional else text, "other")
        default = argument.default_value if argument.has_default_value() else REQUIRED
        parameters.append(Parameter(argument.name, kind, default, optional, argument.kwarg_only))
    return tuple(parameters)


def signature_parameters(function: Callable[..., Any], skip: int = 0) -> tuple[Parameter, ...]:
    """Parameters of a Python function without its first `skip`; of a builtin without a signature, unnamed ones."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return tuple(Parameter(f"argument_{i}", "unknown", None, unnamed=True) for i in range(UNNAMED))
    try:
        hints = typing.get_type_hints(getattr(function, "__func__", function))
    except Exception:  # an annotation of a name that is not importable
        hints = {}
    parameters = []
    for p in list(signature.parameters.values())[skip:]:
        if p.kind != p.VAR_KEYWORD:
            kind, optional = _annotation_kind(hints.get(p.name, p.annotation))
            if kind == "unknown" and type(p.default) in SCALARS:
                kind = SCALARS[type(p.default)]
            forms = p.kind == p.KEYWORD_ONLY, p.kind == p.VAR_POSITIONAL
            parameters.append(Parameter(p.name, kind, p.default, optional, *forms))
    return tuple(parameters)


def _annotation_kind(annotation: object) -> tuple[Kind, bool]:
    if annotation is REQUIRED or isinstance(annotation, str):
        return "unknown", False
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        kinds = [_annotation_kind(member)[0] for member in members if member is not type(None)]
        return (kinds[0] if len(set(kinds)) == 1 else "other"), type(None) in members
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return "tensor", False
    if isinstance(origin, type) and issubclass(origin, Sequence) and members[:1] == (Tensor,):
        return "tensors", False
    return SCALARS.get(annotation, "other"), False


def make_sample(parameters: Sequence[Parameter], args: Sequence[Any], kwargs: dict[str, Any]) -> Sample:
    """The sample of a call: its tensors, and everything else by name, defaults too."""
    tensors: list[Tensor | None] = []
    settings = {p.name: p.default for p in parameters if p.is_setting}
    settings |= dict(kwargs)
    for name, value in _named(parameters, args, kwargs):
        if isinstance(value, Tensor) or value is None:
            settings.pop(name, None)
            tensors.append(value)
        elif isinstance(value, (list, tuple)) and value and all(isinstance(x, Tensor) for x in value):
            tensors += value
            settings[name] = TensorList(len(value))
        else:
            settings[name] = value
    return Sample(*tensors, **settings)


def _named(parameters: Sequence[Parameter], args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and value of each argument that is a tensor or positional, in the order of the parameters."""
    only_tensors = all(isinstance(x, Tensor) or x is None for x in args)
    remaining = iter(args)
    for p in parameters:
        if p.variadic:
            yield from ((p.name, value) for value in remaining)
        elif p.name in kwargs:
            yield p.name, kwargs[p.name]
        elif not (only_tensors and p.is_setting):
            try:
                yield p.name, next(remaining)
            except StopIteration:
                continue
    if left := len(list(remaining)):
        names = ", ".join(p.name for p in parameters)
        raise ValueError(f"check: samples must fit the operator's parameters ({names}); got {left} arguments too many")


def arrange(parameters: Sequence[Parameter], sample: Sample) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of the call that a sample stands for."""
    remaining, settings = iter(sample.tensors), dict(sample.settings)
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    by_name = False  # once a parameter is left out, the following ones are passed by name
    for p in parameters:
        if p.variadic:
            args += remaining
            continue
        if p.name in settings:
            value = settings.pop(p.name)
            value = [next(remaining) for _ in range(value.length)] if isinstance(value, TensorList) else value
        else:
            value = next(remaining, p.default)
        if value is REQUIRED or (p.keyword_only and value is p.default):
            by_name = True
        elif p.keyword_only or by_name:
            keywords[p.name] = value
        else:
            args.append(value)
    while args and len(args) <= len(parameters) and parameters[len(args) - 1].unnamed and args[-1] is None:
        args.pop()
    return args, {**keywords, **settings}

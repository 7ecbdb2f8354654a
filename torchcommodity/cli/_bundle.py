"""Options that belong together, as one argument of a command: a dataclass, each field of which is an option."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

Command = Callable[..., None]


def with_bundles(command: Command) -> Command:
    """Give a command the options of its arguments that are dataclasses; typer knows no such arguments.

    The fields stand in the place of the argument, those of a dataclass within a dataclass after all other options.
    """
    signature = inspect.signature(command, eval_str=True)
    options: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    for argument in signature.parameters.values():
        for option in _fields(argument.annotation) if is_dataclass(argument.annotation) else [argument]:
            if is_dataclass(option.annotation):
                last += _fields(option.annotation)
            else:
                options.append(option)
    options += last

    @wraps(command)
    def run(**values: Any) -> None:
        command(**{argument.name: _value(argument, values) for argument in signature.parameters.values()})

    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _fields(bundle: Any) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass as arguments of a command."""
    annotations = get_type_hints(bundle, include_extras=True)
    for field in fields(bundle):
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotations[field.name]
        )


def _value(argument: inspect.Parameter, values: dict[str, Any]) -> Any:
    bundle = argument.annotation
    if not is_dataclass(bundle):
        return values[argument.name]
    return bundle(**{field.name: _value(field, values) for field in _fields(bundle)})  # type: ignore[operator]

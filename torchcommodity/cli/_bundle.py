"""Options that several commands share, as one argument."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

Command = Callable[..., Any]


def bundle(name: str, kind: Callable[..., Any], options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """A decorator that gives a command these options, which it takes as one argument `name` of type `kind`.

    Args:
        name: the argument of the command.
        kind: called with the values of the options by name; None = the option is not given.
        options: the annotation of each option, for typer.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **settings: Any) -> Any:
            values = {option: settings.pop(option) for option in options}
            return command(*args, **{name: kind(**values)}, **settings)

        signature = inspect.signature(command, eval_str=True)
        parameters = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        additional = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for option, annotation in options.items()
        ]
        run.__signature__ = signature.replace(parameters=[*parameters, *additional])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *additional)}
        return run

    return decorate

"""Variables of Python functions that outlive a call: containers and tensors in globals, closures, classes, defaults."""

import contextlib
import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

CONTAINERS = (dict, list, set)
VALUES = (Tensor, int, float, tuple)
MISSING = object()


@dataclass(frozen=True)
class PersistentVariable:
    """One variable that outlives a call; `clear` returns a function that restores it."""

    name: str
    clear: Callable[[], Callable[[], None]]
    is_filled: Callable[[], bool]


def persistent_variables(
    functions: Iterable[Callable[..., Any]], owners: Sequence[Any] = ()
) -> list[PersistentVariable]:
    """The variables that the functions, or those that they call in the same module, read or write.

    `owners` are objects whose attributes the functions, and the `forward` of each module among them, may set.
    """
    persistent: dict[object, PersistentVariable] = {}
    forwards = [type(owner).forward for owner in owners if hasattr(getattr(type(owner), "forward", None), "__code__")]
    for function in _reachable((*functions, *forwards)):
        for name, value in _values(function):
            if hasattr(value, "cache_clear"):
                persistent[id(value)] = _lru_cache(name, value)
            elif isinstance(value, CONTAINERS):
                persistent[id(value)] = _container(name, value)
        variables = function.__globals__
        for name in _stored(function, "STORE_GLOBAL"):  # declared `global`, and set
            if isinstance(variables.get(name), VALUES):
                persistent[name] = _global(name, variables)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name in _stored(function, "STORE_DEREF") and isinstance(getattr(cell, "cell_contents", None), VALUES):
                persistent[id(cell)] = _attribute(name, cell, "cell_contents", None)  # declared `nonlocal`, and set
        named = [value for _, value in _variables(function) if isinstance(value, type)]
        classes = [value for value in named if value.__module__ == function.__module__]
        for owner in (function, *owners, *classes):
            for name in _stored(function, "STORE_ATTR"):
                if isinstance(vars(owner).get(name), VALUES):
                    for initial in (MISSING, None):  # before the first call: not there, or None
                        persistent[id(owner), name, id(initial)] = _attribute(name, owner, name, initial)
    return list(persistent.values())


def _lru_cache(name: str, function: Any) -> PersistentVariable:
    def clear() -> Callable[[], None]:
        function.cache_clear()
        return lambda: None

    return PersistentVariable(name, clear, lambda: function.cache_info().currsize > 0)


def _container(name: str, container: Any) -> PersistentVariable:
    def clear() -> Callable[[], None]:
        content = container.copy()
        container.clear()

        def restore() -> None:
            container.clear()
            (container.extend if isinstance(container, list) else container.update)(content)

        return restore

    return PersistentVariable(name, clear, lambda: bool(container))


def _global(name: str, variables: dict[str, Any]) -> PersistentVariable:
    def clear() -> Callable[[], None]:
        value, variables[name] = variables.get(name), None
        return lambda: variables.__setitem__(name, value)

    return PersistentVariable(name, clear, lambda: variables.get(name) is not None)


def _stored(function: Any, instruction: str) -> set[str]:
    """Names that the code of a function assigns by an instruction."""
    return {step.argval for step in dis.get_instructions(function) if step.opname == instruction}


def _attribute(name: str, owner: Any, attribute: str, initial: object) -> PersistentVariable:
    """An attribute of an object, or the content of a cell of a closure."""

    def set_value(value: object) -> None:
        if value is MISSING:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, value)

    def clear() -> Callable[[], None]:
        value = getattr(owner, attribute)
        set_value(initial)
        return lambda: set_value(value)

    return PersistentVariable(name, clear, lambda: getattr(owner, attribute, None) is not None)


@contextlib.contextmanager
def cleared(variable: PersistentVariable) -> Iterator[None]:
    restore = variable.clear()
    try:
        yield
    finally:
        restore()


def _reachable(functions: Iterable[Callable[..., Any]]) -> list[Any]:
    pending, reached = list[Any](functions), list[Any]()
    while pending:
        function = pending.pop()
        if function in reached:
            continue
        reached.append(function)
        called = [getattr(value, "__wrapped__", value) for _, value in _variables(function)]
        pending += [f for f in called if hasattr(f, "__code__") and f.__module__ == function.__module__]
    return reached


def _variables(function: Any) -> list[tuple[str, Any]]:
    """Global and enclosed variables that a function reads."""
    code, known = function.__code__, function.__globals__
    variables = [(name, known[name]) for name in code.co_names if name in known]
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # an empty cell
            variables.append((name, cell.cell_contents))
    return variables


def _values(function: Any) -> list[tuple[str, Any]]:
    """What may keep state: variables, attributes of the function and of classes that it names, and its defaults."""
    variables = _variables(function)
    classes = [(name, value) for name, value in variables if isinstance(value, type)]
    return [
        *variables,
        *((f"{name}.{attribute}", value) for name, owner in classes for attribute, value in vars(owner).items()),
        *((f"{function.__name__}.{name}", value) for name, value in vars(function).items()),
        *((f"a default of {function.__name__}", value) for value in function.__defaults__ or ()),
    ]

"""State that Python functions keep between calls: containers and tensors in globals, closures, classes and defaults."""

import contextlib
import dis
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

CONTAINERS = (dict, list, set)


@dataclass(frozen=True)
class State:
    """One variable that outlives a call; `clear` returns a function that restores it."""

    name: str
    clear: Callable[[], Callable[[], None]]
    is_filled: Callable[[], bool]


def find_state(functions: Iterable[Callable[..., Any]]) -> list[State]:
    """State that the functions, or those that they call in the same module, read or write."""
    states: dict[int | str, State] = {}
    for function in _reachable(functions):
        for name, value in _values(function):
            if hasattr(value, "cache_clear"):
                states[id(value)] = _of_lru_cache(name, value)
            elif isinstance(value, CONTAINERS):
                states[id(value)] = _of_container(name, value)
        for name in _stored_globals(function):
            states[name] = _of_global(name, function.__globals__)
    return list(states.values())


def _of_lru_cache(name: str, function: Any) -> State:
    def clear() -> Callable[[], None]:
        function.cache_clear()
        return lambda: None

    return State(name, clear, lambda: function.cache_info().currsize > 0)


def _of_container(name: str, container: Any) -> State:
    def clear() -> Callable[[], None]:
        content = container.copy()
        container.clear()
        return lambda: _refill(container, content)

    return State(name, clear, lambda: bool(container))


def _refill(container: Any, content: Any) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(content)
    else:
        container.update(content)


def _of_global(name: str, variables: dict[str, Any]) -> State:
    def clear() -> Callable[[], None]:
        value, variables[name] = variables.get(name), None
        return lambda: variables.__setitem__(name, value)

    return State(name, clear, lambda: variables.get(name) is not None)


@contextlib.contextmanager
def cleared(state: State) -> Iterator[None]:
    restore = state.clear()
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


def _stored_globals(function: Any) -> set[str]:
    """Names that a function declares `global` and sets, if they hold a tensor or a number."""
    names = {step.argval for step in dis.get_instructions(function) if step.opname == "STORE_GLOBAL"}
    return {name for name in names if isinstance(function.__globals__.get(name), (Tensor, int, float, tuple))}

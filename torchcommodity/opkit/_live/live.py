"""Live updates of a causal function: its result row by row, equal to one call on all rows bit for bit."""

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from torchcommodity.opkit._live.past import Past
from torchcommodity.opkit._live.state import HEADER, Header, State, check_rows, describe_row, read_header
from torchcommodity.opkit.arguments import raise_invalid

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Axes = int | None | tuple[int | None, ...]


class LiveFunction(Protocol[P, R_co]):
    """A function of panels that can also be updated row by row."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def start(self, *args: P.args, **kwargs: P.kwargs) -> State:
        """The state after a history, which may have no rows; arguments are those of the function."""

    def step(self, state: State, *rows: Tensor) -> tuple[State, R_co]:
        """The state after one more row, and the result for it: panels and results without their time axis."""

    def update(self, state: State, *rows: Tensor) -> tuple[State, R_co]:
        """The state after any number of rows, and the results for them."""


def live(
    update: Callable[..., Any],
    *,
    panels: int = 1,
    time: int | Callable[..., int] = -2,
    outputs: Axes | Callable[..., Axes] = -2,
) -> Callable[[Callable[P, R]], LiveFunction[P, R]]:
    """Give a causal function `start`, `step` and `update`, which need only what it keeps of the past.

        state = function.start(history, window=20)
        state, y = function.step(state, row)  # row (..., N), y (..., N)
        state, ys = function.update(state, rows)  # rows (..., T, N), ys (..., T, N)

    Any split of the rows gives the bits of one call on all of them. A state is a dict of tensors with the settings
    among them, so that safetensors can save it; no call writes to the state that it receives. Results are constants:
    no gradient is recorded. `opkit.check` proves all of it.

    Args:
        update: (past, *new rows, **settings) -> results for the new rows, where `past` is a `Past`.
        panels: Number of leading parameters of the function that are panels; the others are settings.
        time: Time axis of the panels, negative; or (settings by name) -> axis.
        outputs: Time axis of the result, negative; of several tensors a tuple, with None for one without a time axis;
            or (settings by name) -> axes.

    Returns:
        A decorator. The function itself stays as it is, with `start`, `step` and `update` as attributes.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> def _update(past: opkit.Past, x: torch.Tensor) -> torch.Tensor:
        ...     return x - past.lag("x", x, first=torch.nan)
        >>> @opkit.live(_update)
        ... def change(x: torch.Tensor) -> torch.Tensor:
        ...     return _update(opkit.Past(), x)
        >>> state = change.start(torch.tensor([[1.0], [3.0]]))
        >>> state, y = change.step(state, torch.tensor([7.0]))
        >>> y
        tensor([4.])
    """

    def decorate(function: Callable[P, R]) -> LiveFunction[P, R]:
        methods = _Methods(function, update, panels, time, outputs)
        for name in ("start", "step", "update"):
            setattr(function, name, getattr(methods, name))
        return cast(LiveFunction[P, R], function)

    return decorate


class _Methods:
    """start, step and update of one function."""

    def __init__(self, function: Callable[..., Any], update: Callable[..., Any], panels: int, time: Any, outputs: Any):
        self.name, self.signature, self.run = function.__name__, inspect.signature(function), update
        self.panels = list(self.signature.parameters)[:panels]
        self.time, self.outputs = _by_settings(time), _by_settings(outputs)

    def start(self, *args: Any, **kwargs: Any) -> State:
        """The state after a history, which may have no rows; arguments are those of the function."""
        arguments = self.signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        settings = _flatten(arguments)
        history = [settings.pop(name) for name in self.panels]
        tensors = {name: value.detach().clone() for name, value in settings.items() if isinstance(value, Tensor)}
        numbers = {name: value for name, value in settings.items() if name not in tensors}
        time = self.time(**numbers)
        self._check_history(history, time)
        header = Header(self.name, numbers, list(tensors), [describe_row(x, time) for x in history])
        return self._run({HEADER: header.to_tensor(), **tensors}, header, history)[0]

    def step(self, state: State, *rows: Tensor) -> tuple[State, Any]:
        """The state after one more row, and the result for it: panels and results without their time axis."""
        header = read_header(self.name, f"{self.name}.step", state)
        time = self.time(**header.settings)
        panels = [row.unsqueeze(time) if isinstance(row, Tensor) else row for row in rows]
        check_rows(f"{self.name}.step", header, panels, time)
        state, results = self._run(state, header, panels)
        axes = self.outputs(**header.settings)
        return state, results.squeeze(axes) if isinstance(results, Tensor) else _squeeze(results, axes)

    def update(self, state: State, *rows: Tensor) -> tuple[State, Any]:
        """The state after any number of rows, and the results for them."""
        header = read_header(self.name, f"{self.name}.update", state)
        check_rows(f"{self.name}.update", header, rows, self.time(**header.settings))
        return self._run(state, header, rows)

    def _run(self, state: State, header: Header, rows: Any) -> tuple[State, Any]:
        fixed = {name: state[name] for name in (HEADER, *header.tensors)}
        past = Past({name: value for name, value in state.items() if name not in fixed})
        tensors = {name: state[name] for name in header.tensors}
        with torch.no_grad():
            results = self.run(past, *rows, **header.settings, **tensors)
        return fixed | past.tensors, results

    def _check_history(self, history: list[Any], time: int) -> None:
        for name, x in zip(self.panels, history):
            if not isinstance(x, Tensor) or x.dim() < -time:
                axes = f"(..., T{', N' * (-time - 1)})"
                raise_invalid(f"{self.name}.start", f"{name} must be a Tensor {axes}", TypeError, **{name: x})
        if len({x.shape[time] for x in history}) > 1:
            raise_invalid(
                f"{self.name}.start", "all panels must have the same number of rows", **dict(zip(self.panels, history))
            )


def _by_settings(value: Any) -> Callable[..., Any]:
    return value if callable(value) else lambda **_: value


def _flatten(arguments: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments by name, those of `**settings` too."""
    values = dict(arguments.arguments)
    for name, parameter in arguments.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            values |= values.pop(name)
    return values


def _squeeze(results: Any, axes: Axes) -> Any:
    leaves, structure = tree_flatten(results)
    axes = axes if isinstance(axes, tuple) else (axes,) * len(leaves)
    rows = [x if axis is None else x.squeeze(axis) for x, axis in zip(leaves, axes, strict=True)]
    return tree_unflatten(rows, structure)

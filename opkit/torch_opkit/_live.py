"""Live updates of a causal function: its result row by row, equal to one call on all rows bit for bit."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_opkit.arguments import raise_invalid

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Axes = int | None | tuple[int | None, ...]
LiveState = dict[str, Tensor]  # what is kept of the past, with the settings and a header that says what it belongs to
HEADER = "operator"  # the key of the header, as uint8 JSON


class Past:
    """What a causal function keeps of earlier rows: tensors by name, none before the first row.

    A function reads what it kept with `get` and replaces it with `keep`. Tensors that it has read are never written to.

    Args:
        tensors: What was kept after the last call; None for a call on all rows, after which nothing is needed.
    """

    def __init__(self, tensors: Mapping[str, Tensor] | None = None) -> None:
        self.live = tensors is not None
        self._before, self.tensors = dict(tensors or {}), dict(tensors or {})

    def get(self, name: str) -> Tensor | None:
        """The tensor of this name before this call, or None."""
        return self._before.get(name)

    def keep(self, name: str, value: Tensor) -> None:
        """Replace the tensor of this name after this call."""
        self.tensors[name] = value

    def keep_last(self, name: str, x: Tensor) -> None:
        """Keep the last row of `x` (..., T, N), if there is one."""
        if self.live and x.shape[-2]:
            self.keep(name, x[..., -1, :].clone())

    def with_rows(self, name: str, x: Tensor, window: int, time: int = -2) -> Tensor:
        """Earlier rows followed by those of `x`: what functions of the last `window` rows need.

        The first row is a multiple of `window`, counted from the first row ever: kernels that cut time into blocks of
        this length (van Herk) then see the same blocks as in one call on all rows.

        Args:
            name: Name of the rows that are kept: at least the last `window` - 1, at most 2 `window` - 1.
            x: New rows.
            window: Number of rows.
            time: Time axis of `x`, negative.

        Returns:
            Earlier rows and `x`, concatenated.
        """
        before = self.get(name)
        rows = x if before is None else torch.cat([before, x], time)
        drop = max(rows.shape[time] // window - 1, 0) * window
        self.keep(name, rows.narrow(time, drop, rows.shape[time] - drop).clone() if drop or rows is x else rows)
        return rows

    def call(self, name: str, function: Any, *rows: Tensor, **settings: Any) -> Any:
        """Results of another function with live updates for these rows; what it keeps is kept under `name`."""
        if not self.live:
            return function(*rows, **settings)
        state = {key[len(name) + 1 :]: x for key, x in self._before.items() if key.startswith(f"{name}.")}
        state = state or function.start(*(x[..., :0, :] for x in rows), **settings)
        state, results = function.update(state, *rows)
        for key, x in state.items():
            self.keep(f"{name}.{key}", x)
        return results

    def lag(self, name: str, x: Tensor, first: float = 0) -> Tensor:
        """The row before each row of `x` (..., T, N); `first` before the first row ever."""
        before = self.get(name)
        rows = torch.cat([torch.full_like(x[..., :1, :], first) if before is None else before.unsqueeze(-2), x], -2)
        self.keep_last(name, x)
        return rows[..., : x.shape[-2], :]

    def cumsum(self, name: str, x: Tensor, time: int = -2) -> Tensor:
        """Sum of all rows so far of `x`, in float64 in the order of one call; of a mask, the number of true values."""
        before = self.get(name)
        if before is None:
            total = x.cumsum(time)
        elif x.is_floating_point():
            total = torch.cat([before, x], time).cumsum(time).narrow(time, 1, x.shape[time])
        else:
            total = x.cumsum(time) + before
        if self.live and x.shape[time]:
            self.keep(name, total.narrow(time, x.shape[time] - 1, 1).clone())
        return total

    def count_rows(self, name: str, x: Tensor) -> Tensor:
        """Numbers of the rows of `x` (..., T, N) among all rows ever: int64 (T,), from zero."""
        before, rows = self.get(name), torch.arange(x.shape[-2], device=x.device)
        rows = rows if before is None else rows + before
        self.keep(name, torch.full((), x.shape[-2], device=x.device) if before is None else before + x.shape[-2])
        return rows


class LiveFunction(Protocol[P, R_co]):
    """A function of panels that can also be updated row by row."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def start(self, *args: P.args, **kwargs: P.kwargs) -> LiveState:
        """The state after a history, which may have no rows; arguments are those of the function."""

    def step(self, state: LiveState, *rows: Tensor) -> tuple[LiveState, R_co]:
        """The state after one more row, and the result for it: panels and results without their time axis."""

    def update(self, state: LiveState, *rows: Tensor) -> tuple[LiveState, R_co]:
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
        >>> import torch_opkit as opkit
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


@dataclass(frozen=True)
class _Header:
    """What a state is about, the same from row to row: function, settings, dtypes and shapes of rows."""

    operator: str
    settings: dict[str, Any]
    tensors: list[str]  # names of the settings that are tensors
    panels: list[tuple[str, list[int]]]  # dtype and shape of one row of each panel

    def to_tensor(self) -> Tensor:
        try:
            text = json.dumps(self.__dict__)
        except TypeError as error:
            raise_invalid(f"{self.operator}.start", f"settings must be numbers, strings or tensors: {error}", TypeError)
        return encode_text(text)


@lru_cache(maxsize=256)
def _parse_header(text: str) -> _Header:
    return _Header(**json.loads(text))


def _read_header(operator: str, call: str, state: object) -> _Header:
    """The header of a state of `operator`; an error in words for anything else."""
    header = state.get(HEADER) if isinstance(state, dict) else None
    expected = f"state must be the dict of tensors that {operator}.start returned"
    if not isinstance(header, Tensor) or header.dtype != torch.uint8:
        received = {"keys": sorted(map(str, state))} if isinstance(state, dict) else {"state": type(state).__name__}
        raise_invalid(call, expected, TypeError, **received)
    result = _parse_header(decode_text(header))
    if result.operator != operator:
        raise_invalid(call, f"{expected}; start a state of its own", operator=result.operator)
    return result


def _describe_row(x: Tensor, time: int) -> tuple[str, list[int]]:
    """Dtype and shape of one row of a panel."""
    return str(x.dtype), [n for axis, n in enumerate(x.shape, -x.dim()) if axis != time]


def _check_rows(call: str, header: _Header, rows: Sequence[Any], time: int) -> None:
    """Rows must have the dtypes and shapes of the history."""
    if len(rows) != len(header.panels):
        raise_invalid(call, f"rows of {len(header.panels)} panels are expected, as in start", panels=len(rows))
    for x, (dtype, shape) in zip(rows, header.panels):
        if not isinstance(x, Tensor):
            raise_invalid(call, "rows must be Tensors", TypeError, row=type(x).__name__)
        if _describe_row(x, time) != (dtype, shape):
            raise_invalid(
                call, f"each row must be {dtype} {tuple(shape)}, as the history was", dtype=str(x.dtype), rows=x
            )
    if len({x.shape[time] for x in rows}) > 1:
        raise_invalid(
            call, "all panels must have the same number of rows", **{f"rows{i}": x for i, x in enumerate(rows)}
        )


class _Methods:
    """start, step and update of one function."""

    def __init__(
        self, function: Callable[..., object], update: Callable[..., Any], panels: int, time: object, outputs: object
    ) -> None:
        self.name, self.signature, self.run = function.__name__, inspect.signature(function), update
        self.panels = list(self.signature.parameters)[:panels]
        self.time, self.outputs = _by_settings(time), _by_settings(outputs)

    def start(self, *args: object, **kwargs: object) -> LiveState:
        """The state after a history, which may have no rows; arguments are those of the function."""
        arguments = self.signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        settings = dict(arguments.arguments)
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                settings |= settings.pop(name)
        history = [settings.pop(name) for name in self.panels]
        tensors = {name: value.detach().clone() for name, value in settings.items() if isinstance(value, Tensor)}
        numbers = {name: value for name, value in settings.items() if name not in tensors}
        time = self.time(**numbers)
        for name, x in zip(self.panels, history):
            if not isinstance(x, Tensor) or x.dim() < -time:
                axes = f"(..., T{', N' * (-time - 1)})"
                raise_invalid(f"{self.name}.start", f"{name} must be a Tensor {axes}", TypeError, **{name: x})
        if len({x.shape[time] for x in history}) > 1:
            rule = "all panels must have the same number of rows"
            raise_invalid(f"{self.name}.start", rule, **dict(zip(self.panels, history)))
        header = _Header(self.name, numbers, list(tensors), [_describe_row(x, time) for x in history])
        return self._run({HEADER: header.to_tensor(), **tensors}, header, history)[0]

    def step(self, state: LiveState, *rows: Tensor) -> tuple[LiveState, Any]:
        """The state after one more row, and the result for it: panels and results without their time axis."""
        header = _read_header(self.name, f"{self.name}.step", state)
        time = self.time(**header.settings)
        panels = [row.unsqueeze(time) if isinstance(row, Tensor) else row for row in rows]
        _check_rows(f"{self.name}.step", header, panels, time)
        state, results = self._run(state, header, panels)
        axes = self.outputs(**header.settings)
        if isinstance(results, Tensor):
            return state, results.squeeze(axes)
        leaves, structure = tree_flatten(results)
        axes = axes if isinstance(axes, tuple) else (axes,) * len(leaves)
        squeezed = [x if axis is None else x.squeeze(axis) for x, axis in zip(leaves, axes, strict=True)]
        return state, tree_unflatten(squeezed, structure)

    def update(self, state: LiveState, *rows: Tensor) -> tuple[LiveState, Any]:
        """The state after any number of rows, and the results for them."""
        header = _read_header(self.name, f"{self.name}.update", state)
        _check_rows(f"{self.name}.update", header, rows, self.time(**header.settings))
        return self._run(state, header, rows)

    def _run(self, state: LiveState, header: _Header, rows: Any) -> tuple[LiveState, Any]:
        fixed = {name: state[name] for name in (HEADER, *header.tensors)}
        past = Past({name: value for name, value in state.items() if name not in fixed})
        tensors = {name: state[name] for name in header.tensors}
        with torch.no_grad():
            results = self.run(past, *rows, **header.settings, **tensors)
        return fixed | past.tensors, results


def _by_settings(value: object) -> Callable[..., Any]:
    return value if callable(value) else lambda **_: value


def encode_text(text: str) -> Tensor:
    """UTF-8 bytes of a text that is not empty, as a uint8 tensor: a state of tensors can hold it; see `decode_text`.

    Example:
        >>> import torch_opkit as opkit
        >>> opkit.decode_text(opkit.encode_text("rolling_mean"))
        'rolling_mean'
    """
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def decode_text(codes: Tensor) -> str:
    """The text that `encode_text` encoded."""
    return codes.cpu().numpy().tobytes().decode()

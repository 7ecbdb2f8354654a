"""`series.operator`: a formula becomes an operator, with everything that follows from it."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

import torch
from torch import Tensor

from torch_opkit import LiveFunction, Past, assume_constant_result, live
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._series import series_program
from torchcommodity.ops._series.interpret import interpret
from torchcommodity.ops._series.program import MAX_INPUTS
from torchcommodity.ops._series.series_step import series_step
from torchcommodity.ops.series._expression import Series, Trace, as_node, is_tracing
from torchcommodity.ops.series._schedule import schedule
from torchcommodity.ops.series._settings import Period, check_setting

P = ParamSpec("P")
R = TypeVar("R")
LiveState = dict[str, Tensor]


def are_alike(first: Any, *others: Any) -> bool:
    """Whether all are floating-point panels of one shape, dtype and device: what most calls need to know."""
    if not isinstance(first, Tensor) or not first.is_floating_point() or first.dim() < 2:
        return False
    for x in others:
        if not isinstance(x, Tensor) or x.dtype != first.dtype or x.device != first.device or x.shape != first.shape:
            return False
    return True


class Operator(Generic[P, R]):
    """A formula as an operator: called with Tensors, it runs its program in one native pass.

    Inside another formula, it is part of that formula.
    """

    __name__: str

    def __init__(self, formula: Callable[P, R], dtype: torch.dtype | None, minimum: dict[str, int]) -> None:
        functools.update_wrapper(self, formula)
        self._formula = formula
        self._dtype = str(dtype).removeprefix("torch.") if dtype else "float"
        self._minimum = minimum
        self._signature = inspect.signature(formula)
        self._hints = get_type_hints(formula)
        self.panel_names = [name for name in self._signature.parameters if self._hints.get(name) is Tensor]
        returned = self._hints.get("return")
        self._fields: Callable[..., Any] | None = returned if hasattr(returned, "_fields") else None
        self._absent = [None] * (MAX_INPUTS - len(self.panel_names))
        self._programs: dict[tuple[Any, ...], str] = {}  # by the settings as they stand in a call
        program_of = functools.cache(self._traced)

        def trace(*key: Any) -> str:  # torch.compile calls it instead of tracing it, and takes a plain function only
            return program_of(*key)

        @functools.wraps(formula)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return self(*args, **kwargs)

        self._trace = assume_constant_result(trace)
        self._live: LiveFunction[P, R] = live(self._continue, panels=len(self.panel_names))(call)
        if not self.panel_names or self.panel_names != [*self._signature.parameters][: len(self.panel_names)]:
            expected = "the first parameters, at least one, must be annotated Tensor, the panels"
            raise_invalid("series.operator", expected, TypeError, formula=formula)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        count = len(self.panel_names)
        if len(args) < count or torch.compiler.is_compiling():
            return self._call(args, kwargs)
        panels, settings = args[:count], args[count:]
        key: tuple[Any, ...] = ()
        if settings or kwargs:
            key = (settings, *kwargs.items(), *map(type, settings), *map(type, kwargs.values()))  # 1 == 1.0 == True
        try:
            program = self._programs.get(key)
        except TypeError:  # a setting that cannot be hashed: its check says what is expected
            program = None
        if program is None or is_tracing():
            return self._call(args, kwargs, key)
        if not are_alike(*panels):
            self._check_panels(dict(zip(self.panel_names, panels)))
        result: R = self._returned(series_program.operator(*panels, *self._absent, program))
        return result

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: tuple[Any, ...] | None = None) -> R:
        """Check every argument; then `key` leads to the program without a check of the settings."""
        if any(isinstance(x, Series) for x in (*args, *kwargs.values())):
            return self._formula(*args, **kwargs)
        panels, settings = self._bind(args, kwargs)
        inputs, program = self._program_inputs(panels, settings)
        result: R = self._returned(series_program.run_program(inputs, program))
        if key is not None and not any(isinstance(x, Tensor) for x in settings.values()):
            self._programs[key] = self._trace(*self._key(settings))
        return result

    def program(self, **settings: Any) -> str:
        """The program of the formula with these settings, in text.

        Example:
            >>> from torchcommodity.ops import indicators
            >>> indicators.mom.program(timeperiod=5)
            'panels 1; input 0; lag %1 5; subtract %1 %2; return float %3'
        """
        text: str = self._trace(*self._key(self._complete(settings)))
        return text

    def lookback(self, **settings: Any) -> int:
        """Number of warm-up rows with these settings: rows before the first value of a panel without missing rows."""
        complete = self._complete(settings)
        if tensors := [name for name, value in complete.items() if isinstance(value, Tensor)]:
            raise_invalid(f"{self.__name__}.lookback", "settings must be numbers", TypeError, tensors=tensors)
        return series_program.lookback(self._trace(*self._key(complete)))

    def definition(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The definition in plain PyTorch, many times slower."""
        panels, settings = self._bind(args, kwargs)
        inputs, program = self._program_inputs(panels, settings)
        result: R = self._returned(interpret(inputs, program))
        return result

    def declared_properties(self) -> dict[str, Any]:
        """What `opkit.check` need not be told or guess."""

        def warmup(**settings: Any) -> int:
            return self.lookback(**settings)

        parameters = self._signature.parameters.values()
        settings = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.name not in self.panel_names]
        learnable = any(self._hints[p.name] is Period for p in settings)  # then the warm-up may depend on a Tensor
        warmup.__signature__ = inspect.Signature(settings)  # type: ignore[attr-defined]
        properties = {"time": -2, "causal": True, "reference": self.definition, "masks_nan": True}
        return properties if learnable else properties | {"warmup": warmup}

    def start(self, *args: P.args, **kwargs: P.kwargs) -> LiveState:
        """The state after a history: panels (..., T, N) and settings as in a call; T may be zero.

        The state is a dict of Tensors, to be kept or saved, with the settings in it.
        """
        return self._live.start(*args, **kwargs)

    def step(self, state: LiveState, *row: Tensor) -> tuple[LiveState, R]:
        """The state after one more row of each panel (..., N), and the outputs (..., N) of this row.

        The bits of one call on all rows. `state` is not written to.
        """
        return self._live.step(state, *row)

    def update(self, state: LiveState, *rows: Tensor) -> tuple[LiveState, R]:
        """The state after more rows of each panel (..., k, N), and the outputs (..., k, N) of these rows."""
        return self._live.update(state, *rows)

    def _continue(self, past: Past, *rows: Tensor, **settings: Any) -> Any:
        """Outputs of new rows, from what the statements keep of the rows before."""
        self._check_panels(dict(zip(self.panel_names, rows)))
        self._check_settings(settings)
        inputs, program = self._program_inputs(list(rows), settings)
        y, values = series_step(inputs, past.get("values"), program)
        past.keep("values", values)
        return self._returned(y)

    def __repr__(self) -> str:
        return f"<series.operator {self.__name__}{self._signature}>"

    def __reduce__(self) -> str:
        return self._formula.__qualname__

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], dict[str, Any]]:
        """The panels in order, checked, and all settings."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}; its signature is {self._signature}") from None
        bound.apply_defaults()
        panels = {name: bound.arguments.pop(name) for name in self.panel_names}
        self._check_panels(panels)
        self._check_settings(bound.arguments)
        return list(panels.values()), bound.arguments

    def _complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings with the defaults of the others."""
        parameters = self._signature.parameters.values()
        defaults = {p.name: p.default for p in parameters if p.name not in self.panel_names}
        if unknown := settings.keys() - defaults.keys():
            expected = f"settings of {self.__name__} must be among {sorted(defaults)}"
            raise_invalid(self.__name__, expected, TypeError, settings=sorted(unknown))
        complete = defaults | settings
        self._check_settings(complete)
        return complete

    def _check_panels(self, panels: dict[str, Any]) -> None:
        check_panel(self.__name__, **panels)
        first, *others = panels.values()
        for panel in others:
            if panel.shape != first.shape:
                raise_invalid(self.__name__, f"{', '.join(panels)} must have one shape", **panels)

    def _check_settings(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            check_setting(self.__name__, name, self._hints.get(name), value, self._minimum.get(name, 1))

    @staticmethod
    def _key(settings: dict[str, Any]) -> tuple[Any, ...]:
        return tuple("Tensor" if isinstance(value, Tensor) else value for value in settings.values())

    def _traced(self, *key: Any) -> str:
        """The program for settings in the order of the signature; a Tensor among them is a parameter."""
        names = [name for name in self._signature.parameters if name not in self.panel_names]
        trace = Trace()
        with trace:
            arguments: dict[str, Any] = {
                name: Series(trace.node("input", attributes=(i,))) for i, name in enumerate(self.panel_names)
            }
            parameters = (
                Series(trace.node("input", attributes=(i,))) for i in range(len(self.panel_names), MAX_INPUTS)
            )
            for name, value in zip(names, key):
                arguments[name] = next(parameters) if value == "Tensor" else value
            result: Any = self._formula(**arguments)  # type: ignore[call-arg]
            outputs = [as_node(y) for y in (result if isinstance(result, tuple) else (result,))]
        return schedule(outputs, len(self.panel_names), self._dtype)

    def _program_inputs(self, panels: list[Tensor], settings: dict[str, Any]) -> tuple[list[Tensor], str]:
        parameters = [value for value in settings.values() if isinstance(value, Tensor)]
        if len(panels) + len(parameters) > MAX_INPUTS:
            expected = f"there must be at most {MAX_INPUTS} panels and learnable periods"
            raise_invalid(self.__name__, expected, inputs=len(panels) + len(parameters))
        expanded = [value.to(panels[0]).expand(panels[0].shape) for value in parameters]
        return [*panels, *expanded], self._trace(*self._key(settings))

    def _returned(self, y: Tensor) -> Any:
        return self._fields(*y.unbind(-3)) if self._fields else y


@overload
def operator(formula: Callable[P, R], /) -> Operator[P, R]: ...
@overload
def operator(*, dtype: torch.dtype | None = None, **minimum: int) -> Callable[[Callable[P, R]], Operator[P, R]]: ...
def operator(formula: Any = None, /, *, dtype: torch.dtype | None = None, **minimum: int) -> Any:
    """Make a formula an operator: native, differentiable, causal, with live updates.

    Args:
        formula: Function of panels, its parameters annotated `Tensor`, and of settings; written with the functions of
            `ops.series`. It is called once for each combination of settings, with tracers instead of Tensors.
        dtype: dtype of the outputs, int8, int16 or int64, if they are whole numbers without a gradient.
        minimum: Smallest value of an integer setting, if not 1.

    Returns:
        An `Operator`, called like the formula.

    Example:
        >>> import torch
        >>> from torch import Tensor
        >>> from torchcommodity.ops import series
        >>> @series.operator
        ... def zscore(x: Tensor, window: int = 20) -> Tensor:
        ...     return (x - series.sma(x, window)) / series.std(x, window)
        >>> prices = torch.tensor([[10.0], [11.0], [10.5], [12.0]])
        >>> zscore(prices, window=3).squeeze(-1)
        tensor([   nan,    nan, 0.0000, 1.3363])
        >>> zscore.lookback(window=3)
        2
    """
    if formula is None:
        return lambda formula: Operator(formula, dtype, minimum)
    return Operator(formula, dtype, minimum)

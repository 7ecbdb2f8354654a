"""The decorator of every indicator: argument checks, half precision in float32, and the number of warm-up rows."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from torchcommodity.opkit import HALF_DTYPES
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid

P = ParamSpec("P")
R = TypeVar("R")

Period = int | Tensor  # in rows; a Tensor holds real numbers, one for all or one per series, and may require a gradient
Smoothing = Literal["talib", "wilder", "pandas", "simple"]
Seed = Literal["talib", "pandas"]
MAType = Literal[0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13]  # TA-Lib's moving average types

STRIP_SIZE = 1 << 18  # elements: one megabyte in float32
LOOKBACKS: dict[str, Callable[..., int]] = {}


def indicator(lookback: Callable[..., int], **minimum: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate an indicator: check its arguments by their annotations and register its `lookback`.

    Args:
        lookback: number of rows before the first value, as a function of the settings it names.
        minimum: smallest value of an integer setting, if not 1.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        name, names = function.__name__, list(inspect.signature(function).parameters)
        hints = get_type_hints(function)
        LOOKBACKS[name] = _with_defaults(lookback, function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            arguments: dict[str, Any] = dict(zip(names, args)) | kwargs
            panels = {key: value for key, value in arguments.items() if hints.get(key) is Tensor}
            _check_panels(name, panels)
            for key in arguments.keys() - panels.keys():
                _check_setting(name, key, hints.get(key), arguments[key], minimum.get(key, 1))
            half = {x.dtype for x in panels.values()} & HALF_DTYPES
            if not half:
                return _in_strips(function, args, kwargs, next(iter(panels.values())))
            outputs = function(*tree_map(_to_float32, args), **tree_map(_to_float32, kwargs))
            result: R = tree_map(lambda y: y.to(*half) if y.is_floating_point() else y, outputs)
            return result

        return checked

    return register


def _in_strips(function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any], panel: Tensor) -> R:
    """Compute a wide panel in strips of series, so that the intermediate results of a formula stay in cache."""
    assets = panel.shape[-1]
    if torch.compiler.is_compiling() or panel.numel() < 4 * STRIP_SIZE:
        return function(*args, **kwargs)
    width = max(16, STRIP_SIZE * assets // panel.numel())
    if width >= assets:
        return function(*args, **kwargs)

    def strip(first: int) -> R:
        def select(x: Any) -> Any:
            per_series = isinstance(x, Tensor) and x.dim() and x.shape[-1] == assets
            return x[..., first : first + width] if per_series else x

        return function(*map(select, args), **{key: select(value) for key, value in kwargs.items()})

    result: R = tree_map(lambda *parts: torch.cat(parts, -1), *map(strip, range(0, assets, width)))
    return result


def lookback(name: str, **settings: Any) -> int:
    """Number of warm-up rows of an indicator: rows of NaN before its first value, without missing rows.

    Args:
        name: Name of the indicator, such as "rsi".
        settings: Settings of the indicator; the others have their defaults.

    Returns:
        Number of rows, equal to TA-Lib's lookback in mode "talib".

    Raises:
        ValueError, TypeError: If there is no such indicator or setting.

    Example:
        >>> lookback("rsi"), lookback("macd", slowperiod=30)
        (14, 37)
    """
    if name not in LOOKBACKS:
        raise_invalid("lookback", "name must be an indicator", name=name)
    return LOOKBACKS[name](**settings)


def _with_defaults(rule: Callable[..., int], function: Callable[..., Any]) -> Callable[..., int]:
    parameters = inspect.signature(function).parameters
    defaults = {key: p.default for key, p in parameters.items() if p.default is not p.empty}
    needed = inspect.signature(rule).parameters

    def lookback(**settings: Any) -> int:
        if unknown := settings.keys() - defaults.keys():
            expected = f"settings of {function.__name__} must be among {sorted(defaults)}"
            raise_invalid("lookback", expected, TypeError, settings=sorted(unknown))
        return rule(**{key: value for key, value in (defaults | settings).items() if key in needed})

    return lookback


def _check_panels(name: str, panels: dict[str, Tensor]) -> None:
    check_panel(name, **panels)
    first, *others = panels.values()
    if any(panel.shape != first.shape for panel in others):  # not by a set: symbolic shapes are not hashable
        raise_invalid(name, f"{', '.join(panels)} must have one shape", **panels)


def _check_setting(name: str, key: str, hint: Any, value: Any, minimum: int) -> None:
    if get_origin(hint) is Literal:
        if isinstance(value, bool) or value not in get_args(hint):
            raise_invalid(name, f"{key} must be one of {get_args(hint)}", **{key: value})
    elif hint is Period and isinstance(value, Tensor):
        if not value.is_floating_point():
            raise_invalid(name, f"{key} must be an int or a floating-point Tensor", TypeError, dtype=value.dtype)
    elif hint in (int, Period):
        check_integer(name, minimum, **{key: value})
    elif hint is float and (isinstance(value, bool) or not isinstance(value, float | int)):
        raise_invalid(name, f"{key} must be a number", TypeError, **{key: value})


def _to_float32(x: Any) -> Any:
    return x.float() if isinstance(x, Tensor) and x.dtype in HALF_DTYPES else x

"""What every indicator has: checks at its door, half precision computed in float32, a known number of warm-up rows."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid

P = ParamSpec("P")
R = TypeVar("R")

Period = int | Tensor  # a number of rows; a Tensor may be any real number, per series, and require a gradient
Smoothing = Literal["talib", "wilder", "pandas", "simple"]
Seed = Literal["talib", "pandas"]
MAType = Literal[0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13]  # TA-Lib's numbers of moving averages

STRIP = 1 << 18  # elements: a megabyte in float32
HALF = {torch.float16, torch.bfloat16}
LOOKBACKS: dict[str, Callable[..., int]] = {}


def indicator(lookback: Callable[..., int], **least: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments by their annotations; `least` names settings that must not be below another value than 1.

    `lookback` takes the settings it needs by name and gives the number of rows before the first value.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        name, names = function.__name__, list(inspect.signature(function).parameters)
        kinds = get_type_hints(function)
        LOOKBACKS[name] = _with_defaults(lookback, function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = dict(zip(names, args)) | kwargs
            panels = {key: value for key, value in given.items() if kinds.get(key) is Tensor}
            _check_panels(name, panels)
            for key in given.keys() - panels.keys():
                _check_setting(name, key, kinds.get(key), given[key], least.get(key, 1))
            narrow = {x.dtype for x in panels.values()} & HALF
            if not narrow:
                return _in_strips(function, args, kwargs, next(iter(panels.values())))
            outputs = function(*tree_map(_wide, args), **tree_map(_wide, kwargs))
            narrowed: R = tree_map(lambda y: y.to(*narrow) if y.is_floating_point() else y, outputs)
            return narrowed

        return checked

    return register


def _in_strips(function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any], panel: Tensor) -> R:
    """A wide panel goes strip by strip of series, so that what a formula makes meanwhile stays in cache."""
    assets = panel.shape[-1]
    if torch.compiler.is_compiling() or panel.numel() < 4 * STRIP:
        return function(*args, **kwargs)
    width = max(16, STRIP * assets // panel.numel())
    if width >= assets:
        return function(*args, **kwargs)

    def strip(first: int) -> R:
        def cut(x: Any) -> Any:
            of_series = isinstance(x, Tensor) and x.dim() and x.shape[-1] == assets
            return x[..., first : first + width] if of_series else x

        return function(*map(cut, args), **{key: cut(value) for key, value in kwargs.items()})

    joined: R = tree_map(lambda *parts: torch.cat(parts, -1), *map(strip, range(0, assets, width)))
    return joined


def lookback(name: str, **settings: Any) -> int:
    """How many rows of `indicators.<name>` are NaN before its first value, on series without a missing row.

    Args:
        name: of the indicator, "rsi".
        settings: as the indicator takes them; what is not given has its default.

    Returns:
        the number of rows, TA-Lib's own in mode "talib".

    Raises:
        ValueError, TypeError: there is no such indicator or no such setting.

    Example:
        >>> lookback("rsi"), lookback("macd", slowperiod=30)
        (14, 37)
    """
    if name not in LOOKBACKS:
        raise_invalid("lookback", "name must be one of the indicators", name=name)
    return LOOKBACKS[name](**settings)


def _with_defaults(rule: Callable[..., int], function: Callable[..., Any]) -> Callable[..., int]:
    parameters = inspect.signature(function).parameters
    defaults = {key: p.default for key, p in parameters.items() if p.default is not p.empty}
    asks = inspect.signature(rule).parameters

    def lookback(**settings: Any) -> int:
        if unknown := settings.keys() - defaults.keys():
            raise_invalid("lookback", f"{function.__name__} has {sorted(defaults)}", TypeError, given=sorted(unknown))
        return rule(**{key: value for key, value in (defaults | settings).items() if key in asks})

    return lookback


def _check_panels(name: str, panels: dict[str, Tensor]) -> None:
    check_panel(name, **panels)
    first, *others = panels.values()
    if any(panel.shape != first.shape for panel in others):  # no set of them: a symbolic shape has no hash
        raise_invalid(name, f"{', '.join(panels)} must have one shape", **panels)


def _check_setting(name: str, key: str, kind: Any, value: Any, least: int) -> None:
    if get_origin(kind) is Literal:
        if isinstance(value, bool) or value not in get_args(kind):
            raise_invalid(name, f"{key} must be one of {get_args(kind)}", **{key: value})
    elif kind is Period and isinstance(value, Tensor):
        if not value.is_floating_point():
            raise_invalid(name, f"{key} must be an int or a Tensor of floating point", TypeError, dtype=value.dtype)
    elif kind in (int, Period):
        check_integer(name, least, **{key: value})
    elif kind is float and (isinstance(value, bool) or not isinstance(value, float | int)):
        raise_invalid(name, f"{key} must be a number", TypeError, **{key: value})


def _wide(x: Any) -> Any:
    return x.float() if isinstance(x, Tensor) and x.dtype in HALF else x

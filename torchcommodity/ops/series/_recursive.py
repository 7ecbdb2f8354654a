"""Recursive averages, and recurrences of your own."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from torch_opkit.arguments import raise_invalid
from torchcommodity.ops.series._expression import Loop, Node, Number, Series, as_node, statement
from torchcommodity.ops.series._pointwise import ceil, where
from torchcommodity.ops.series._settings import Period, Seed, Smoothing
from torchcommodity.ops.series._time import sma


def recurrence(decay: Tensor | Number, step: Tensor | Number, initial: Tensor | Number = 0.0) -> Tensor:
    """y = decay y + step, with y = `initial` before the first row; a row with a missing value leaves it."""
    result: Tensor = statement("recurrence", decay, step, initial)
    return result


def smooth(x: Tensor, weight: Tensor | Number, initial: Tensor | Number = 0.0) -> Tensor:
    """y += weight (x - y), with y = `initial` before the first row; a row with a missing value leaves it."""
    result: Tensor = statement("smooth", x, weight, initial)
    return result


def exponential(
    x: Tensor,
    weight: Tensor | Number,
    seed: Period,
    min_count: Period,
    seed_weight: Tensor | Number | None = None,
) -> Tensor:
    """y = the sum of `seed_weight` (1 / `seed`) times the first `seed` values, then y += weight (x - y).

    A missing value leaves y unchanged. The first output is at value number `min_count`.
    """
    seed_weight = 1 / seed if seed_weight is None else seed_weight
    result: Tensor = statement("exponential", x, weight, seed, min_count, seed_weight)
    return result


def seed_rows(timeperiod: Period) -> Period:
    """Number of rows of the seed: a fraction is rounded up; missing where `timeperiod` is below 1."""
    return timeperiod if isinstance(timeperiod, int) else where(timeperiod >= 1, ceil(timeperiod))


def ema(x: Tensor, timeperiod: Period, mode: Seed = "talib") -> Tensor:
    """Exponential moving average of weight 2 / (timeperiod + 1)."""
    n = seed_rows(timeperiod)
    return exponential(x, 2 / (timeperiod + 1), n if mode == "talib" else 1, n)


def rma(x: Tensor, timeperiod: Period, mode: Smoothing = "talib") -> Tensor:
    """Wilder's moving average, of weight 1 / timeperiod; the simple mean of the window in mode "simple"."""
    if mode == "simple":
        if not isinstance(timeperiod, int):
            expected = 'timeperiod must be an int with mode="simple", whose mean has no weight to learn'
            raise_invalid("rma", expected, timeperiod="Tensor")
        return sma(x, timeperiod)
    n = seed_rows(timeperiod)
    return exponential(x, 1 / timeperiod, 1 if mode == "pandas" else n, n)


def recur(step: Callable[..., Any], *initial: Number) -> Any:
    """A recurrence of your own: `step(previous values) -> values`, which start from `initial`.

    Where a value is missing, the next row gets the one before it. Runs row by row; loops do not nest.

    Returns:
        The values of each row, as `step` returns them.
    """
    loop = Loop()
    registers = [Node("feedback", attributes=(float(value),), loop=loop) for value in initial]
    loop.feedbacks.extend(registers)
    results = step(*map(Series, registers))
    values = results if isinstance(results, tuple) else (results,)
    if len(values) != len(initial):
        expected = f"step must return as many values as there are initial ones, {len(initial)}"
        raise_invalid("recur", expected, returned=len(values))
    loop.results.extend(as_node(value) for value in values)
    return results

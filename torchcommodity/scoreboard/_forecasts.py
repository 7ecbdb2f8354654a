"""Forecasts of a submission, from a table of quantiles or from a function, in the order of the task."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.data import (
    DataError,
    Panel,
    QuantileTable,
    RowCalendar,
    horizon_code,
    signed_symbols,
    summarize_names,
)
from torchcommodity.forecast import PretrainedModel
from torchcommodity.models import positive_prices, price_after, scale_change, scale_inputs
from torchcommodity.scoreboard._task import Task
from torchcommodity.training import FitConfig, Progress, model_inputs, one_thread, price_scale

ForecastFunction = Callable[[Panel, tuple[int, ...], tuple[float, ...]], Any]
"""A forecaster: prices up to the origin, H horizons in rows and Q levels to prices `(H, N, Q)`."""


def pretrained_function(model: PretrainedModel) -> ForecastFunction:
    """A pretrained model, see `forecast.pretrained`, as a function that is called once per origin."""

    def function(panel: Panel, horizons: tuple[int, ...], levels: tuple[float, ...]) -> Tensor:  # (H, N, Q)
        config = replace(FitConfig.for_frequency(panel.frequency).model.har, horizons=horizons, levels=levels)
        scale = price_scale(panel.values.plain(), panel.symbols, signed_symbols(panel))
        inputs = scale_inputs(model_inputs(panel, horizons[-1]), scale)
        quantiles = model(inputs, len(panel) - 1, config).quantiles[0]
        return price_after(panel.values.plain()[-1][:, None], quantiles, None if scale is None else scale[:, None])

    return function


def align_quantiles(table: QuantileTable, task: Task) -> Tensor:  # (O, H, N, Q)
    """Quantiles of the cumulative log-return at the origins of a task, NaN where the table has none.

    Rows of Nixtla's layout whose step is no horizon of the task, or whose cutoff is no origin, are left out.

    Raises:
        DataError: with line and value: an unknown symbol or horizon, a second forecast, a date that is no origin, a
            forecast from an origin without a price; or a level of the task that the table does not have.
    """
    levels = _level_columns(table, task)
    horizon_numbers: dict[str, int] = {}
    calendar = RowCalendar(task.panel.frequency)
    for i, (horizon, name) in enumerate(task.horizon_names().items()):
        texts = (str(horizon), name, name.removesuffix("s"), horizon_code(horizon, calendar))
        horizon_numbers |= dict.fromkeys(texts, i)
    h = np.array([horizon_numbers.get(text.strip().lower(), -1) for text in table.horizons])
    columns = {symbol: n for n, symbol in enumerate(task.panel.symbols)}
    n = np.array([columns.get(symbol, -1) for symbol in table.symbols])
    position = np.searchsorted(task.origins, table.origins)
    o = np.where(np.isin(table.origins, task.origins), position, -1)
    symbols = summarize_names(task.panel.symbols, 12)

    def origin(row: int) -> str:
        return repr(str(table.origins[row]))

    table.reject(n < 0, f"a symbol of the task ({symbols})", lambda row: repr(table.symbols[row]))
    scored = (h >= 0) & (o >= 0)
    if not table.every_step:
        horizons = ", ".join(map(str, task.horizons))
        table.reject(h < 0, f"a horizon of the task ({horizons} rows)", lambda row: repr(table.horizons[row]))
        days = "the last day of a week with prices" if task.panel.frequency == "daily" else "a row of the prices"
        expected = f"an origin of the task: {days} in {task.first_year} to {task.last_year}"
        table.reject(o < 0, expected, origin)
    prices = task.prices.numpy()
    usable = (positive_prices(task.prices, task.scale) > 0).numpy()
    table.reject(scored & ~usable[o, n], "an origin on which the symbol has a positive price", origin)
    o, h, n = o[scored], h[scored], n[scored]
    first = np.unique(np.ravel_multi_index((o, h, n), tuple(task.targets.shape)), return_index=True)[1]
    duplicates = scored.copy()
    duplicates[np.flatnonzero(scored)[first]] = False
    expected = "one forecast of an origin, symbol and horizon, however written"
    table.reject(duplicates, expected, lambda row: repr(table.horizons[row]))
    values = table.values[scored][:, levels]
    scales = None if task.scale is None else task.scale[torch.from_numpy(n)][:, None]
    if table.unit == "price":
        log_returns = scale_change(torch.from_numpy(prices[o, n][:, None]), torch.from_numpy(values), scales).numpy()
    elif scales is not None and not scales.isnan().all():
        raise DataError(f"{table.label}: expected prices, since prices that may be negative have no log-return")
    else:
        log_returns = values
    quantiles = np.full((*task.targets.shape, len(task.levels)), np.nan)
    quantiles[o, h, n] = log_returns
    return torch.from_numpy(quantiles)


@one_thread()
def call_function(
    function: ForecastFunction | PretrainedModel, task: Task, progress: Progress | None = None
) -> Tensor:  # (O, H, N, Q)
    """Call a forecaster once per origin, with the prices up to that origin and nothing later.

    Args:
        function: called as function(panel, horizons, levels): a `Panel` whose last row is the origin, H numbers of
            rows, Q probabilities. It returns prices (H, N, Q), an array or a Tensor; NaN where it has no forecast. Or
            a pretrained model, see `forecast.pretrained`.
        task: origins, horizons and levels.
        progress: called as progress(done, total, description) after each origin.

    Raises:
        ValueError: the result has another shape, or a quantile that is infinite, not positive, or below that of a lower
            level; the message names the origin.
    """
    function = pretrained_function(function) if isinstance(function, PretrainedModel) else function
    parts = []
    panel = replace(task.panel, findings=())  # those of later rows would tell the future
    for k, origin in enumerate(task.origins):
        past = panel.between(None, origin)
        result = function(past, task.horizons, task.levels)
        prices = np.asarray(result.detach().cpu() if isinstance(result, Tensor) else result, dtype=np.float64)
        checked, last = torch.from_numpy(_check_prices(prices, task, str(origin))), past.values.plain()[-1]
        parts.append(scale_change(last[:, None], checked, None if task.scale is None else task.scale[:, None]))
        if progress is not None:
            progress(k + 1, len(task.rows), str(origin))
    return torch.stack(parts)


def _check_prices(prices: np.ndarray, task: Task, origin: str) -> np.ndarray:
    shape = len(task.horizons), len(task.panel.symbols), len(task.levels)
    if prices.shape != shape:
        raise ValueError(f"call_function: expected prices (horizons, symbols, levels) = {shape}; got {prices.shape}")
    missing = np.isnan(prices).all(-1)
    for expected, defects in {
        "a price at every level, or NaN at all of them": ~np.isfinite(prices).all(-1) & ~missing,
        "positive prices": (prices <= 0).any(-1) & (True if task.scale is None else task.scale.isnan().numpy()),
        "quantiles that do not decrease with the level": (np.diff(prices, axis=-1) < 0).any(-1),
    }.items():
        if defects.any():
            h, n = np.argwhere(defects)[0]
            got = ", ".join(f"{price:.6g}" for price in prices[h, n])
            where = f"from {origin}, {task.panel.symbols[n]}, horizon {task.horizons[h]}"
            raise ValueError(f"call_function: expected {expected}; got {got} {where}")
    return prices


def _level_columns(table: QuantileTable, task: Task) -> list[int]:
    columns = {round(level, 6): k for k, level in enumerate(table.levels)}
    if missing := [level for level in task.levels if round(level, 6) not in columns]:
        levels = ", ".join(f"{level:g}" for level in task.levels)
        raise DataError(
            f"{table.label}: expected the levels {levels}; got none of {', '.join(f'{level:g}' for level in missing)}"
        )
    return [columns[round(level, 6)] for level in task.levels]

"""Fan of a forecast: its quantiles on every day up to the last horizon, and their chart behind recent prices."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchcommodity.charts import (
    INK,
    LIGHT,
    MUTED,
    PAPER,
    Chart,
    chart_layout,
    date_line,
    forecast_decimals,
    line_trace,
    log_axis,
    quoted_decimals,
)
from torchcommodity.data import Panel
from torchcommodity.forecast._calendar import Dates
from torchcommodity.forecast._contract_rolls import symbol_roll_days
from torchcommodity.forecast._intervals import interval_name, intervals, level_index, main_interval

BAND_COLORS = tuple(LIGHT[name] for name in ("band50", "band80", "band90"))
LOG_RATIO = 5  # of the highest to the lowest price from which the price axis is logarithmic


class Fan(NamedTuple):
    """Quantiles of one symbol from its last price to the last horizon."""

    rows: np.ndarray  # (R,) rows after the last price, from 0
    dates: Dates  # (R,)
    prices: np.ndarray  # (R, Q)

    def quantile(self, index: int) -> list[float]:
        """Prices at one level, with more digits than a screen shows."""
        return [float(f"{price:.6g}") for price in self.prices[:, index]]


def interpolate_quantiles(log_returns: Tensor, horizons: Sequence[int], rows: Sequence[int]) -> Tensor:
    """Interpolate quantiles of the cumulative log-return linearly in the square root of time.

    The quantiles of a random walk grow with the square root of time, so between two horizons those of a forecast nearly
    do; straight lines in time would show a range that is too narrow, most of all before the first horizon.

    Args:
        log_returns: `(H, ..., Q)` quantiles at the horizons.
        horizons: H ascending numbers of rows, from 1 on.
        rows: R numbers of rows ahead, from 0 (the origin, where the log-return is 0) to the last horizon.

    Returns:
        `(R, ..., Q)`; at a horizon, the quantiles of the forecast.

    Raises:
        ValueError: a row before the origin or after the last horizon.

    Example:
        >>> quantiles = torch.tensor([[-0.02, 0.0, 0.03], [-0.04, 0.0, 0.06]], dtype=torch.float64)
        >>> interpolate_quantiles(quantiles, horizons=(4, 16), rows=(1, 4, 9)).round(decimals=3).tolist()
        [[-0.01, 0.0, 0.015], [-0.02, 0.0, 0.03], [-0.03, 0.0, 0.045]]
    """
    outside = [row for row in rows if not 0 <= row <= horizons[-1]]
    if outside:
        raise ValueError(f"interpolate_quantiles: rows must lie between 0 and {horizons[-1]}; got {outside[0]}")
    knots = torch.tensor([0, *horizons], dtype=torch.float64).sqrt()
    curve = torch.cat([torch.zeros_like(log_returns[:1]), log_returns])  # (1 + H, ..., Q)
    times = torch.tensor(list(rows), dtype=torch.float64).sqrt()
    right = torch.searchsorted(knots, times).clamp(min=1)
    weight = ((times - knots[right - 1]) / (knots[right] - knots[right - 1])).to(curve.dtype)
    # a quantile at a horizon is exact: lerp returns its end point for a weight of 1
    return torch.lerp(curve[right - 1], curve[right], weight.reshape(-1, *[1] * (curve.ndim - 1)))


def draw_fan(
    fan: Fan, horizons: Sequence[int], levels: Sequence[float], history: Panel, n: int, unit: str, last: float
) -> Chart:
    """Recent prices of symbol n of a panel, the median and the `intervals` of its forecast, and its rolls."""
    origin, prices = str(fan.dates[0]), history.values.plain()[:, n].numpy()
    quoted, has_price = quoted_decimals(prices), np.isfinite(prices)  # the line connects across missing prices
    traces = _bands(fan, levels)
    past = line_trace(list(map(str, history.dates[has_price])), prices[has_price], INK, "price", digits=6)
    traces.append({**past, "legendrank": 1, "hovertemplate": f"%{{y:,.{quoted}f}}"})
    if 0.5 in level_index(levels):
        traces.append(_median(fan, horizons, levels, forecast_decimals(last, quoted)))
    if (rolls := _rolls(fan, levels, history, n))["x"]:
        traces.append(rolls)
    prices_in_view = np.concatenate([prices[has_price], fan.prices.ravel()])
    is_log = bool(prices_in_view.min() > 0 and prices_in_view.max() > LOG_RATIO * prices_in_view.min())
    title = escape(unit or "price") + ", log scale" * is_log
    layout = chart_layout(xaxis={"type": "date"}, yaxis={"title": {"text": title}} | (log_axis() if is_log else {}))
    label = {
        "x": origin,
        "y": 1,
        "yref": "paper",
        "text": f"last price, {origin}",
        "showarrow": False,
        "xanchor": "right",
        "yanchor": "top",
        "bgcolor": PAPER,
        "font": {"color": MUTED, "size": 12},
    }
    return {"data": traces, "layout": {**layout, "shapes": [date_line(origin, MUTED)], "annotations": [label]}}


def _bands(fan: Fan, levels: Sequence[float]) -> list[Chart]:
    """Opaque, so that each has the color of its legend; the widest first, below the others."""
    traces: list[Chart] = []
    dates, index, main = list(map(str, fan.dates)), level_index(levels), main_interval(levels)
    for rank, ((low, high), color) in reversed(list(enumerate(zip(intervals(levels), BAND_COLORS), start=3))):
        name, meta = f"{interval_name((low, high))} interval", {"meta": "main"} if (low, high) == main else {}
        line = {"line": {"color": color, "width": 0}, "hoverinfo": "skip"}
        edge = {**line_trace(dates, (), color, name), **line, **meta}
        traces.append({**edge, "y": fan.quantile(index[low]), "showlegend": False})
        fill = {"fill": "tonexty", "fillcolor": color, "legendrank": rank}
        traces.append({**edge, **fill, "y": fan.quantile(index[high])})
    return traces


def _median(fan: Fan, horizons: Sequence[int], levels: Sequence[float], decimals: int) -> Chart:
    """The median, with markers at the horizons and the intervals in the text of each point."""
    index, texts = level_index(levels), []
    for prices in fan.prices:
        lines = [f"median {prices[index[0.5]]:,.{decimals}f}"]
        for low, high in intervals(levels):
            bounds = f"{prices[index[low]]:,.{decimals}f} to {prices[index[high]]:,.{decimals}f}"
            lines.append(f"{interval_name((low, high))}: {bounds}")
        texts.append("<br>".join(lines))
    trace = line_trace(list(map(str, fan.dates)), fan.prices[:, index[0.5]], LIGHT["median"], "median", "lines+markers")
    sizes = np.where(np.isin(fan.rows, horizons), 6, 0).tolist()
    # without a width of zero where there is no marker, its outline would break the line in the legend
    outlines = {"width": [int(size > 0) for size in sizes]}
    marker = {**trace["marker"], "size": sizes, "opacity": 1, "line": outlines}
    return {**trace, "legendrank": 2, "marker": marker, "text": texts, "hovertemplate": "%{text}<extra></extra>"}


def _rolls(fan: Fan, levels: Sequence[float], history: Panel, n: int) -> Chart:
    """Marks on the line of prices, and on the median for rolls to come."""
    prices, index = history.values.plain()[:, n].numpy(), level_index(levels)
    has_price = np.isfinite(prices) & (
        history.dates <= fan.dates[0]
    )  # zero and negative prices may follow the last one
    days = np.concatenate([history.dates[has_price], fan.dates[1:]])
    middle = fan.prices[:, index[0.5]] if 0.5 in index else fan.prices.mean(1)
    values = np.concatenate([prices[has_price], middle[1:]])
    rolls = symbol_roll_days(history, n, fan.dates[-1])
    heights = np.interp(rolls.astype(np.int64), days.astype(np.int64), values)
    trace = line_trace(list(map(str, rolls)), heights, LIGHT["mark"], "roll", "markers")
    marker = {"symbol": "line-ns-open", "size": 12, "color": LIGHT["mark"], "line": {"width": 2}}
    return {**trace, "marker": marker, "legendrank": 6, "hovertemplate": "%{x|%Y-%m-%d}: next contract<extra></extra>"}

"""Fan chart of a forecast: recent prices, the median and the intervals of every day ahead."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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
from torchcommodity.forecast._calendar import Dates
from torchcommodity.forecast._contract_rolls import roll_dates
from torchcommodity.forecast._fan import interpolate_quantiles
from torchcommodity.forecast._intervals import interval_name, intervals, level_index, main_interval

if TYPE_CHECKING:
    from torchcommodity.forecast._forecast import Forecast

BAND_COLORS = tuple(LIGHT[name] for name in ("band50", "band80", "band90"))
STEPS = 48  # points of the fan, closest together at its start, where it bends most
LOG_RATIO = 5  # of the highest to the lowest price from which the price axis is logarithmic


class Fan(NamedTuple):
    """Quantiles of one symbol from its last price to the last horizon."""

    rows: np.ndarray  # (R,) rows after the last price, from 0
    dates: Dates  # (R,)
    prices: np.ndarray  # (R, Q)

    def quantile(self, index: int) -> list[float]:
        """Prices at one level, with more digits than a screen shows."""
        return [float(f"{price:.6g}") for price in self.prices[:, index]]


def make_fan(forecast: "Forecast", n: int, rows: Sequence[int] | None = None) -> Fan:
    """Quantiles of symbol n at the horizons and in between, on the calendar of its exchange.

    Args:
        forecast: quantiles at the horizons.
        n: number of the symbol.
        rows: ascending rows after the last price, from 0 to the last horizon; default: about 50, enough for a chart.
    """
    rows, origin = _chart_rows(forecast.horizons) if rows is None else rows, forecast.origins[n]
    quantiles = interpolate_quantiles(forecast.log_returns[:, n], forecast.horizons, rows)
    # the last price may be on a day that the calendar lacks, such as a holiday
    ahead = forecast.calendar.rows.following(origin, rows[1:], forecast.history.contracts[n])
    return Fan(np.array(rows), np.append(origin, ahead), (forecast.last[n] * quantiles.exp()).numpy())


def fan_chart(forecast: "Forecast", n: int) -> Chart:
    """Recent prices of symbol n, the median and the `intervals` of its forecast, and its rolls."""
    fan, origin, index = make_fan(forecast, n), str(forecast.origins[n]), level_index(forecast.levels)
    history = forecast.history.values.plain()[:, n].numpy()
    quoted = quoted_decimals(history)
    decimals = forecast_decimals(forecast.last[n].item(), quoted)
    traces = _bands(fan, forecast.levels)
    rows = np.isfinite(history)  # the line connects across missing prices
    past = line_trace(list(map(str, forecast.history.dates[rows])), history[rows], INK, "price", digits=6)
    traces.append({**past, "legendrank": 1, "hovertemplate": f"%{{y:,.{quoted}f}}"})
    if 0.5 in index:
        traces.append(_median(forecast, fan, index, decimals))
    if (rolls := _rolls(forecast, n, fan, index))["x"]:
        traces.append(rolls)
    shown = np.concatenate([history[rows], fan.prices.ravel()])
    is_log = bool(shown.min() > 0 and shown.max() > LOG_RATIO * shown.min())
    title = escape(forecast.units[n] or "price") + ", log scale" * is_log
    layout = chart_layout(xaxis={"type": "date"}, yaxis={"title": {"text": title}} | (log_axis() if is_log else {}))
    layout["shapes"], layout["annotations"] = [date_line(origin, MUTED)], [_last_price_label(origin)]
    return {"data": traces, "layout": layout}


def _chart_rows(horizons: Sequence[int]) -> list[int]:
    even = np.linspace(0, np.sqrt(horizons[-1]), STEPS) ** 2
    rows: list[int] = np.unique([*even.round().astype(int), *horizons]).tolist()
    return rows


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


def _median(forecast: "Forecast", fan: Fan, index: dict[float, int], decimals: int) -> Chart:
    """The median, with markers at the horizons and the intervals in the text of each point."""
    trace = line_trace(list(map(str, fan.dates)), fan.prices[:, index[0.5]], LIGHT["median"], "median", "lines+markers")
    sizes = np.where(np.isin(fan.rows, forecast.horizons), 6, 0).tolist()
    texts = [_point_text(prices, forecast.levels, decimals) for prices in fan.prices]
    marker = {**trace["marker"], "size": sizes, "opacity": 1}
    return {**trace, "legendrank": 2, "marker": marker, "text": texts, "hovertemplate": "%{text}<extra></extra>"}


def _point_text(prices: np.ndarray, levels: Sequence[float], decimals: int) -> str:
    index = level_index(levels)
    lines = [f"median {prices[index[0.5]]:,.{decimals}f}"]
    for low, high in intervals(levels):
        bounds = f"{prices[index[low]]:,.{decimals}f} to {prices[index[high]]:,.{decimals}f}"
        lines.append(f"{interval_name((low, high))}: {bounds}")
    return "<br>".join(lines)


def _rolls(forecast: "Forecast", n: int, fan: Fan, index: dict[float, int]) -> Chart:
    """Marks on the line of prices, and on the median for rolls to come."""
    panel = forecast.history
    prices = panel.values.plain()[:, n].numpy()
    known = np.isfinite(prices) & (panel.dates <= fan.dates[0])  # zero and negative prices may follow the last one
    days = np.concatenate([panel.dates[known], fan.dates[1:]])
    middle = fan.prices[:, index[0.5]] if 0.5 in index else fan.prices.mean(1)
    values = np.concatenate([prices[known], middle[1:]])
    rolls = roll_dates(panel, n, fan.dates[-1])
    levels = np.interp(rolls.astype(np.int64), days.astype(np.int64), values)
    trace = line_trace(list(map(str, rolls)), levels, LIGHT["mark"], "roll", "markers")
    marker = {"symbol": "line-ns-open", "size": 12, "color": LIGHT["mark"], "line": {"width": 2}}
    return {**trace, "marker": marker, "legendrank": 6, "hovertemplate": "%{x|%Y-%m-%d}: next contract<extra></extra>"}


def _last_price_label(origin: str) -> Chart:
    return {
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

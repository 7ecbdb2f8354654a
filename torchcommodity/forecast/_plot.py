"""Charts as plotly figures in plain dictionaries."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity.forecast._score import Score

if TYPE_CHECKING:
    from torchcommodity.forecast._forecast import Forecast

Chart = dict[str, Any]

INK, MUTED, GRID = "#1c2733", "#5a6875", "#e3e8ed"
COLORS = ("#0b5c8a", "#b3461b", "#3d7a3a", "#7a4a9c", "#8fb8d0", "#c8a24a")
BAND_COLORS = ("rgba(11,92,138,.42)", "rgba(11,92,138,.24)", "rgba(11,92,138,.13)")  # of the 50, 80 and 90 % interval
BANDS = ((0.25, 0.75), (0.10, 0.90), (0.05, 0.95))  # 50, 80 and 90 %


def figure(chart: Chart, title: str) -> Any:
    """Convert a chart to a standalone plotly Figure, with title, background and zoom."""
    import plotly.graph_objects as go  # slow to import

    result = go.Figure(chart).update_xaxes(fixedrange=False).update_yaxes(fixedrange=False)
    return result.update_layout(
        title=escape(title), margin={"t": 96}, paper_bgcolor="white", plot_bgcolor="white", title_y=0.96
    )


def fan_chart(forecast: "Forecast", n: int) -> Chart:
    """Recent prices of symbol n, then the median and the 50, 80 and 90 % intervals of its forecast at each horizon."""
    origin = str(forecast.origins[n])
    dates = [origin, *map(str, forecast.target_dates[:, n])]
    last = np.full((1, len(forecast.levels)), forecast.last[n].item())
    quantiles = np.concatenate([last, forecast.prices[:, n].numpy()])  # (1 + H, Q)
    index = level_index(forecast.levels)
    traces: list[Chart] = []
    for (low, high), color in reversed(list(zip(BANDS, BAND_COLORS))):
        if low in index and high in index:
            traces += _band(
                dates, quantiles[:, index[low]], quantiles[:, index[high]], color, f"{high - low:.0%} interval"
            )
    history = forecast.history.values.plain()[:, n].numpy()
    rows = np.isfinite(history)  # the line connects across missing prices
    traces.append(line_trace(list(map(str, forecast.history.dates[rows])), history[rows], INK, "price"))
    if 0.5 in index:
        traces.append(line_trace(dates, quantiles[:, index[0.5]], COLORS[0], "median", mode="lines+markers"))
    unit = forecast.units[n] or "price"
    layout = chart_layout(xaxis={"type": "date"}, yaxis={"title": {"text": escape(unit)}})
    layout["shapes"] = [date_line(origin, MUTED)]
    return {"data": traces, "layout": layout}


def skill_chart(scores: Sequence[Score]) -> Chart:
    """Bar chart of the skill of each model by horizon, without the reference model."""
    models = list(dict.fromkeys(row.model for row in scores))
    horizons = list(dict.fromkeys(row.horizon for row in scores))
    skill = {(row.model, row.horizon): row.skill for row in scores}
    traces = [
        {
            "type": "bar",
            "name": escape(model),
            "x": [f"{h} rows" for h in horizons],
            "y": [_rounded(skill[model, h], 3) for h in horizons],
        }
        for model in models
        if any(skill[model, h] for h in horizons)
    ]
    layout = chart_layout(
        xaxis={"type": "category", "title": {"text": "horizon"}}, yaxis={"title": {"text": "skill, % of pinball loss"}}
    )
    return {"data": traces, "layout": {**layout, "barmode": "group", "colorway": list(COLORS)}}


def level_index(levels: Sequence[float]) -> dict[float, int]:
    """Index of each quantile level.

    >>> level_index((0.05, 0.5, 0.95))[0.95]
    2
    """
    return {round(level, 3): index for index, level in enumerate(levels)}


def line_trace(
    x: Sequence[Any],
    y: Iterable[Any],
    color: str,
    name: str,
    mode: str = "lines",
    dash: str = "solid",
    digits: int = 4,
) -> Chart:
    """Line trace; values that are not finite are gaps."""
    return {
        "type": "scatter",
        "mode": mode,
        "x": x,
        "y": [_rounded(value, digits) for value in y],
        "name": name,
        "line": {"color": color, "width": 1.8, "dash": dash},
        "marker": {"size": 6, "color": color},
    }


def date_line(date: str, color: str) -> Chart:
    """Vertical dotted line, for `layout["shapes"]`."""
    line = {"color": color, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": date, "x1": date, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def chart_layout(xaxis: Chart, yaxis: Chart) -> Chart:
    """Common layout: transparent, horizontal legend above, no zoom."""
    axis = {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "automargin": True, "fixedrange": True}
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {**axis, **xaxis},
        "yaxis": {**axis, **yaxis},
    }


def _band(x: list[str], low: Iterable[float], high: Iterable[float], color: str, name: str) -> list[Chart]:
    lower = {
        **line_trace(x, low, color, name),
        "line": {"color": color, "width": 0},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    upper = {**lower, "y": [_rounded(v, 4) for v in high], "fill": "tonexty", "fillcolor": color, "showlegend": True}
    return [lower, upper]


def _rounded(value: float | None, digits: int) -> float | None:
    """`digits` + 2 significant digits, more than a screen shows; None where not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits + 2}g}")

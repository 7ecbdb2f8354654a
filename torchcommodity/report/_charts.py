"""Charts as plotly figures in plain dictionaries: data small, one hue, no decoration."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from torchcommodity.forecast import BANDS, Calendar, Correlation, places
from torchcommodity.report._contents import Contents
from torchcommodity.report._evidence import Evidence

Figure = dict[str, Any]

HISTORY = 260  # rows before the origin: about a year of days
INK, MUTED, GRID, ACCENT, MARK = "#1c2733", "#5a6875", "#e3e8ed", "#0b5c8a", "#b3461b"
SHADES = ("rgba(11,92,138,.42)", "rgba(11,92,138,.24)", "rgba(11,92,138,.13)")  # of the 50, 80 and 90 % band
LINES = ("#0b5c8a", "#b3461b", "#3d7a3a", "#7a4a9c")


def fan(contents: Contents, n: int) -> Figure:
    """Recent prices of symbol n, then median and bands of its forecast at each horizon."""
    forecast, origin = contents.forecast, str(contents.forecast.origins[n])
    panel = contents.panel.select([forecast.symbols[n]])
    dates, prices = panel.dates[-HISTORY:], panel.values.plain()[-HISTORY:, 0].tolist()
    ahead = [origin, *(contents.calendar.ahead(origin, h) for h in forecast.horizons)]
    quantiles = _with_origin(forecast.prices[:, n].numpy(), forecast.last[n].item())  # (1 + H, Q)
    place = places(forecast.levels)
    data: list[Figure] = []
    for (low, high), shade in reversed(list(zip(BANDS, SHADES))):
        if low in place and high in place:
            data += _band(ahead, quantiles[:, place[low]], quantiles[:, place[high]], shade, f"{high - low:.0%} band")
    data.append(line(list(map(str, dates)), prices, INK, "price"))
    if 0.5 in place:
        data.append(line(ahead, quantiles[:, place[0.5]], ACCENT, "median", mode="lines+markers"))
    unit = forecast.units[n] or "price"
    layout = framed(yaxis={"title": {"text": escape(unit)}}, xaxis={"type": "date"})
    layout["shapes"] = [_upright(origin, MUTED)]
    return {"data": data, "layout": layout}


def calibration(evidence: Evidence, calendar: Calendar) -> Figure:
    """Share of outcomes at or below each quantile against its level; on the diagonal, the forecast keeps its word."""
    levels = list(evidence.levels)
    data = [line([0, 1], [0, 1], MUTED, "perfect", dash="dot")]
    for (rows, share), color in zip(evidence.calibration.items(), LINES * len(evidence.calibration)):
        data.append(line(levels, share, color, calendar.name(int(rows)), mode="lines+markers", digits=3))
    axis = {"range": [0, 1], "tickformat": ".0%"}
    layout = framed(
        xaxis={**axis, "title": {"text": "stated: quantile level"}},
        yaxis={**axis, "title": {"text": "happened: outcomes at or below it"}},
    )
    return {"data": data, "layout": {**layout, "hovermode": "closest"}}


def correlation_path(found: Correlation) -> Figure:
    """Average correlation of all pairs over time, with the days on which the regime changed."""
    keep = np.flatnonzero(np.isfinite(found.mean))
    keep = keep[:: max(1, len(keep) // 1000)]
    path = line(list(map(str, found.dates[keep])), found.mean[keep], ACCENT, "average correlation", digits=3)
    layout = framed(xaxis={"type": "date"}, yaxis={"range": [-1, 1], "title": {"text": "average correlation of pairs"}})
    layout["shapes"] = [_upright(date, MARK) for date in found.changes]
    return {"data": [path], "layout": {**layout, "showlegend": False}}


def correlation_map(found: Correlation) -> Figure:
    """The latest correlation matrix, written into its cells."""
    names = [escape(symbol) for symbol in found.symbols]
    cells = [[None if np.isnan(x) else round(float(x), 2) for x in row] for row in found.latest]
    heat = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": cells,
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, "#b3461b"], [0.5, "#f7f8f9"], [1, "#0b5c8a"]],
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{x}, %{y}: %{z:.2f}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickvals": [-1, 0, 1]},
    }
    axis = {"type": "category", "showgrid": False}
    layout = framed(xaxis=axis, yaxis={**axis, "autorange": "reversed"})
    return {"data": [heat], "layout": {**layout, "hovermode": "closest"}}


def _with_origin(quantiles: "np.ndarray[Any, Any]", last: float) -> "np.ndarray[Any, Any]":
    return np.concatenate([np.full((1, quantiles.shape[1]), last), quantiles])


def line(
    x: Sequence[Any],
    y: Iterable[Any],
    color: str,
    name: str,
    mode: str = "lines",
    dash: str = "solid",
    digits: int = 4,
) -> Figure:
    line = {"color": color, "width": 1.8, "dash": dash}
    return {
        "type": "scatter",
        "mode": mode,
        "x": x,
        "y": [_short(value, digits) for value in y],
        "name": name,
        "line": line,
        "marker": {"size": 6, "color": color},
    }


def _band(x: list[str], low: Iterable[float], high: Iterable[float], shade: str, name: str) -> list[Figure]:
    edge = {"color": shade, "width": 0}
    lower = {**line(x, low, shade, name), "line": edge, "showlegend": False, "hoverinfo": "skip"}
    return [
        lower,
        {**lower, "y": [_short(v, 4) for v in high], "fill": "tonexty", "fillcolor": shade, "showlegend": True},
    ]


def _short(value: float | None, digits: int) -> float | None:
    """Six significant digits are more than a screen shows."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits + 2}g}")


def _upright(date: str, color: str) -> Figure:
    line = {"color": color, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": date, "x1": date, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def framed(xaxis: Figure, yaxis: Figure) -> Figure:
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

"""Charts of a backtest and of correlations."""

from html import escape
from itertools import pairwise

import numpy as np

from torchcommodity.charts import COLORS, MUTED, PALETTE, Chart, chart_layout, date_line, line_trace
from torchcommodity.forecast import BacktestSummary, Calendar, Correlation


def calibration_chart(summary: BacktestSummary, calendar: Calendar) -> Chart:
    """Share of outcomes at or below each quantile, by level; a calibrated forecast is on the diagonal."""
    levels = list(summary.levels)
    traces = [line_trace([0, 1], [0, 1], MUTED, "calibrated", dash="dot")]
    for (rows, shares), color in zip(summary.calibration.items(), COLORS * len(summary.calibration)):
        traces.append(line_trace(levels, shares, color, calendar.name(int(rows)), mode="lines+markers", digits=3))
    axis = {"range": [0, 1], "tickformat": ".0%"}
    layout = chart_layout(
        xaxis={**axis, "title": {"text": "quantile level"}},
        yaxis={**axis, "title": {"text": "share of outcomes below"}},
    )
    return {"data": traces, "layout": {**layout, "hovermode": "closest"}}


def pit_chart(summary: BacktestSummary, calendar: Calendar) -> Chart:
    """Outcomes between quantiles over those expected there; bars of a calibrated forecast end at 1."""
    shown = _bin_edges(len(summary.levels))
    edges = np.array([0, *(summary.levels[q] for q in shown), 1])
    names = [f"{100 * low:.3g}\u2013{100 * high:.3g}" for low, high in pairwise(edges)]
    traces = []
    for (rows, shares), color in zip(summary.calibration.items(), COLORS * len(summary.calibration)):
        below = np.array([0, *(shares[q] for q in shown), 1])
        ratios = [None if np.isnan(x) else round(float(x), 3) for x in np.diff(below) / np.diff(edges)]
        name = calendar.name(int(rows))
        traces.append({"type": "bar", "x": names, "y": ratios, "name": name, "marker": {"color": color}})
    layout = chart_layout(
        xaxis={"type": "category", "title": {"text": "quantile levels, %"}},
        yaxis={"rangemode": "tozero", "title": {"text": "outcomes over expected"}},
    )
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 1,
        "y1": 1,
        "line": {"color": MUTED, "dash": "dot"},
    }
    return {"data": traces, "layout": {**layout, "barmode": "group", "shapes": [line]}}


def _bin_edges(levels: int) -> list[int]:
    """Numbers of the levels between the bars, about ten of them and symmetric: every second of 19 levels.

    >>> _bin_edges(5), _bin_edges(19)
    ([0, 1, 2, 3, 4], [1, 3, 5, 7, 9, 11, 13, 15, 17])
    """
    step = max(1, round((levels + 1) / 10))
    first = (levels - 1) // 2 % step
    return list(range(first, levels, step))


def correlation_chart(correlation: Correlation) -> Chart:
    """Average correlation of all pairs over time, with the dates on which the regime changed."""
    rows = np.flatnonzero(np.isfinite(correlation.mean))
    rows = rows[:: max(1, len(rows) // 1000)]
    dates = list(map(str, correlation.dates[rows]))
    trace = line_trace(dates, correlation.mean[rows], COLORS[0], "average correlation", digits=3)
    layout = chart_layout(
        xaxis={"type": "date"}, yaxis={"range": [-1, 1], "title": {"text": "average correlation of pairs"}}
    )
    layout["shapes"] = [date_line(date, COLORS[1]) for date in correlation.changes]
    return {"data": [trace], "layout": {**layout, "showlegend": False}}


def correlation_heatmap(correlation: Correlation) -> Chart:
    """The latest correlation matrix, with its values."""
    symbols = [escape(symbol) for symbol in correlation.symbols]
    cells = [[None if np.isnan(x) else round(float(x), 2) for x in row] for row in correlation.latest]
    heatmap = {
        "type": "heatmap",
        "x": symbols,
        "y": symbols,
        "z": cells,
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, COLORS[1]], [0.5, PALETTE["light"]["soft"]], [1, COLORS[0]]],
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{x}, %{y}: %{z:.2f}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickvals": [-1, 0, 1]},
    }
    axis = {"type": "category", "showgrid": False}
    layout = chart_layout(xaxis=axis, yaxis={**axis, "autorange": "reversed"})
    return {"data": [heatmap], "layout": {**layout, "hovermode": "closest"}}

"""Charts of a backtest and of correlations."""

from html import escape

import numpy as np

from torchcommodity.forecast import (
    COLORS,
    MUTED,
    PALETTE,
    BacktestSummary,
    Calendar,
    Chart,
    Correlation,
    chart_layout,
    date_line,
    line_trace,
)


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

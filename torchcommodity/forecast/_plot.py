"""Charts as plotly figures in plain dictionaries."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from torchcommodity.data import summarize_names
from torchcommodity.forecast._palette import PALETTE
from torchcommodity.forecast._score import Score

Chart = dict[str, Any]

LIGHT = PALETTE["light"]  # a page with a dark scheme replaces each color by the dark one of the same name
INK, MUTED, PAPER = LIGHT["ink"], LIGHT["muted"], LIGHT["paper"]
COLORS = tuple(LIGHT[name] for name in ("accent", "mark", "series3", "series4", "series5", "series6"))


def figure(chart: Chart, title: str) -> Any:
    """Convert a chart to a standalone plotly Figure with a title."""
    import plotly.graph_objects as go  # slow to import

    return go.Figure(chart).update_layout(title=escape(title), margin={"t": 96}, title_y=0.96)


def symbol_index(symbols: Sequence[str], symbol: str | None) -> int:
    """Index of the symbol of a chart, by default the first.

    Raises:
        ValueError: an unknown symbol.
    """
    if symbol is not None and symbol not in symbols:
        raise ValueError(f"plot: symbol must be one of {summarize_names(symbols, 20)}; got {symbol!r}")
    return 0 if symbol is None else symbols.index(symbol)


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


def log_axis() -> Chart:
    """Logarithmic axis whose every tick has its full number; plotly's default drops the power of ten of 2 and 5."""
    return {"type": "log", "tickformat": ",~g", "nticks": 3}  # more would crowd 60, 70, 80, 90


def chart_layout(xaxis: Chart, yaxis: Chart) -> Chart:
    """Common layout: horizontal legend above."""
    axis = {"gridcolor": LIGHT["grid"], "linecolor": LIGHT["line"], "zeroline": False, "automargin": True}
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": PAPER, "font": {"color": INK}},
        "modebar": {"bgcolor": PAPER, "color": MUTED, "activecolor": LIGHT["accent"]},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "xaxis": {**axis, **xaxis},
        "yaxis": {**axis, **yaxis},
    }


def _rounded(value: float | None, digits: int) -> float | None:
    """`digits` + 2 significant digits, more than a screen shows; None where not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits + 2}g}")

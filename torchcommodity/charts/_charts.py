"""The kit of every chart: colors in a light and a dark scheme, and parts of plotly figures in plain dictionaries."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data import summarize_names

# text has a contrast of at least 4.5 to 1
PALETTE = {
    "light": {
        "paper": "#ffffff", "ink": "#1c2733", "muted": "#51606e", "line": "#d5dce3", "grid": "#e3e8ed",
        "accent": "#0b5c8a", "mark": "#b3461b", "warn": "#fdf3e7", "better": "#22632a", "worse": "#9a3412",
        "band50": "#6e9dbb", "band80": "#a9c6d8", "band90": "#d3e2ec", "median": "#073b59", "soft": "#f4f6f8",
        "series3": "#3d7a3a", "series4": "#7a4a9c", "series5": "#8fb8d0", "series6": "#c8a24a",
    },
    "dark": {
        "paper": "#12181f", "ink": "#e4e9ee", "muted": "#a3b0bc", "line": "#2f3a45", "grid": "#26313b",
        "accent": "#6cb6e0", "mark": "#e58b5f", "warn": "#33261a", "better": "#7fca87", "worse": "#f0946a",
        "band50": "#4f83a3", "band80": "#37596f", "band90": "#263c4c", "median": "#d7ecfa", "soft": "#1b232c",
        "series3": "#7cc278", "series4": "#bf94dd", "series5": "#b4d8ec", "series6": "#e0c070",
    },
}  # fmt: skip

Chart = dict[str, Any]

LIGHT = PALETTE["light"]  # a page with a dark scheme replaces each color by the dark one of the same name
INK, MUTED, PAPER = LIGHT["ink"], LIGHT["muted"], LIGHT["paper"]
COLORS = tuple(LIGHT[name] for name in ("accent", "mark", "series3", "series4", "series5", "series6"))


def plotly_figure(chart: Chart, title: str) -> Any:
    """Convert a chart to a standalone plotly Figure with a title."""
    with extra("forecast"):
        import plotly.graph_objects as go

    return go.Figure(chart).update_layout(title=escape(title), margin={"t": 96}, title_y=0.96)


def symbol_index(symbols: Sequence[str], symbol: str | None) -> int:
    """Index of the symbol of a chart, by default the first.

    Raises:
        ValueError: an unknown symbol.
    """
    if symbol is not None and symbol not in symbols:
        raise ValueError(f"plot: symbol must be one of {summarize_names(symbols, 20)}; got {symbol!r}")
    return 0 if symbol is None else symbols.index(symbol)


def palette_css() -> str:
    """The colors as CSS variables, such as `--ink`, in the scheme that the reader's system prefers."""
    rules = []
    for scheme, colors in PALETTE.items():
        variables = " ".join(f"--{name}: {color};" for name, color in colors.items())
        rules.append(f":root {{ {variables} color-scheme: {scheme}; }}")
    light, dark = rules
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


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
        "y": [chart_number(value, digits) for value in y],
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


def chart_number(value: float | None, digits: int) -> float | None:
    """A value for a chart: `digits` + 2 significant digits, more than a screen shows; None where it is not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits + 2}g}")

"""Correlation section and its charts: correlation over time, regimes, and the latest matrix."""

from html import escape

import numpy as np

from torchcommodity.charts import COLORS, PALETTE, Chart, chart_layout, date_line, line_trace
from torchcommodity.forecast import CORRELATION_WINDOW, Correlation, pairs_by_strength
from torchcommodity.report._markup import Markup, details, element, figure, paragraph, section
from torchcommodity.report._tables import table

HEADING = "Correlation and regimes"
CAPTION = "Average correlation of all pairs; each dotted line marks the start of a new regime."
MAX_PAIRS = 10


def correlation_section(correlation: Correlation | None) -> Markup:
    """Correlation section, or the reason why there is none."""
    if correlation is None:
        reason = f"at least two symbols and {2 * CORRELATION_WINDOW} rows with prices on the same days are required."
        return section("correlation", HEADING, paragraph(f"No correlation: {reason}"))
    date, window, changes = correlation.latest_date, correlation.window, correlation.changes
    pairs = [(f"{a}, {b}", f"{value:+.2f}") for a, b, value in pairs_by_strength(correlation)[:MAX_PAIRS]]
    line = (
        f"Line chart of the average correlation from {correlation.dates[0]} to {correlation.latest_date} with "
        f"{len(changes)} regime changes."
    )
    description = f"Heat map of the correlation matrix on {date}; the table lists the strongest pairs."
    caption = f"Correlation of every pair over the last {window} rows."
    rule = (
        f"Correlation of log-returns over the last {window} rows. A new regime starts when the correlations differ on "
        f"average by more than {correlation.threshold} from those {window} rows earlier, at most once in {window} rows."
    )
    if sparse := [symbol for symbol in correlation.symbols if symbol not in correlation.dense]:
        rule += (
            f" Average and regimes use {', '.join(correlation.dense)}; {', '.join(sparse)} "
            f"{'has' if len(sparse) == 1 else 'have'} prices in too few rows."
        )
    if correlation.excluded:
        rule += f" Only the first {len(correlation.symbols)} symbols are used; {len(correlation.excluded)} are not."
    # not broken at the end of a line
    dates = [text for day in changes for text in (element("span", day, class_="short"), ", ")][:-1]
    return section(
        "correlation",
        HEADING,
        paragraph(rule),
        details("Average correlation over time", figure("correlation", line, CAPTION)),
        details(f"Dates of the {len(changes)} regime changes", paragraph(*dates) if changes else paragraph("none")),
        details(
            f"Correlations of all pairs, {date}",
            figure("matrix", description, caption, square=True),
            table("Strongest pairs", ("Pair", "Correlation"), pairs),
        ),
    )


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

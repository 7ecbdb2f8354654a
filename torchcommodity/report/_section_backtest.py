"""Past forecasts section and its charts: coverage and calibration out of sample, scores against every baseline."""

import math
from itertools import groupby, pairwise

import numpy as np

from torchcommodity.charts import COLORS, MUTED, Chart, chart_layout, line_trace
from torchcommodity.data import summarize_names
from torchcommodity.forecast import BacktestSummary, Calendar, interval_name, main_interval
from torchcommodity.report._comparisons import compare, describe_comparison, describe_scores
from torchcommodity.report._markup import Markup, details, element, figure, paragraph, section
from torchcommodity.report._report_data import ReportData
from torchcommodity.report._tables import format_percent, table, table_box, table_rows

MODEL_LABELS = {
    "unconditional": "Unconditional quantiles",
    "ewma": "EWMA (RiskMetrics)",
    "ewma63": "EWMA (half-life 63 rows)",
    "ewma13": "EWMA (half-life 13 rows)",
    "ewma3": "EWMA (half-life 3 rows)",
    "garch": "GARCH(1,1)",
    "har": "HAR",
}
HEADING = "Past forecasts, checked"
NOTES = (
    "Pinball loss is the mean over quantile levels, in log-return; lower is better. Skill is the reduction of "
    "the pinball loss of the unconditional quantiles. p is the p-value of a Diebold-Mariano (DM) test of {model} "
    "against the row's model, adjusted for overlapping horizons; significant: p below 5 %. QLIKE scores the "
    "variance forecast."
)
CALIBRATION = (
    "Share of outcomes at or below each quantile. A calibrated forecast is on the dotted line; below it prices were "
    "higher than forecast, above it lower."
)
PIT_DESCRIPTION = (
    "Bar chart of the share of outcomes between neighboring quantiles over the share expected there, by horizon."
)
PIT = (
    "PIT histogram: outcomes between two levels, over those expected there. A calibrated forecast has bars of 1. High "
    "outer bars: the ranges were too narrow; a high middle: too wide."
)
COVERAGE = "Target: 90 %. Long horizons have few independent forecasts, so their shares vary more by chance."


def backtest_section(report: ReportData) -> Markup:
    """Past forecasts section, or the reason why there is no backtest."""
    summary, calendar = report.backtest, report.forecast.calendar
    if summary is None:
        return section("backtest", HEADING, paragraph(f"There is no backtest: {report.no_backtest}"))
    excluded = f" Not enough history: {', '.join(summary.excluded)}." if summary.excluded else ""
    setting = (
        f"Each year from {summary.first} to {summary.last} is forecast by models fitted on earlier rows only, with an "
        f"embargo of one horizon between training and test. Symbols: {summarize_names(summary.symbols, 6)}.{excluded}"
    )
    shares = (
        f"{format_percent(score.coverage90)} at {calendar.name(score.horizon)}"
        for score in summary.scores
        if score.model == summary.model
    )
    description = f"Calibration chart. Share of outcomes inside the 90 % interval: {', '.join(shares)}."
    return section(
        "backtest",
        HEADING,
        paragraph(element("strong", "Out of sample: yes. "), setting),
        paragraph(element("strong", describe_scores(summary))),
        _horizons(summary, calendar),
        details(
            "Calibration",
            element(
                "div",
                figure("calibration", description, CALIBRATION, square=True),
                figure("pit", PIT_DESCRIPTION, PIT, square=True),
                class_="columns",
            ),
        ),
        _coverage(summary, calendar),
        details(
            "Scores of every model",
            score_table(summary, calendar),
            paragraph(NOTES.format(model=summary.model), class_="lead"),
        ),
    )


def score_table(summary: BacktestSummary, calendar: Calendar) -> Markup:
    """One table body per horizon, one row per model."""
    caption = f"Scores of {summary.model} and of every baseline, {summary.first} to {summary.last}"
    columns = ("Model", f"{summary.model} is", "Pinball loss, 1e-4", "Skill", "Inside 90 % interval", "QLIKE")
    bodies = []
    for horizon, scores in groupby(summary.scores, key=lambda score: score.horizon):
        name = element("th", calendar.name(horizon), scope="rowgroup", colspan=len(columns))
        rows = []
        for score in scores:
            comparison, text = compare(score), describe_comparison(score, summary.model)
            label = MODEL_LABELS.get(score.model, score.model)
            color = ("better" if comparison.better else "worse") if comparison and comparison.significant else None
            row = (
                element("em", label) if score.model == summary.model else label,
                element("span", text, class_=color) if text else "",
                f"{1e4 * score.pinball:.2f}",
                f"{score.skill:+.2f} %",
                format_percent(score.coverage90),
                f"{score.qlike:.3f}",
            )
            rows.append(row)
        bodies.append(element("tbody", element("tr", name, class_="group"), *table_rows(columns, rows, (0, 1))))
    return table_box(caption, columns, bodies, text_columns=(0, 1), stack="scores")


def _coverage(summary: BacktestSummary, calendar: Calendar) -> Markup | str:
    if all(math.isnan(share) for shares in summary.coverage.values() for share in shares.values()):
        return ""  # the forecast has no 90 % interval
    columns = ["Symbol", *map(calendar.name, summary.horizons)]
    coverage = [(symbol, *map(format_percent, shares.values())) for symbol, shares in summary.coverage.items()]
    return details(
        "Coverage of the 90 % interval by commodity",
        table("Share of outcomes inside the 90 % interval, by commodity", columns, coverage),
        paragraph(COVERAGE, class_="lead"),
    )


def _horizons(summary: BacktestSummary, calendar: Calendar) -> Markup:
    """How the tested model did at each horizon, over all commodities."""
    interval = main_interval(summary.levels)
    names = [] if interval is None else list(dict.fromkeys((interval_name(interval), "90 %")))
    caption = (
        f"Share of outcomes inside the intervals of {summary.model}, all commodities. Target: {' and '.join(names)}. "
        if names
        else ""
    )
    caption += "Skill: loss saved against unconditional quantiles"
    columns = ("Horizon", *(f"Inside {name}" for name in names), "Independent forecasts", "Skill")
    rows = []
    for score in summary.scores:
        if score.model == summary.model:
            h = str(score.horizon)
            records = [items[h] for items in summary.interval_coverage.values() if h in items]
            forecasts = sum(record.forecasts for record in records)
            inside = sum(record.share * record.forecasts for record in records)
            # forecasts of several commodities on the same days count once, because prices move together
            independent = max((record.independent for record in records), default=0)
            shares = [format_percent(inside / forecasts) if forecasts else "none", format_percent(score.coverage90)]
            name = calendar.name(score.horizon)
            rows.append((name, *shares[: len(names)], f"{independent:,}", f"{score.skill:+.1f} %"))
    return table(caption, columns, rows)


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
    layout["margin"]["r"] = 24  # half of the last label, 100 %, which plotly would leave out
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

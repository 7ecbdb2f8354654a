"""Past forecasts section: coverage and calibration out of sample, and scores against every baseline."""

import math
from itertools import groupby

from torchcommodity.data import summarize_names
from torchcommodity.forecast import BacktestSummary, Calendar, Score, interval_name, main_interval
from torchcommodity.report._blocks import details, figure, format_percent, paragraph, section
from torchcommodity.report._comparisons import compare, describe_comparison, describe_scores
from torchcommodity.report._markup import Markup, element
from torchcommodity.report._report_data import ReportData
from torchcommodity.report._tables import table, table_box, table_rows

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
    return section(
        "backtest",
        HEADING,
        paragraph(element("strong", "Out of sample: yes. "), _setting(summary)),
        paragraph(element("strong", describe_scores(summary))),
        _horizons(summary, calendar),
        details(
            "Calibration",
            element(
                "div",
                figure("calibration", _description(summary, calendar), CALIBRATION, square=True),
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
        rows = table_rows(columns, (_cells(score, summary.model) for score in scores), (0, 1))
        bodies.append(element("tbody", element("tr", name, class_="group"), *rows))
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
    scores = [score for score in summary.scores if score.model == summary.model]
    return table(caption, columns, [_horizon_cells(summary, calendar, score, len(names)) for score in scores])


def _horizon_cells(summary: BacktestSummary, calendar: Calendar, score: Score, intervals: int) -> tuple[str, ...]:
    h = str(score.horizon)
    records = [items[h] for items in summary.interval_coverage.values() if h in items]
    forecasts = sum(record.forecasts for record in records)
    inside = sum(record.share * record.forecasts for record in records)
    # forecasts of several commodities on the same days count once, because prices move together
    independent = max((record.independent for record in records), default=0)
    shares = [format_percent(inside / forecasts) if forecasts else "none", format_percent(score.coverage90)]
    return (
        calendar.name(score.horizon),
        *shares[:intervals],
        f"{independent:,}",
        f"{score.skill:+.1f} %",
    )


def _cells(score: Score, model: str) -> tuple[object, ...]:
    comparison = compare(score)
    color = ("better" if comparison.better else "worse") if comparison and comparison.significant else None
    name = MODEL_LABELS.get(score.model, score.model)
    return (
        element("em", name) if score.model == model else name,
        element("span", describe_comparison(score, model), class_=color),
        f"{1e4 * score.pinball:.2f}",
        f"{score.skill:+.2f} %",
        format_percent(score.coverage90),
        f"{score.qlike:.3f}",
    )


def _setting(summary: BacktestSummary) -> str:
    excluded = f" Not enough history: {', '.join(summary.excluded)}." if summary.excluded else ""
    return (
        f"Each year from {summary.first} to {summary.last} is forecast by models fitted on earlier rows only, with an "
        f"embargo of one horizon between training and test. Symbols: {summarize_names(summary.symbols, 6)}.{excluded}"
    )


def _description(summary: BacktestSummary, calendar: Calendar) -> str:
    shares = (
        f"{format_percent(score.coverage90)} at {calendar.name(score.horizon)}"
        for score in summary.scores
        if score.model == summary.model
    )
    return f"Calibration chart. Share of outcomes inside the 90 % interval: {', '.join(shares)}."

"""Backtest section: scores against every baseline, calibration and coverage."""

from collections.abc import Iterable
from itertools import groupby

from torchcommodity.forecast import BacktestSummary, Calendar, Score
from torchcommodity.report._blocks import figure, format_percent, paragraph, section
from torchcommodity.report._comparisons import compare, describe_comparison, describe_scores
from torchcommodity.report._markup import Markup, element, scroll_box, table
from torchcommodity.report._report_data import ReportData

MODEL_LABELS = {
    "unconditional": "Unconditional quantiles",
    "ewma": "EWMA (RiskMetrics)",
    "ewma63": "EWMA (half-life 63 rows)",
    "ewma13": "EWMA (half-life 13 rows)",
    "ewma3": "EWMA (half-life 3 rows)",
    "garch": "GARCH(1,1)",
    "har": "HAR",
}
HEADING = "Backtest"
NOTES = (
    "Pinball loss is the mean over quantile levels, in log-return; lower is better. Skill is the reduction of "
    "the pinball loss of the unconditional quantiles. p is the p-value of a Diebold-Mariano (DM) test of {model} "
    "against the row's model, adjusted for overlapping horizons; n.s.: not significant at 5 %. QLIKE scores the "
    "variance forecast."
)
CALIBRATION = (
    "Share of outcomes at or below each quantile. A calibrated forecast is on the dotted line; below it prices were "
    "higher than forecast, above it lower."
)
COVERAGE = "The nominal share is 90 %. Long horizons have few independent windows, so their shares vary more by chance."


def backtest_section(report: ReportData) -> Markup:
    """Backtest section, or the reason why there is no backtest."""
    summary, calendar = report.backtest, report.forecast.calendar
    if summary is None:
        return section("backtest", HEADING, paragraph(f"There is no backtest: {report.no_backtest}"))
    columns = ["Symbol", *map(calendar.name, summary.horizons)]
    coverage = [(symbol, *map(format_percent, shares.values())) for symbol, shares in summary.coverage.items()]
    return section(
        "backtest",
        HEADING,
        paragraph(_setting(summary)),
        paragraph(element("strong", describe_scores(summary))),
        score_table(summary, calendar),
        paragraph(NOTES.format(model=summary.model), class_="lead"),
        element("h3", "Calibration and coverage"),
        element(
            "div",
            figure("calibration", _description(summary, calendar), CALIBRATION, square=True),
            element(
                "div",
                table("Share of outcomes inside the 90 % interval, by symbol", columns, coverage),
                paragraph(COVERAGE, class_="lead"),
            ),
            class_="columns",
        ),
    )


def score_table(summary: BacktestSummary, calendar: Calendar) -> Markup:
    """One table body per horizon, one row per model."""
    caption = f"Scores of {summary.model} and of every baseline, {summary.first} to {summary.last}"
    columns = ("Model", f"DM test of {summary.model}", "Pinball loss, 1e-4", "Skill", "Inside 90 % interval", "QLIKE")
    head = (element("th", name, scope="col", class_="number" if i > 1 else None) for i, name in enumerate(columns))
    bodies: Iterable[Markup] = (
        element(
            "tbody",
            element(
                "tr", element("th", calendar.name(horizon), scope="rowgroup", colspan=len(columns)), class_="group"
            ),
            *(_row(score, summary.model) for score in scores),
        )
        for horizon, scores in groupby(summary.scores, key=lambda score: score.horizon)
    )
    content = element(
        "table", element("caption", element("span", caption)), element("thead", element("tr", *head)), *bodies
    )
    return scroll_box(content, caption)


def _row(score: Score, model: str) -> Markup:
    comparison = compare(score)
    color = ("better" if comparison.better else "worse") if comparison and comparison.significant else None
    cells = (
        f"{1e4 * score.pinball:.2f}",
        f"{score.skill:+.2f} %",
        format_percent(score.coverage90),
        f"{score.qlike:.3f}",
    )
    return element(
        "tr",
        element("th", MODEL_LABELS.get(score.model, score.model), scope="row"),
        element("td", describe_comparison(score, model), class_=f"short {color}" if color else "short"),
        *(element("td", cell, class_="number") for cell in cells),
        class_="tested" if score.model == model else None,
    )


def _setting(summary: BacktestSummary) -> str:
    excluded = f" Not enough history: {', '.join(summary.excluded)}." if summary.excluded else ""
    return (
        f"Each year from {summary.first} to {summary.last} is forecast by models fitted on earlier rows only, with an "
        f"embargo of one horizon between training and test. Symbols: {', '.join(summary.symbols)}.{excluded}"
    )


def _description(summary: BacktestSummary, calendar: Calendar) -> str:
    shares = (
        f"{format_percent(score.coverage90)} at {calendar.name(score.horizon)}"
        for score in summary.scores
        if score.model == summary.model
    )
    return f"Calibration chart. Share of outcomes inside the 90 % interval: {', '.join(shares)}."

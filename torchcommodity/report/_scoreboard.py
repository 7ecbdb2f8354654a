"""Scoreboard as one self-contained HTML page, and as JSON."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape

import torch

from torchcommodity.charts import COLORS, MUTED, Chart, chart_layout
from torchcommodity.data import frame_to_csv
from torchcommodity.report._comparisons import SIGNIFICANCE
from torchcommodity.report._documents import finite
from torchcommodity.report._markup import Markup, code, details, element, figure, join, paragraph, section
from torchcommodity.report._page import page
from torchcommodity.report._report_data import RunRecord
from torchcommodity.report._sections import created, reproduce_parts, scope_note, source_parts
from torchcommodity.report._tables import format_percent, table
from torchcommodity.scoreboard import PROTOCOL, REFERENCE, TRACKS, EntryScore, Scoreboard

SOURCES = {
    "reference": "reference",
    "default": "default of the package",
    "baseline": "baseline of the package",
    "model": "model, fitted here",
    "function": "function, run here",
    "file": "file of quantiles",
}
READING = (
    f"Skill is the share of the pinball loss of the reference, {REFERENCE}, that a model saves; above zero it is "
    "better. Models are ranked by the mean over the horizons.",
    "p is the two-sided p-value of a Diebold-Mariano test, with a long-run variance for overlapping targets; colored: "
    "below 5 %. It is not corrected for the number of models: of twenty equal ones, one is below 5 % by chance.",
    "The p of the best is that of the model confidence set, which is corrected: models at or below 0.10 are worse than "
    "the best one. It needs 20 blocks of targets that do not overlap.",
    "A function was called with the prices up to each origin and nothing later. Nobody can check when the quantiles of "
    "a file were made.",
)
RULES = (
    "Targets: log of a symbol's h-th later positive price over its price at the origin. A price of zero or below, and "
    "a row on which only other symbols trade, are none of its rows. Targets that end after the last test year are not "
    "scored.",
    "Fits of the package's models: once per test year, on the years before it; a target is used only if it has ended, "
    "an embargo of one horizon.",
    "Score: pinball loss, mean over levels, symbols and origins. Coverage: share of outcomes inside the central "
    "intervals.",
    "A forecast that a model does not make is scored as the reference's. A model that misses more than 2 % of a "
    "horizon is not scored there.",
)
FILES = (
    "scoreboard.csv has the scores of every model and horizon, scoreboard.json adds protocol, fingerprint and "
    "versions, scoreboard.md is the ranking in Markdown."
)
HEADS = (
    "Model", "Pinball loss, 1e-4", "Skill", f"p against {REFERENCE}", "Gain on default", "p against default",
    "p of the best", "In 50 %", "In 80 %", "In 90 %", "Own",
)  # fmt: skip


@dataclass(frozen=True)
class ScoreboardReportData:
    """Content of a scoreboard page: scores and the record of the run."""

    board: Scoreboard
    run: RunRecord


def scoreboard_html(report: ScoreboardReportData) -> str:
    """Convert a scoreboard to one HTML page."""
    board, run, task = report.board, report.run, report.board.task
    title = f"Scoreboard: {TRACKS[task.track].title if task.track in TRACKS else 'own prices'}"
    lead = (
        f"{len(task.panel.symbols)} symbols, {len(task.rows)} origins from {task.origins[0]} to {task.origins[-1]}, "
        f"{int(torch.isfinite(task.targets).sum()):,} forecasts of {len(task.levels)} quantiles. "
        f"Created {created(run)}."
    )
    header = join([element("h1", title), paragraph(lead, class_="lead"), scope_note("How to read it", READING)])
    columns = ("Model", "Made by", *task.horizon_names().values(), "Mean")
    rows = []
    for place, entry, scores, mean in board.ranked_entries():
        if any(scores):
            name = f"{place}. {entry.name}" if place else entry.name
            rows.append((name, SOURCES[entry.source], *map(_skill, scores), _signed(mean) if place else ""))
    caption = f"Skill in percent of the pinball loss of {REFERENCE}, with the p-value of the difference"
    ranking = table(caption, columns, rows, text_columns=(0, 1), stack="scores")
    notes = [element("li", f"{entry.name}: {entry.note}.") for entry in board.entries if entry.note]
    description = f"Dot chart: skill of each model at each horizon; best: {board.ranking()[0].name}."
    chart = figure("skill", description, "Skill of each model at each horizon; right of the line is better.")
    parts = (
        section("ranking", "Ranking", ranking, element("ul", *notes) if notes else "", chart),
        section("scores", "Scores by horizon", *_scores(board)),
        section("symbols", "Skill by symbol", *_symbols(board)),
        section("protocol", "Protocol", *_protocol(board)),
        section("source", "Prices", *source_parts(task.panel, run)),
        section("reproduce", "Reproduce", *reproduce_parts(run, FILES)),
    )
    figures = {"chart-skill": skill_dots(board)}
    tables = {"scores": frame_to_csv(board.to_pandas())}
    return page(title, header, parts, figures, run, tables)


def scoreboard_json(report: ScoreboardReportData) -> str:
    """Convert a scoreboard to one JSON document; NaN is null."""
    board, task = report.board, report.board.task
    document = {
        "format": "torchcommodity.scoreboard.1",
        "protocol": PROTOCOL,
        "track": task.track,
        "fingerprint": task.fingerprint,
        "frequency": task.panel.frequency,
        "years": [task.first_year, task.last_year],
        "symbols": list(task.panel.symbols),
        "origins": len(task.rows),
        "horizons": {str(h): name for h, name in task.horizon_names().items()},
        "levels": list(task.levels),
        "reference": REFERENCE,
        "default": board.default,
        "models": [asdict(entry) | {"mean_skill": board.mean_skill(entry.name)} for entry in board.ranking()],
        "scores": [asdict(row) for row in board.scores],
        "run": asdict(report.run),
    }
    return json.dumps(finite(document), allow_nan=False, ensure_ascii=False, indent=1) + "\n"


def skill_dots(board: Scoreboard) -> Chart:
    """Skill of each model, a dot for each horizon; the best model is on top."""
    names = [entry.name for entry in board.ranking() if any(s.model == entry.name for s in board.scores)]
    traces = []
    for (h, label), color in zip(board.task.horizon_names().items(), COLORS):
        points = [(s.skill, name) for name in names if (s := board.score(name, h)) is not None]
        x, y = zip(*points)
        marker = {"size": 10, "color": color}
        traces.append(
            {"type": "scatter", "mode": "markers", "name": label, "marker": marker, "x": [round(v, 3) for v in x],
             "y": list(map(escape, y)), "hovertemplate": "%{y}: %{x:+.2f} %"}
        )  # fmt: skip
    layout = chart_layout(
        xaxis={"title": {"text": f"skill, % of the pinball loss of {REFERENCE}"}, "ticksuffix": " %"},
        yaxis={"type": "category", "autorange": "reversed", "categoryarray": list(map(escape, names))},
    )
    line = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": MUTED, "width": 1}}
    return {"data": traces, "layout": {**layout, "hovermode": "closest", "shapes": [line]}}


def _scores(board: Scoreboard) -> Iterator[Markup]:
    yield paragraph(
        "Gain: share of the loss of the default model saved. Own: share of the forecasts that the model made itself."
    )
    for h, label in board.task.horizon_names().items():
        scores = [s for entry in board.ranking() if (s := board.score(entry.name, h)) is not None]
        caption = f"{label}: {scores[0].n:,} forecasts from {scores[0].dates:,} origins"
        rows = []
        for s in scores:
            tests = (_signed(s.skill), _p(s.p_reference), _signed(s.gain), _p(s.p_default), _p(s.p_best))
            shares = map(format_percent, (s.coverage50, s.coverage80, s.coverage90, s.share))
            rows.append((s.model, f"{1e4 * s.pinball:.2f}", *tests, *shares))
        yield details(caption, table(f"Loss, tests and coverage, {label}", HEADS, rows, stack="scores"))


def _symbols(board: Scoreboard) -> Iterator[Markup]:
    models = [entry.name for entry in board.ranking() if entry.name in board.symbol_skills and entry.name != REFERENCE]
    yield paragraph(f"Share of the loss of {REFERENCE} saved on each symbol, in percent.")
    for i, label in enumerate(board.task.horizon_names().values()):
        rows = [
            (symbol, *(_signed(board.symbol_skills[model][i, n].item()) for model in models))
            for n, symbol in enumerate(board.task.panel.symbols)
        ]
        yield details(label, table(f"Skill by symbol, {label}", ("Symbol", *models), rows, stack="scores"))


def _protocol(board: Scoreboard) -> Iterator[Markup]:
    task = board.task
    origins = "the last row of every week" if task.panel.frequency == "daily" else "every row"
    horizons = ", ".join(f"{h} rows ({name})" for h, name in task.horizon_names().items())
    levels = f"{task.levels[0]:g} to {task.levels[-1]:g}"
    facts = (
        f"Origins: {origins} in {task.first_year} to {task.last_year}. Horizons: {horizons}. {len(task.levels)} "
        f"quantile levels from {levels}.",
        *RULES,
    )
    yield paragraph(element("strong", f"{task.name}. "), "All models are scored on the same outcomes.")
    yield element("ul", *(element("li", fact) for fact in facts))
    yield paragraph("Fingerprint of the outcomes, the same wherever the same ones are scored: ", code(task.fingerprint))


def _skill(score: EntryScore | None) -> object:
    if score is None:
        return "not scored"
    if math.isnan(score.p_reference):
        return _signed(score.skill)
    color = ("better" if score.skill > 0 else "worse") if score.p_reference < SIGNIFICANCE else None
    return join(
        [
            element("span", _signed(score.skill), class_=color),
            element("span", f"p {_p(score.p_reference)}", class_="small"),
        ]
    )


def _p(value: float) -> str:
    return "" if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _signed(value: float) -> str:
    text = f"{value:+.2f}".replace("-0.00", "+0.00").replace("-", "\u2212")
    return "none" if math.isnan(value) else text

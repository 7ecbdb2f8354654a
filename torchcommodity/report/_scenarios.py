"""Scenarios as one self-contained HTML page, with their distance from real returns."""

from itertools import islice

import numpy as np

from torchcommodity.charts import COLORS, MUTED, Chart, chart_layout, line_trace, log_axis
from torchcommodity.data import SyntheticTensor
from torchcommodity.report._markup import Markup, element, figure, join, paragraph, section
from torchcommodity.report._page import page
from torchcommodity.report._report_data import RunRecord
from torchcommodity.report._sections import created, scope_note, versions_table
from torchcommodity.report._tables import table
from torchcommodity.scenarios import (
    BOOTSTRAP,
    GAN,
    PAST,
    REAL,
    UNTRAINED,
    ScenarioEvaluation,
    ScenarioRecord,
    Scenarios,
)

MAX_PATHS, MAX_CHARTS = 20, 5
GENERATORS = (GAN, UNTRAINED, BOOTSTRAP, PAST)
SCOPE = (
    "These paths are synthetic, not market prices. Training and scoring reject them, and every row of the table is "
    "marked.",
    "They show what could have happened in the market that the generator was fitted on, not what will happen.",
    "The distances below measure how close they are to real paths; where the bootstrap is closer, the table shows it.",
)
DISTANCE = (
    "Each window of {rows} rows is described by its stylized facts. For each fact, the Wasserstein-1 distance between "
    "its distribution over the generated and over the real windows, in standard deviations over the real ones; then "
    "the mean over a family, and over the families. Lower is closer. The real windows are those of {first} to {last}, "
    "none of which was used to fit a generator."
)
CLUSTERING = "Line chart: autocorrelation of absolute returns at lags 1 to 63, real, generated and from the bootstrap."
CLUSTERING_CAPTION = "Autocorrelation of absolute returns, mean over windows and symbols."


def scenarios_html(scenarios: Scenarios, evaluation: ScenarioEvaluation, record: ScenarioRecord, run: RunRecord) -> str:
    """Convert scenarios, their evaluation and the record of the fit to one HTML page."""
    title = f"Synthetic scenarios: {', '.join(symbol.partition(':')[2] for symbol in scenarios.symbols[:6])}"
    lead = f"{len(scenarios)} paths of {scenarios.returns.shape[1]} rows. Created {created(run)}."
    header = join([element("h1", title), paragraph(lead, class_="lead"), scope_note("What these paths are", SCOPE)])
    figures = {"chart-clustering": clustering_chart(evaluation)}
    path_figures = []
    for n, symbol in islice(enumerate(scenarios.symbols), MAX_CHARTS):
        figures[f"chart-paths-{n}"] = paths_chart(scenarios, n)
        description = f"Line chart of {min(MAX_PATHS, len(scenarios))} synthetic paths of {symbol}."
        path_figures.append(figure(f"paths-{n}", description, symbol))
    fit = (
        f"Fitted on {record.rows} rows from {record.first} to {record.through}; {record.excluded_rows} rows were "
        f"excluded because the return of a symbol is missing (no price, or a roll without a curve). "
        f"{record.steps} generator steps, seed {record.seed}."
    )
    source = f"Source: {run.source}; sha256 of prices, dates, symbols, contracts and curve: {run.data_sha256}."
    reproduction = paragraph(fit), element("pre", run.command), paragraph(source), versions_table(run)
    parts = (
        _distances(scenarios, evaluation),
        section("clustering", "Volatility clustering", figure("clustering", CLUSTERING, CLUSTERING_CAPTION)),
        section("paths", "Paths", *path_figures),
        section("reproduce", "Reproduce", *reproduction),
    )
    return page(title, header, parts, figures, run)


def clustering_chart(evaluation: ScenarioEvaluation) -> Chart:
    """Autocorrelation of absolute returns by lag."""
    names = {REAL: "real, out of sample", GAN: GAN, BOOTSTRAP: BOOTSTRAP}
    lags = list(range(1, len(evaluation.abs_autocorrelation[REAL]) + 1))
    lines = [
        line_trace(lags, evaluation.abs_autocorrelation[name], color, label, digits=3)
        for (name, label), color in zip(names.items(), COLORS)
    ]
    layout = chart_layout(
        xaxis={"title": {"text": "lag, rows"}}, yaxis={"title": {"text": "autocorrelation of absolute returns"}}
    )
    return {"data": lines, "layout": layout}


def paths_chart(scenarios: Scenarios, n: int) -> Chart:
    """The first paths of symbol n, from 1."""
    growth = SyntheticTensor(scenarios.returns[:MAX_PATHS, :, n]).cumsum(1).exp()
    rows = list(range(1, growth.shape[1] + 1))
    lines = [
        line_trace(rows, path, MUTED if k else COLORS[0], f"path {k + 1}") for k, path in enumerate(growth.tolist())
    ]
    title = {"text": f"{scenarios.symbols[n]}, start = 1, log scale"}
    layout = chart_layout(xaxis={"title": {"text": "row"}}, yaxis={**log_axis(), "title": title})
    return {"data": lines[::-1], "layout": {**layout, "showlegend": False, "hovermode": "closest"}}


def describe_evaluation(evaluation: ScenarioEvaluation) -> str:
    """Compare the generator with the bootstrap in one sentence."""
    generator, bootstrap = evaluation.distances[GAN], evaluation.distances[BOOTSTRAP]
    worse = [family for family in generator if family != "total" and generator[family] > bootstrap[family]]
    relation = "closer" if generator["total"] < bootstrap["total"] else "no closer"
    detail = f"the bootstrap is closer in {', '.join(worse)}" if worse else "it is closer in every family"
    return (
        f"In total the generator is {relation} to the real windows than the bootstrap ({generator['total']:.3f} "
        f"against {bootstrap['total']:.3f}); {detail}."
    )


def _distances(scenarios: Scenarios, evaluation: ScenarioEvaluation) -> Markup:
    frame, means = evaluation.to_pandas(), evaluation.fact_means()
    rows = [(family, *(f"{frame.loc[family, name]:.3f}" for name in GENERATORS)) for family in frame.index]
    facts = [(family, *(f"{means.loc[family, name]:.3f}" for name in (REAL, *GENERATORS))) for family in means.index]
    differences = list(evaluation.leave_one_year_out.values()) or [np.nan]
    low, high = min(differences), max(differences)
    text = DISTANCE.format(rows=scenarios.returns.shape[1], first=evaluation.first, last=evaluation.last)
    return section(
        "distances",
        "Distance from real windows",
        paragraph(text),
        table("Distance from real windows", ("Family of facts", *GENERATORS), rows, stack="scenarios"),
        paragraph(
            f"{describe_evaluation(evaluation)} With one calendar year left out, the difference of the totals ranges "
            f"from {low:+.3f} to {high:+.3f}; below zero the generator is closer."
        ),
        table("Means of the facts", ("Family of facts", REAL, *GENERATORS), facts, stack="scenarios"),
    )

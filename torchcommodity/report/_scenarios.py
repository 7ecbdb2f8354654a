"""Generated paths as one self-contained HTML page: what they are, how near they come to real ones, and where not."""

from itertools import islice

import numpy as np

from torchcommodity.data import SyntheticTensor
from torchcommodity.report._blocks import figure, paragraph, section
from torchcommodity.report._charts import LINES, MUTED, Figure, framed, line
from torchcommodity.report._contents import Run
from torchcommodity.report._markup import Markup, element, join, table
from torchcommodity.report._page import whole_page
from torchcommodity.scenarios import (
    BOOTSTRAP,
    OURS,
    PAST,
    REAL,
    UNTRAINED,
    ScenarioEvaluation,
    ScenarioRecord,
    Scenarios,
)

PATHS, CHARTS = 20, 5  # drawn
MAKERS = (OURS, UNTRAINED, BOOTSTRAP, PAST)
CLAIMS = (
    "These paths are synthetic: no market made them. Training and scoring refuse them, and every line of the table "
    "says so.",
    "They show what could have happened on the market that the generator was fitted on, not what will happen.",
    "They are as good as the distances below say, and no better; where the bootstrap is nearer, the table shows it.",
)
DISTANCE = (
    "Each window of {rows} rows is described by its stylized facts. For each fact, the Wasserstein-1 distance between "
    "its distribution over the generated and over the real windows, in standard deviations over the real ones; then "
    "the mean over a family, and over the families. Lower is nearer. The real windows are those of {first} to {last}, "
    "which no maker has seen."
)


def scenarios_html(made: Scenarios, judgement: ScenarioEvaluation, record: ScenarioRecord, run: Run) -> str:
    """The page."""
    title = f"Synthetic scenarios: {', '.join(symbol.partition(':')[2] for symbol in made.symbols[:6])}"
    parts = (_nearness(made, judgement), _memory(judgement), _paths(made), _reproduce(record, run))
    figures = {"chart-memory": memory_chart(judgement)}
    figures |= {f"chart-paths-{n}": paths_chart(made, n) for n in range(min(CHARTS, len(made.symbols)))}
    return whole_page(title, _header(title, made, run), parts, figures, run)


def memory_chart(judgement: ScenarioEvaluation) -> Figure:
    """Autocorrelation of the size of returns by lag: how long a wild day is remembered."""
    shown = {REAL: "real, unseen", OURS: OURS, BOOTSTRAP: BOOTSTRAP}
    lags = list(range(1, len(judgement.memory[REAL]) + 1))
    lines = [line(lags, judgement.memory[name], c, text, digits=3) for (name, text), c in zip(shown.items(), LINES)]
    axis = {"title": {"text": "autocorrelation of the size of returns"}}
    return {"data": lines, "layout": framed(xaxis={"title": {"text": "lag, rows"}}, yaxis=axis)}


def paths_chart(made: Scenarios, n: int) -> Figure:
    """The first paths of one symbol, from one."""
    growth = SyntheticTensor(made.returns[:PATHS, :, n]).cumsum(1).exp()
    rows = list(range(1, growth.shape[1] + 1))
    lines = [line(rows, path, MUTED if k else LINES[0], f"path {k + 1}") for k, path in enumerate(growth.tolist())]
    title = {"text": f"{made.symbols[n]}, start = 1"}
    layout = framed(xaxis={"title": {"text": "row"}}, yaxis={"title": title, "type": "log"})
    return {"data": lines[::-1], "layout": {**layout, "showlegend": False, "hovermode": "closest"}}


def _header(title: str, made: Scenarios, run: Run) -> Markup:
    claims = element("ul", *(element("li", claim) for claim in CLAIMS))
    lead = f"{len(made)} paths of {made.returns.shape[1]} rows. Made {run.made[:16].replace('T', ' ')} UTC."
    note = element("div", element("h2", "What these paths are, and what they are not"), claims, class_="note")
    return join([element("h1", title), paragraph(lead, class_="lead"), note])


def _nearness(made: Scenarios, judgement: ScenarioEvaluation) -> Markup:
    frame, means = judgement.frame(), judgement.means()
    rows = [(family, *(f"{frame.loc[family, name]:.3f}" for name in MAKERS)) for family in frame.index]
    facts = [(family, *(f"{means.loc[family, name]:.3f}" for name in (REAL, *MAKERS))) for family in means.index]
    low, high = min(judgement.without.values(), default=np.nan), max(judgement.without.values(), default=np.nan)
    words = DISTANCE.format(rows=made.returns.shape[1], first=judgement.first, last=judgement.last)
    return section(
        "nearness",
        "How near they come",
        paragraph(words),
        table("Distance from real windows", ("Family of facts", *MAKERS), rows),
        paragraph(
            f"{describe_evaluation(judgement)} With one calendar year left out the difference of the totals runs from "
            f"{low:+.3f} to {high:+.3f}; below zero the generator is nearer."
        ),
        table("Means of the facts", ("Family of facts", REAL, *MAKERS), facts),
    )


def describe_evaluation(judgement: ScenarioEvaluation) -> str:
    """One sentence: who is nearer to the real windows, and in which families."""
    ours, theirs = judgement.distances[OURS], judgement.distances[BOOTSTRAP]
    lost = [family for family in ours if family != "total" and ours[family] > theirs[family]]
    who = "nearer than" if ours["total"] < theirs["total"] else "no nearer than"
    where = f"the bootstrap is nearer in {', '.join(lost)}" if lost else "nearer in every family"
    return (
        f"In total the generator is {who} the bootstrap ({ours['total']:.3f} against {theirs['total']:.3f}); {where}."
    )


def _memory(judgement: ScenarioEvaluation) -> Markup:
    words = "Line chart: autocorrelation of the size of returns at lags 1 to 63, real, generated and bootstrapped."
    caption = "How long a wild day is remembered, mean over windows and symbols."
    return section("memory", "Clusters of volatility", figure("memory", words, caption))


def _paths(made: Scenarios) -> Markup:
    charts = [
        figure(f"paths-{n}", f"Line chart of {min(PATHS, len(made))} synthetic paths of {symbol}.", symbol)
        for n, symbol in islice(enumerate(made.symbols), CHARTS)
    ]
    return section("paths", "Paths", *charts)


def _reproduce(record: ScenarioRecord, run: Run) -> Markup:
    fitted = (
        f"Fitted on {record.rows} rows from {record.first} to {record.through}; {record.left_out} rows were left out, "
        f"on which the return of a symbol is not known (a missing price, or a roll without a curve). {record.steps} "
        f"steps of the generator, seed {record.seed}."
    )
    return section(
        "reproduce",
        "Reproduce",
        paragraph(fitted),
        element("pre", run.command),
        paragraph(
            f"Data asked from {run.source}; sha256 of the numbers, dates, symbols, contracts and curve: "
            f"{run.data_sha256}."
        ),
        table("Versions", ("Package", "Version"), run.versions.items(), texts=(0, 1)),
    )

"""Wins and losses against every baseline, and whether the forecast keeps its word."""

from itertools import groupby
from typing import Any

from torchcommodity.forecast import Calendar
from torchcommodity.report._blocks import figure, paragraph, percent, section
from torchcommodity.report._contents import Contents
from torchcommodity.report._evidence import Evidence, describe_score, outcome, tally
from torchcommodity.report._markup import Markup, element, table

MODELS = {
    "unconditional": "Unconditional quantiles",
    "ewma": "EWMA (RiskMetrics, half-life 11 rows)",
    "ewma63": "EWMA (half-life 63 rows)",
    "garch": "GARCH(1,1)",
    "har": "HAR",
}
NAME = "Walk-forward test"
HEADS = ("Model", "The tested model against it", "Pinball loss, 1e-4", "Skill", "Inside 90 % band", "QLIKE")
NOTES = (
    "Pinball loss is the mean over quantile levels, in log-return; smaller is better. Skill is the part of the "
    "unconditional quantiles' loss that a model saves. p is of the Diebold-Mariano test of the tested model against "
    "the row's, corrected for overlapping horizons; at p of 0.05 and more the difference may be chance. QLIKE scores "
    "the variance alone."
)
DIAGONAL = (
    "How often the price ended at or below each quantile. On the dotted line the forecast keeps its word; below it, "
    "prices ended higher than stated, above it lower."
)
FEW = "90 % is right. Long horizons leave few independent windows, so that some distance is chance."


def walk_forward(contents: Contents) -> Markup:
    """The whole test, or why there is none."""
    evidence, calendar = contents.evidence, contents.calendar
    if evidence is None:
        return section("walk-forward", NAME, paragraph(f"There is none: {contents.no_evidence}"))
    heads = ["Symbol", *map(calendar.name, evidence.horizons())]
    coverage = [(symbol, *map(percent, found.values())) for symbol, found in evidence.coverage.items()]
    return section(
        "walk-forward",
        NAME,
        paragraph(_setting(evidence)),
        paragraph(element("strong", tally(evidence)), " The table is whole, losses included."),
        scores(evidence, calendar),
        paragraph(NOTES, class_="lead"),
        element("h3", "Does it keep its word?"),
        element(
            "div",
            figure("calibration", _in_words(evidence, calendar), DIAGONAL, square=True),
            element(
                "div",
                table("Share of outcomes inside the 90 % band, by symbol", heads, coverage),
                paragraph(FEW, class_="lead"),
            ),
            class_="columns",
        ),
    )


def scores(evidence: Evidence, calendar: Calendar) -> Markup:
    """One body a horizon, one row a model."""
    caption = "Walk-forward scores of the model and of every baseline"
    head = (element("th", name, scope="col", class_="number" if i > 1 else None) for i, name in enumerate(HEADS))
    bodies = (
        element(
            "tbody",
            element("tr", element("th", calendar.name(horizon), scope="rowgroup", colspan=len(HEADS)), class_="group"),
            *(_model(row, evidence.model) for row in rows),
        )
        for horizon, rows in groupby(evidence.rows, key=lambda row: row["horizon"])
    )
    whole = element(
        "table", element("caption", element("span", caption)), element("thead", element("tr", *head)), *bodies
    )
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _model(row: dict[str, Any], model: str) -> Markup:
    found = outcome(row)
    cells = (
        f"{1e4 * row['pinball']:.2f}",
        f"{row['skill']:+.2f} %",
        percent(row["coverage90"]),
        "none" if row["qlike"] is None else f"{row['qlike']:.3f}",
    )
    return element(
        "tr",
        element("th", MODELS.get(row["model"], row["model"]), scope="row"),
        element("td", describe_score(row, model), class_=f"short {found.word}" if found and found.sure else "short"),
        *(element("td", cell, class_="number") for cell in cells),
        class_="ours" if row["model"] == model else None,
    )


def _setting(evidence: Evidence) -> str:
    out = f" Left out for want of history: {', '.join(evidence.left_out)}." if evidence.left_out else ""
    return (
        f"Every year from {evidence.first} to {evidence.last} was forecast by models that had seen earlier rows only, "
        f"with an embargo of one horizon between training and test; symbols: {', '.join(evidence.symbols)}.{out}"
    )


def _in_words(evidence: Evidence, calendar: Calendar) -> str:
    covered = {row["horizon"]: row["coverage90"] for row in evidence.rows if row["model"] == evidence.model}
    parts = (f"after {calendar.name(h)} {percent(share)}" for h, share in covered.items())
    return f"Calibration chart. Share of outcomes inside the 90 % band: {', '.join(parts)}."

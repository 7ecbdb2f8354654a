"""Correlation over time with its regimes, and the latest matrix."""

from torchcommodity.forecast import WINDOW, Correlation, pairs_by_strength
from torchcommodity.report._blocks import figure, paragraph, section
from torchcommodity.report._markup import Markup, element, table

NAME = "Correlation and its regimes"
CAPTION = "Average correlation of all pairs; a dotted line marks the start of a new regime."
STRONGEST = 10


def correlations(found: Correlation | None) -> Markup:
    """The whole section, or why there is none."""
    if found is None:
        words = f"There is none: it needs at least two symbols with {2 * WINDOW} rows and prices on the same days."
        return section("correlation", NAME, paragraph(words))
    dates = ", ".join(found.changes) if found.changes else "none"
    rows = [(f"{a}, {b}", f"{value:+.2f}") for a, b, value in pairs_by_strength(found)[:STRONGEST]]
    map_words = f"Heat map of the correlation matrix on {found.latest_date}; the table has the strongest pairs."
    return section(
        "correlation",
        NAME,
        paragraph(_rule(found)),
        figure("correlation", _in_words(found), CAPTION),
        element("details", element("summary", f"Dates of the {len(found.changes)} changes"), paragraph(dates)),
        element("h3", f"Latest correlations, {found.latest_date}"),
        element(
            "div",
            figure("matrix", map_words, f"Correlation of every pair over the last {found.window} rows.", square=True),
            table("Strongest pairs", ("Pair", "Correlation"), rows),
            class_="columns",
        ),
    )


def _rule(found: Correlation) -> str:
    late = [symbol for symbol in found.symbols if symbol not in found.steady]
    window = found.window
    text = (
        f"Correlation of log-returns over the last {window} rows. A new regime begins when the correlations differ on "
        f"average by more than {found.threshold} from those {window} rows before, at most once in as many."
    )
    if late:
        few = ", ".join(late)
        text += f" Average and regimes are of {', '.join(found.steady)}; left out for late or rare prices: {few}."
    if found.left_out:
        text += f" The first {len(found.symbols)} symbols are shown, {found.left_out} are not."
    return text


def _in_words(found: Correlation) -> str:
    return (
        f"Line chart of the average correlation from {found.dates[0]} to {found.latest_date} with {len(found.changes)} "
        "changes of regime."
    )

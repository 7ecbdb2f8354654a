"""Correlation section: correlation over time, regimes, and the latest matrix."""

from torchcommodity.forecast import CORRELATION_WINDOW, Correlation, pairs_by_strength
from torchcommodity.report._blocks import details, figure, paragraph, section
from torchcommodity.report._markup import Markup
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
    description = f"Heat map of the correlation matrix on {date}; the table lists the strongest pairs."
    caption = f"Correlation of every pair over the last {window} rows."
    return section(
        "correlation",
        HEADING,
        paragraph(_rule(correlation)),
        details("Average correlation over time", figure("correlation", _description(correlation), CAPTION)),
        details(f"Dates of the {len(changes)} regime changes", paragraph(", ".join(changes) if changes else "none")),
        details(
            f"Correlations of all pairs, {date}",
            figure("matrix", description, caption, square=True),
            table("Strongest pairs", ("Pair", "Correlation"), pairs),
        ),
    )


def _rule(correlation: Correlation) -> str:
    window = correlation.window
    text = (
        f"Correlation of log-returns over the last {window} rows. A new regime starts when the correlations differ on "
        f"average by more than {correlation.threshold} from those {window} rows earlier, at most once in {window} rows."
    )
    if sparse := [symbol for symbol in correlation.symbols if symbol not in correlation.dense]:
        text += (
            f" Average and regimes use {', '.join(correlation.dense)}; {', '.join(sparse)} "
            f"{'has' if len(sparse) == 1 else 'have'} prices in too few rows."
        )
    if correlation.excluded:
        text += f" Only the first {len(correlation.symbols)} symbols are used; {len(correlation.excluded)} are not."
    return text


def _description(correlation: Correlation) -> str:
    return (
        f"Line chart of the average correlation from {correlation.dates[0]} to {correlation.latest_date} with "
        f"{len(correlation.changes)} regime changes."
    )

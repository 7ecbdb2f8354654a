"""Plain text tables of the reports."""

from collections.abc import Sequence


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first and the last to the left, the others to the right."""
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    last = len(heads) - 1
    lines = []
    for row in [heads, *rows]:
        cells = [x.ljust(w) if k in (0, last) else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)

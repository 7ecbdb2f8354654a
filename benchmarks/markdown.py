"""Generated tables: in Markdown pages, and as CSV files beside them if they are long."""

import csv
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

LOAD_BEFORE = os.getloadavg()[0]
LONG = 40  # rows: a page shows a part of a longer table, and links a file with all of it
EXTREMES = 10  # rows of such a part
NUMBER = re.compile(r"\**([-+]?(?:[\d,]*\.?\d+(?:e[-+]?\d+)?|inf))x?\**")
Rows = Sequence[Sequence[str]]


def replace_table(page: Path, name: str, table: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`."""
    before, start, rest = page.read_text().partition(f"<!-- {name} -->")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not (start and end):
        raise SystemExit(f"{page}: no <!-- {name} --> ... <!-- /{name} -->")
    page.write_text(f"{before}{start}\n{table}\n{end}{after}")


def number(cell: str) -> str:
    """The number in a cell, without bold type, thousands separators and the x of a ratio; empty for another cell."""
    match = NUMBER.fullmatch(cell)
    return match[1].replace(",", "") if match else ""


def format_table(heads: Sequence[str], rows: Rows) -> str:
    """A table in Markdown; columns whose cells begin with numbers are aligned to the right."""
    columns = list(zip(*rows)) or [()] * len(heads)
    numeric = [any(column) and all(NUMBER.match(cell) for cell in column if cell) for column in columns]
    rule = f"|{'|'.join('---:' if right else '---' for right in numeric)}|"
    head, *lines = (f"| {' | '.join(row)} |" for row in [heads, *rows])
    return "\n".join([head, rule, *lines])


def read_table(text: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table in Markdown, whose cells contain no `|`."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines)
    return heads, rows


def write_csv(path: Path, heads: Sequence[str], rows: Rows) -> None:
    """Write cells of Markdown as data: numbers alone, names without marks of code."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows([number(cell) or cell.replace("`", "") for cell in row] for row in rows)


def sort_by(rows: Rows, column: int) -> list[Sequence[str]]:
    """Rows in the order of the numbers in a column, without those that have none."""
    return sorted((row for row in rows if number(row[column])), key=lambda row: float(number(row[column])))


def environment(setting: str) -> str:
    """What was run, when, at which commit, on which machine, and what else it did before and at the end."""
    return (
        f"{setting}; {date()}, commit {commit() or 'unknown'}, Python {platform.python_version()}, {processor()}, "
        f"{os.cpu_count()} cores, load {LOAD_BEFORE:.1f} before and {os.getloadavg()[0]:.1f} after."
    )


def date() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d")


def commit() -> str:
    """The commit, with -dirty if a file has changed since that no benchmark writes; empty without a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    name = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    changes = ["git", "diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)*.md", ":(top,exclude)docs/results"]
    return f"{name}-dirty" if name and subprocess.run(changes).returncode else name


def processor() -> str:
    """Name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

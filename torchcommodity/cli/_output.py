"""Output of the commands: progress, tables and sentences on a console that `--quiet` silences, and table files."""

import io
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from torchcommodity.data import Finding, Panel
    from torchcommodity.forecast import BacktestSummary, Calendar, Forecast, Location

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_LEVELS = 7  # printed if a forecast has no more, else those of `LEVELS`
MAX_ROWS = 10  # findings, symbols or trials printed; files and reports hold all of them


def console(quiet: bool = False) -> Console:
    """A console on standard output; with `quiet` it prints nothing."""
    return Console(quiet=quiet, highlight=False, emoji=False)


def plain(text: str) -> str:
    """Text as rich prints it unchanged: no markup, and characters that a terminal would obey are escaped."""
    if not text.isprintable():
        from torchcommodity.data import printable

        text = printable(text)
    return escape(text)


@contextmanager
def progress_bar(screen: Console, title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Progress bar, passed as the `progress` argument of `fit`, `backtest` and others; removed when work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=screen.quiet or not screen.is_terminal) as bar:
        task = bar.add_task(plain(title), total=None)

        def progress(done: int, total: int, description: str) -> None:
            bar.update(task, completed=done, total=total, description=plain(f"{title}, {description}"))

        yield progress


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[int] = (0,)) -> Table:
    """A plain table; cells are text, not markup; columns other than `left` are right-aligned."""
    left = set(left)
    result = Table(title=plain(title), title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for i, head in enumerate(heads):
        result.add_column(plain(head), justify="left" if i in left else "right", overflow="fold")
    for row in rows:
        result.add_row(*(plain(str(cell)) for cell in row))
    return result


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "panel"), count(2000, "panel")
    ('1 panel', '2,000 panels')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_line(screen: Console, text: str) -> None:
    """Print one line of plain text, unbroken, so that paths can be copied and searched."""
    screen.print(plain(text), soft_wrap=True)


def print_written(screen: Console, *paths: Path) -> None:
    """Print which files were written; of a symbolic link also the file that it points to."""
    names = (f"{path} ({path.resolve()})" if path.is_symlink() else str(path) for path in paths)
    print_line(screen, f"Wrote {', '.join(names)}")


def print_forecast(screen: Console, forecast: "Forecast", location: "Location | None" = None) -> None:
    """Print a table of price quantiles for each of the first `MAX_ROWS` symbols, and what moves its median."""
    from torchcommodity.report import format_price

    few = len(forecast.levels) <= MAX_LEVELS
    levels = [(q, level) for q, level in enumerate(forecast.levels) if few or round(level, 3) in LEVELS]
    heads = ["horizon", "date", *("median" if level == 0.5 else f"{round(100 * level, 2):g}%" for _, level in levels)]
    for n, symbol in enumerate(forecast.symbols[:MAX_ROWS]):
        origin, unit = str(forecast.origins[n]), forecast.units[n]
        rows = [
            [
                forecast.calendar.name(h),
                forecast.target_dates[i, n],
                *(format_price(forecast.prices[i, n, q].item()) for q, _ in levels),
            ]
            for i, h in enumerate(forecast.horizons)
        ]
        last = f"{format_price(forecast.last[n].item())}{f' {unit}' if unit else ''}"
        screen.print(table(f"{symbol}: {last} on {origin}", heads, rows, (0, 1)))
        if location is not None:
            print_line(screen, f"Median over {location.sentence(symbol)}.")
            screen.print()
    if (more := len(forecast.symbols) - MAX_ROWS) > 0:
        screen.print(f"and {more} more symbols; --out writes all of them")


def print_reading(screen: Console, panel: "Panel") -> None:
    """Print how a file was read, and its data-quality warnings."""
    print_read_as(screen, panel)
    print_findings(screen, panel.findings)


def print_read_as(screen: Console, panel: "Panel") -> None:
    """Print how a file was read."""
    if panel.read_as:
        print_line(screen, f"Read as {panel.read_as}.")


def print_findings(screen: Console, findings: "Sequence[Finding]", max_rows: int | None = MAX_ROWS) -> None:
    """Print data-quality warnings, one line each; many of one kind are one line with a count."""
    from torchcommodity.data import summarize_findings

    lines = summarize_findings(findings)
    for finding in lines[:max_rows]:
        screen.print(f"[yellow]warning:[/] {plain(str(finding))}", soft_wrap=True)
    if max_rows is not None and len(lines) > max_rows:
        screen.print(f"and {len(lines) - max_rows} more; `torchcommodity data check` prints all of them")


def print_backtest(screen: Console, summary: "BacktestSummary", calendar: "Calendar") -> None:
    """Print the walk-forward scores of every model."""
    from torchcommodity.report import describe_comparison, describe_scores, format_percent

    heads = ("model", "pinball 1e-4", "skill", "in 90 %", f"DM test of {summary.model}")
    result = table(f"Walk-forward, {summary.first} to {summary.last}", heads, (), (0, 4))
    for horizon, scores in groupby(summary.scores, key=lambda score: score.horizon):
        result.add_row(f"[bold]{plain(calendar.name(horizon))}[/]")
        for score in scores:
            result.add_row(
                plain(score.model),
                f"{1e4 * score.pinball:.2f}",
                f"{score.skill:+.2f} %",
                format_percent(score.coverage90),
                describe_comparison(score, summary.model),
            )
        result.add_section()
    result.caption, result.caption_justify = describe_scores(summary), "left"
    screen.print(result)


def command_line() -> str:
    """The command as typed, for the record in reports."""
    return shlex.join(["torchcommodity", *sys.argv[1:]])


def check_file(path: Path | None) -> None:
    """Reject an output file that cannot be written, before the work that fills it.

    Raises:
        ValueError: the path is a folder, or its folder cannot be written.
    """
    if path is not None:
        from torchcommodity.report import check_output_folder

        check_output_folder(path.parent, (path.name,))


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table atomically, as CSV, Parquet or JSON (one object per row) by the ending of `path`."""
    from torchcommodity.data import frame_to_csv, write_atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    elif path.suffix.lower() == ".json":
        text: str = frame.to_json(orient="records", date_format="iso", double_precision=15, indent=1)
        content = f"{text}\n".encode()
    else:
        content = frame_to_csv(frame).encode()
    write_atomic(path, content)

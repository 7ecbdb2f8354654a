"""What the commands print: progress and tables, on a console that `--quiet` silences."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from torchcommodity.data import Finding
from torchcommodity.forecast import BacktestSummary, Calendar, Forecast
from torchcommodity.report import describe_comparison, describe_scores, format_price
from torchcommodity.training import Progress as Step

SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST = 10  # findings or symbols printed; the report has all of them


def console(quiet: bool = False) -> Console:
    """To the standard output, or nowhere."""
    return Console(quiet=quiet, highlight=False)


@contextmanager
def steps(screen: Console, title: str) -> Iterator[Step]:
    """A progress bar as the `progress` of `forecast.fit` and `backtest`; it vanishes when the work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=screen.quiet) as bar:
        task = bar.add_task(escape(title), total=None)

        def step(done: int, of: int, what: str) -> None:
            bar.update(task, completed=done, total=of, description=escape(f"{title}, {what}"))

        yield step


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], texts: Iterable[int] = (0,)) -> Table:
    """A plain table; every cell is text, not markup."""
    left = set(texts)
    made = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for i, head in enumerate(heads):
        made.add_column(escape(head), justify="left" if i in left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(escape(str(cell)) for cell in row))
    return made


def quantiles(forecast: Forecast) -> Iterator[Table]:
    """A table of price quantiles for each of the first symbols."""
    levels = [(q, level) for q, level in enumerate(forecast.levels) if round(level, 3) in SHOWN]
    heads = ["horizon", "date", *("median" if level == 0.5 else f"{level:.0%}" for _, level in levels)]
    for n, symbol in enumerate(forecast.symbols[:MOST]):
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
        yield table(f"{symbol}: {last} on {origin}", heads, rows, (0, 1))


def scores(summary: BacktestSummary, calendar: Calendar) -> Table:
    """The walk-forward table, wins and losses."""
    heads = ("model", "pinball 1e-4", "skill", "in 90 %", f"{summary.model} against it")
    made = table(f"Walk-forward, {summary.first} to {summary.last}", heads, (), (0, 4))
    for horizon, rows in groupby(summary.scores, key=lambda row: row.horizon):
        made.add_row(f"[bold]{escape(calendar.name(horizon))}[/]")
        for row in rows:
            skill, inside = f"{row.skill:+.2f} %", f"{100 * row.coverage90:.1f} %"
            made.add_row(
                escape(row.model), f"{1e4 * row.pinball:.2f}", skill, inside, describe_comparison(row, summary.model)
            )
        made.add_section()
    made.caption, made.caption_justify = describe_scores(summary), "left"
    return made


def findings(screen: Console, found: Sequence[Finding], most: int | None = MOST) -> None:
    """Everything doubtful in the data with its treatment, a line each."""
    for finding in found[:most]:
        screen.print(f"[yellow]doubtful[/] {escape(str(finding))}", soft_wrap=True)
    if most is not None and len(found) > most:
        screen.print(f"and {len(found) - most} more; see the report, or `torchcommodity data check`")

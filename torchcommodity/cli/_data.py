"""`torchcommodity data`: check prices, keep them in the store, list what is kept."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.data import Store, read

app = typer.Typer(help="Check prices, keep them in the store, list what is kept.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="CSV or Parquet file, fred:ID,ID, eia:ID,ID, embedded")]
Place = Annotated[Path | None, typer.Option("--store", metavar="FILE", help="default: in your data folder")]


@app.command("add")
def add(
    source: Source,
    name: Annotated[str | None, typer.Option("--name", help="in the store; default: the source's own")] = None,
    store: Place = None,
    replace: Annotated[bool, typer.Option("--replace", help="a panel of this name that is stored already")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Keep prices in the store under a name, for `--data store:NAME`."""
    screen, place = show.console(quiet), Store(store)
    panel = read(source, store=place)
    name = name or Path(source).name.split(".")[0] or source
    place.add(panel, name, replace=replace)
    show.findings(screen, panel.findings)
    screen.print(f"Stored {escape(repr(panel))} as {escape(name)} in {escape(str(place.path))}", soft_wrap=True)


@app.command("list")
def list_(store: Place = None) -> None:
    """What the store holds."""
    screen, place = show.console(), Store(store)
    entries = place.list()
    if not entries:
        screen.print(f"Nothing is stored in {escape(str(place.path))}", soft_wrap=True)
        return
    rows = [
        (
            e.name,
            ", ".join(e.symbols[:6]) + (", ..." if len(e.symbols) > 6 else ""),
            e.rows,
            e.first,
            e.last,
            e.findings,
        )
        for e in entries
    ]
    screen.print(
        show.table(str(place.path), ("name", "symbols", "rows", "first", "last", "findings"), rows, (0, 1, 3, 4))
    )


@app.command("check")
def check(source: Source) -> None:
    """Read prices, print everything doubtful and how it is treated; exit code 2 where they cannot be trusted."""
    screen = show.console()
    panel = read(source)
    screen.print(escape(repr(panel)), soft_wrap=True)
    show.findings(screen, panel.findings, most=None)
    count = sum(finding.count for finding in panel.findings)
    screen.print(f"Accepted; {f'{count} doubtful, treated as stated' if count else 'nothing doubtful'}.")

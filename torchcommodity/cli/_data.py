"""`torchcommodity data`: check prices, and manage the price store."""

from pathlib import Path
from typing import Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._data_sources import sources

app = typer.Typer(
    help="Check prices and manage the price store.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", callback=options.check_source, help=f"Prices: {options.SOURCES}")
]
StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="Store file; default: in the user's data folder")
]

# findings of symbols that `fit` rejects
UNUSABLE = ("no positive price", "short history", "constant price", "mixed frequency")


@app.command("check")
def check(source: Source) -> None:
    """Check prices and print data-quality warnings.

    Exit code 0: the prices can be forecast; 2: they cannot, and the message says why.
    """
    from torchcommodity.data import inspect, summarize_names

    screen = output.console()
    panel = options.read_prices(source)
    output.print_line(screen, repr(panel))
    output.print_findings(screen, panel.findings, max_rows=None)
    if unusable := list(dict.fromkeys(finding.symbol for finding in inspect(panel) if finding.kind in UNUSABLE)):
        others = "" if len(unusable) == len(panel.symbols) else "; forecast --drop-unusable drops them"
        raise ValueError(f"data check: cannot be forecast: {summarize_names(unusable)}{others}")
    count = sum(finding.count for finding in panel.findings)
    screen.print(f"Usable, {output.count(count, 'warning') if count else 'no warnings'}.")


app.command("sources")(sources)


@app.command("add")
def add(
    source: Source,
    name: Annotated[str | None, typer.Option("--name", help="Name in the store; default: the source's name")] = None,
    store: StoreFile = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the stored panel of the same name")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Add prices to the store under a name, for `--data store:NAME`."""
    from torchcommodity.data import Store, read

    screen, target = output.console(quiet), Store(store)
    panel = read(source, store=target)
    name = name or Path(source).name.split(".")[0] or source
    target.add(panel, name, replace=replace)
    output.print_findings(screen, panel.findings)
    output.print_line(screen, f"Stored {panel!r} as {name} in {target.path}")


@app.command("list")
def list_(store: StoreFile = None) -> None:
    """List the panels in the store."""
    from torchcommodity.data import Store

    screen, target = output.console(), Store(store)
    entries = target.list()
    if not entries:
        output.print_line(screen, f"No panels in {target.path}")
        return
    rows = [
        (entry.name, _first_symbols(entry.symbols), entry.rows, entry.first, entry.last, entry.findings)
        for entry in entries
    ]
    heads = ("name", "symbols", "rows", "first", "last", "findings")
    screen.print(output.table(str(target.path), heads, rows, (0, 1, 3, 4)))


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name in the store")],
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Remove a panel from the store."""
    from torchcommodity.data import Store

    target = Store(store)
    target.remove(name)
    output.print_line(output.console(quiet), f"Removed {name} from {target.path}")


def _first_symbols(symbols: tuple[str, ...], count: int = 6) -> str:
    return ", ".join(symbols[:count]) + (", ..." if len(symbols) > count else "")

"""`torchcommodity data add, list, show, export, remove`: the price store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._data_sources import print_sources
from torchcommodity.cli._layout import DETECTED, AsOf, Layout, with_layout
from torchcommodity.cli._parse import parse_names

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Panel, Vintage

Source = Annotated[
    str, typer.Argument(metavar="SOURCE", callback=options.check_source, help=f"Prices: {options.SOURCES}")
]
StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="Store file; default: in the user's data folder")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name in the store")]

MAX_COLUMNS = 8  # symbols in the table of prices
MAX_VINTAGES = 10


@with_layout
def add(
    source: Source,
    name: Annotated[str | None, typer.Option("--name", help="Name in the store; default: the source's name")] = None,
    symbols: options.Symbols = None,
    publisher: options.Publisher = None,
    layout: Layout = DETECTED,
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Add prices to the store under a name, for `--data store:NAME`.

    A name that is stored already gets a new vintage: what is new, revised or withdrawn is appended, and --as-of reads
    the panel as it stood before.
    """
    from torchcommodity.data import NOT_STATED, Store, read

    screen, target = output.console(quiet), Store(store)
    names = None if symbols is None else parse_names(symbols)
    panel = read(source, names, publisher=publisher or NOT_STATED, store=target, **layout._asdict())
    name = name or (Path(source).name.split(".")[0] if Path(source).is_file() else source)
    vintage = target.add(panel, name)
    output.print_reading(screen, panel)
    output.print_line(screen, f"Stored {panel!r} as {name} in {target.path}: {describe_vintage(vintage)}")


def list_(store: StoreFile = None) -> None:
    """List the panels in the store."""
    from torchcommodity.data import Store

    screen, target = output.console(), Store(store)
    entries = target.list()
    if not entries:
        output.print_line(screen, f"No panels in {target.path}")
        return
    rows = [(e.name, _first_symbols(e.symbols), e.rows, e.first, e.last, e.vintages, e.added[:10]) for e in entries]
    heads = ("name", "symbols", "rows", "first", "last", "vintages", "updated")
    screen.print(output.table(str(target.path), heads, rows, (0, 1, 3, 4, 6)))


def show(
    name: Name,
    symbol: Annotated[
        str | None, typer.Option("--symbol", metavar="A,B", callback=options.check_symbols, help="Symbols to show")
    ] = None,
    as_of: AsOf = None,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Number of rows to show")] = 10,
    store: StoreFile = None,
) -> None:
    """Show the last prices of a stored panel, its vintages, sources and findings."""
    from torchcommodity.data import Store

    screen, target = output.console(), Store(store)
    panel, vintages = target.load(name, as_of), target.vintages(name)
    panel = panel if symbol is None else panel.select(parse_names(symbol))
    output.print_line(screen, repr(panel) + (f" as of {as_of}" if as_of else ""))
    _print_prices(screen, panel, last)
    _print_vintages(screen, vintages)
    print_sources(screen, "Sources", panel)
    output.print_findings(screen, panel.findings)


def export(
    name: Name,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="File (.csv, .parquet, .feather), object, or FILE.duckdb:TABLE")
    ],
    as_of: AsOf = None,
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a stored panel to a file, an object or a table, one row per date and symbol."""
    from torchcommodity.data import Store, write

    write(Store(store).load(name, as_of), target)
    output.print_line(output.console(quiet), f"Wrote {target}")


def remove(name: Name, store: StoreFile = None, quiet: options.Quiet = False) -> None:
    """Remove a panel from the store, with all its vintages."""
    from torchcommodity.data import Store

    target = Store(store)
    target.remove(name)
    output.print_line(output.console(quiet), f"Removed {name} from {target.path}")


def describe_vintage(vintage: "Vintage") -> str:
    """Number and changes of a vintage in words."""
    counts = {"new": vintage.new, "revised": vintage.revised, "withdrawn": vintage.withdrawn}
    changes = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
    prices = "price" if sum(counts.values()) == 1 else "prices"
    return f"vintage {vintage.number}, {changes or 'no new, revised or withdrawn'} {prices}"


def _print_prices(screen: "Console", panel: "Panel", last: int) -> None:
    from torchcommodity.report import format_price

    shown = panel.select(panel.symbols[:MAX_COLUMNS])
    values = shown.values.plain()[-last:].tolist()
    rows = [
        (str(date), *("" if price != price else format_price(price) for price in row))
        for date, row in zip(shown.dates[-last:], values)
    ]
    screen.print(output.table("Last prices", ("date", *shown.symbols), rows))
    if more := len(panel.symbols) - len(shown.symbols):
        screen.print(f"and {output.count(more, 'more symbol')}; --symbol A,B shows them")


def _print_vintages(screen: "Console", vintages: "list[Vintage]") -> None:
    heads = ("vintage", "known from (UTC)", "rows", "last", "new", "revised", "withdrawn")
    rows = [(v.number, v.known_from[:16], v.rows, v.last, v.new, v.revised, v.withdrawn) for v in vintages]
    screen.print(output.table("Vintages", heads, rows[-MAX_VINTAGES:], (1, 3)))
    if (more := len(rows) - MAX_VINTAGES) > 0:
        screen.print(f"and {output.count(more, 'earlier vintage')}; Store.vintages lists them")


def _first_symbols(symbols: tuple[str, ...], count: int = 6) -> str:
    return ", ".join(symbols[:count]) + (", ..." if len(symbols) > count else "")

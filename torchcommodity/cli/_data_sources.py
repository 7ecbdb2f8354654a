"""`torchcommodity data sources`: where prices come from, and the terms under which they may be used."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Panel

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        callback=options.check_source,
        help=f"Prices: {options.SOURCES}; default: all prices that ship with the package",
    ),
]
HEADS = ("symbol", "unit", "series", "first", "last")
TERMS = {"publisher": "Publisher", "license": "License", "location": "Address or file", "credit": "Credit line"}


def sources(source: Source = None) -> None:
    """List symbols with their units, publishers, series, spans, licenses and credit lines."""
    from torchcommodity.data import embedded_symbols, read

    screen = output.console()
    if source is not None:
        print_sources(screen, source, options.read_prices(source))
        return
    for name in ("embedded", "monthly"):
        default = read(name).symbols
        everything = embedded_symbols("monthly" if name == "monthly" else "daily")
        by_name = [symbol for symbol in everything if symbol not in default]
        print_sources(screen, name, read(name, everything))
        output.print_line(screen, f"Read only by name, with --symbols: {', '.join(by_name)}")


def print_sources(screen: "Console", name: str, panel: "Panel") -> None:
    """Print one row per symbol, and below it what many symbols share."""
    records = panel.sources()
    rows = [(r["symbol"], r["unit"], r["series"], *span) for r, span in zip(records, _spans(panel))]
    table = output.table(name, HEADS, rows, range(len(HEADS)))
    table.columns[0].no_wrap = True  # symbols are copied from here
    screen.print(table)
    for field, title in TERMS.items():
        for text, symbols in _groups(records, field):
            owners = "" if len(symbols) == len(records) else f" ({', '.join(symbols)})"
            output.print_line(screen, f"{title}: {text}{owners}")


def _spans(panel: "Panel") -> list[tuple[str, str]]:
    """First and last date with a price, by symbol."""
    dates = [panel.dates[prices] for prices in panel.values.plain().isfinite().numpy().T]
    return [(str(days[0]), str(days[-1])) if len(days) else ("", "") for days in dates]


def _groups(records: Iterable[dict[str, str]], field: str) -> list[tuple[str, list[str]]]:
    """The values of a field that are not blank, each with its symbols."""
    groups: dict[str, list[str]] = {}
    for record in records:
        if record[field]:
            groups.setdefault(record[field], []).append(record["symbol"])
    return list(groups.items())

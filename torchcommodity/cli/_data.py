"""`torchcommodity data`: check prices, list their sources, and manage the price store."""

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions, print_checks
from torchcommodity.cli._options import Quiet
from torchcommodity.cli._parse import parse_names, reject_unless
from torchcommodity.cli._prices import (
    EMBEDDED,
    SOURCES,
    AsOf,
    Publisher,
    Source,
    SourceOptions,
    Spreads,
    Symbols,
    check_source,
    read_prices,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from torchcommodity.data import Panel, PriceForm, Vintage

app = typer.Typer(
    help="Check prices and manage the price store.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="Store file; default: in the user's data folder")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name in the store")]

# findings of symbols that `fit` rejects
UNUSABLE = ("no positive price", "short history", "constant price", "mixed frequency")
TERMS = {"publisher": "Publisher", "license": "License", "location": "Address or file", "credit": "Credit line"}
MAX_COLUMNS = 8  # symbols in the table of prices
MAX_SYMBOLS = 6  # symbols of a panel in the list of the store
MAX_VINTAGES = 10
MAX_FORMS = 20  # symbols with prices of zero or below


@app.command("check")
@with_bundles
def check(
    *,
    source: Source,
    publisher: Publisher = None,
    spread: Spreads = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with every finding")] = False,
    covariates: CovariateOptions,
    source_options: SourceOptions,
) -> None:
    """Check prices, print data-quality warnings, and say which prices are forecast in logs and which as asinh(P / S).

    With --covariates, it also says when each covariate was known.

    Exit code 0: the prices can be forecast; 2: they cannot, and the message says why.
    """
    from torchcommodity.data import inspect, price_forms, summarize_findings, summarize_names

    screen = output.console()
    panel = read_prices(source, publisher=publisher, spreads=spread, options=source_options)
    forms = price_forms(panel)
    findings = [finding for finding in panel.findings if finding.kind != "signed prices"]  # the forms say it
    reasons = {
        finding.symbol: f"{finding.kind}: {finding.value}" for finding in inspect(panel) if finding.kind in UNUSABLE
    }
    unusable = {symbol: reasons[symbol] for symbol in panel.symbols if symbol in reasons}
    known = covariates.read()
    checks = () if known is None else known.check(panel.dates)
    if json:
        document: dict[str, Any] = {
            "format": "torchcommodity.check.1",
            "read_as": panel.read_as,
            "panel": {
                "rows": len(panel),
                "symbols": list(panel.symbols),
                "first": str(panel.dates[0]),
                "last": str(panel.dates[-1]),
                "frequency": panel.frequency,
            },
            "usable": [symbol for symbol in panel.symbols if symbol not in unusable],
            "unusable": unusable,
            "forms": [asdict(form) for form in forms],
            "findings": [asdict(finding) for finding in panel.findings],
        }
        if checks:
            # JSON has no NaN: the age of a covariate that is never used
            document["covariates"] = [c._asdict() | {"age": c.age if c.rows else None} for c in checks]
        screen.print_json(dumps(document, allow_nan=False))
    else:
        output.print_line(screen, repr(panel))
        output.print_read_as(screen, panel)
        output.print_findings(screen, findings, max_rows=None)
        for line in _form_lines(forms):
            output.print_line(screen, line)
        if known is not None:
            print_checks(screen, checks)
            output.print_findings(screen, known.findings(panel.dates[-1]))
    if unusable:
        others = "" if len(unusable) == len(panel.symbols) else "; forecast --drop-unusable drops them"
        raise ValueError(f"data check: cannot be forecast: {summarize_names(unusable)}{others}")
    if not json:
        count = len(summarize_findings(findings))
        screen.print(f"Usable, {output.count(count, 'warning') if count else 'no warnings'}.")


@app.command("add")
@with_bundles
def add(
    *,
    source: Source,
    name: Annotated[str | None, typer.Option("--name", help="Name in the store; default: the source's name")] = None,
    symbols: Symbols = None,
    publisher: Publisher = None,
    store: StoreFile = None,
    quiet: Quiet = False,
    source_options: SourceOptions,
) -> None:
    """Add prices to the store under a name, for `--data store:NAME`.

    A name that is stored already gets a new vintage: what is new, revised or withdrawn is appended, and --as-of reads
    the panel as it stood before.
    """
    from torchcommodity.data import NOT_STATED, Store, read

    screen, target = output.console(quiet), Store(store)
    names = None if symbols is None else parse_names(symbols)
    panel = read(source, names, publisher=publisher or NOT_STATED, store=target, **source_options.arguments())
    name = name if name is not None else (Path(source).name.split(".")[0] if Path(source).is_file() else source)
    vintage = target.add(panel, name)
    output.print_reading(screen, panel)
    output.print_line(screen, f"Stored {panel!r} as {name} in {target.path}: {_describe(vintage)}")


@app.command("list")
def list_(store: StoreFile = None) -> None:
    """List the panels in the store."""
    from torchcommodity.data import Store

    screen, target = output.console(), Store(store)
    entries = target.list()
    if not entries:
        output.print_line(screen, f"No panels in {target.path}")
        return
    names = [", ".join(e.symbols[:MAX_SYMBOLS]) + (", ..." if len(e.symbols) > MAX_SYMBOLS else "") for e in entries]
    rows = [(e.name, n, e.rows, e.first, e.last, e.vintages, e.added[:10]) for e, n in zip(entries, names)]
    heads = ("name", "symbols", "rows", "first", "last", "vintages", "updated")
    screen.print(output.table(str(target.path), heads, rows, (0, 1, 3, 4, 6)))


@app.command("show")
def show(
    name: Name,
    symbol: Annotated[
        str | None,
        typer.Option("--symbol", metavar="A,B", callback=reject_unless(parse_names), help="Symbols to show"),
    ] = None,
    as_of: AsOf = None,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Number of rows to show")] = 10,
    store: StoreFile = None,
) -> None:
    """Show the last prices of a stored panel, its vintages, sources and findings."""
    from torchcommodity.data import Store
    from torchcommodity.report import format_price

    screen, target = output.console(), Store(store)
    panel, vintages = target.load(name, as_of), target.vintages(name)
    panel = panel if symbol is None else panel.select(parse_names(symbol))
    output.print_line(screen, repr(panel) + (f" as of {as_of}" if as_of else ""))
    first = panel.select(panel.symbols[:MAX_COLUMNS])
    prices = [
        (str(date), *("" if price != price else format_price(price) for price in row))
        for date, row in zip(first.dates[-last:], first.values.plain().tolist()[-last:])
    ]
    screen.print(output.table("Last prices", ("date", *first.symbols), prices))
    if more := len(panel.symbols) - len(first.symbols):
        screen.print(f"and {output.count(more, 'more symbol')}; --symbol A,B shows them")
    heads = ("vintage", "known from (UTC)", "rows", "last", "new", "revised", "withdrawn")
    rows = [(v.number, v.known_from[:16], v.rows, v.last, v.new, v.revised, v.withdrawn) for v in vintages]
    screen.print(output.table("Vintages", heads, rows[-MAX_VINTAGES:], (1, 3)))
    if (more := len(rows) - MAX_VINTAGES) > 0:
        screen.print(f"and {output.count(more, 'earlier vintage')}; Store.vintages lists them")
    _print_sources(screen, "Sources", panel)
    output.print_findings(screen, panel.findings)


@app.command("export")
def export(
    name: Name,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="File (.csv, .parquet, .feather), object, or FILE.duckdb:TABLE")
    ],
    as_of: AsOf = None,
    store: StoreFile = None,
    quiet: Quiet = False,
) -> None:
    """Write a stored panel to a file, an object or a table, one row per date and symbol."""
    from torchcommodity.data import Store, write

    write(Store(store).load(name, as_of), target)
    output.print_line(output.console(quiet), f"Wrote {target}")


@app.command("update")
def update(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names in the store; default: all that can be updated"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read the whole history, for revisions older than a year")
    ] = False,
    store: StoreFile = None,
    quiet: Quiet = False,
) -> None:
    """Fetch new and revised prices of stored series of FRED and the EIA, and append them as a vintage."""
    from torchcommodity.data import DataError, Store, updatable_symbols
    from torchcommodity.data import update as update_panel

    screen, target = output.console(quiet), Store(store)
    names = list(dict.fromkeys(names or []))
    if not names:
        entries = [entry.name for entry in target.list()]
        names = [name for name in entries if updatable_symbols(target.load(name))]
        if others := [name for name in entries if name not in names]:
            output.print_line(screen, f"Not from FRED or the EIA: {', '.join(others)}")
        if not names:
            raise ValueError(
                f"data update: expected panels of FRED or the EIA in {target.path}; got none; "
                "add one: torchcommodity data add fred:DCOILWTICO --name wti"
            )
    failures = []
    for name in names:
        try:
            with output.progress_bar(screen, f"Updating {name}") as progress:
                result = update_panel(name, target, full=full, progress=progress)
        except DataError as error:
            failures.append(f"{name} was not updated: {error}")
            continue
        screen.print(output.table(name, ("symbol", "new", "revised", "withdrawn", "last"), result.series, (0, 4)))
        if result.others:
            output.print_line(screen, f"Not from FRED or the EIA, unchanged: {', '.join(result.others)}")
        output.print_line(screen, f"{name}: {_describe(result.vintage)}")
    if failures:
        raise ValueError("; ".join(failures))


@app.command("remove")
def remove(name: Name, store: StoreFile = None, quiet: Quiet = False) -> None:
    """Remove a panel from the store, with all its vintages."""
    from torchcommodity.data import Store

    target = Store(store)
    target.remove(name)
    output.print_line(output.console(quiet), f"Removed {name} from {target.path}")


@app.command("sources")
def sources(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            callback=check_source,
            help=f"Prices: {SOURCES}; default: all prices that ship with the package",
        ),
    ] = None,
) -> None:
    """List symbols with their units, publishers, series, spans, licenses and credit lines."""
    from torchcommodity.data import embedded_symbols, read

    screen = output.console()
    if source is not None:
        _print_sources(screen, source, read_prices(source))
        return
    for name in EMBEDDED:
        default = read(name).symbols
        everything = embedded_symbols(EMBEDDED[name])
        by_name = [symbol for symbol in everything if symbol not in default]
        _print_sources(screen, name, read(name, everything))
        output.print_line(screen, f"Read only by name, with --symbols: {', '.join(by_name)}")


@app.command("formats")
def formats() -> None:
    """List the layouts of files that are recognized, for `--format`."""
    from torchcommodity.data import FORMATS

    rows = [(record.name, record.title, record.header) for record in FORMATS]
    output.console().print(output.table("Layouts", ("name", "vendor", "columns"), rows, range(3)))


def _form_lines(forms: "Sequence[PriceForm]") -> list[str]:
    """The symbols of each form, and the reasons of those that have some price of zero or below."""
    from torchcommodity.data import summarize_names

    lines = [str(form) for form in forms if form.reason]
    lines = [*lines[:MAX_FORMS], *([f"and {len(lines) - MAX_FORMS:,} more"] if len(lines) > MAX_FORMS else [])]
    for name in ("log", "asinh"):
        if plain := [form.symbol for form in forms if form.form == name and not form.reason]:
            lines.append(f"{summarize_names(plain, limit=20)} {name}")
    return [f"Price form: {line}" for line in lines]


def _describe(vintage: "Vintage") -> str:
    """Number and changes of a vintage in words."""
    counts = {"new": vintage.new, "revised": vintage.revised, "withdrawn": vintage.withdrawn}
    changes = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)
    prices = "price" if sum(counts.values()) == 1 else "prices"
    return f"vintage {vintage.number}, {changes or 'no new, revised or withdrawn'} {prices}"


def _print_sources(screen: "Console", name: str, panel: "Panel") -> None:
    """Print one row per symbol, and below it what many symbols share."""
    records, rows = panel.sources(), []
    for record, has_price in zip(records, panel.values.plain().isfinite().numpy().T):
        days = panel.dates[has_price]
        span = (str(days[0]), str(days[-1])) if len(days) else ("", "")
        rows.append((record["symbol"], record["unit"], record["series"], *span))
    table = output.table(name, ("symbol", "unit", "series", "first", "last"), rows, range(5))
    table.columns[0].no_wrap = True  # symbols are copied from here
    screen.print(table)
    for field, title in TERMS.items():
        owners: dict[str, list[str]] = {}
        for record in records:
            if record[field]:
                owners.setdefault(record[field], []).append(record["symbol"])
        for text, symbols in owners.items():
            suffix = "" if len(symbols) == len(records) else f" ({', '.join(symbols)})"
            output.print_line(screen, f"{title}: {text}{suffix}")

"""Options that say which prices a command reads, and how. Nothing here imports torch or pandas, see `_options`."""

import glob
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchcommodity._choices import Adjustment, DateOrder, DecimalMark
from torchcommodity.cli._parse import parse_calendar, parse_contracts, parse_names, reject_unless

if TYPE_CHECKING:
    from torchcommodity.data import Panel

EMBEDDED: dict[str, Literal["daily", "monthly"]] = {"embedded": "daily", "monthly": "monthly"}
SOURCES = (
    "embedded, monthly, auto, store:NAME, fred:ID,ID, eia:ID,ID, a file, FILE:TABLE, s3://BUCKET/NAME or sql:QUERY"
)
PREFIXES = (
    "store:", "fred:", "eia:", "sql:", "s3://", "gs://", "az://", "http://", "https://",
)  # fmt: skip


def check_source(source: str | None) -> str | None:
    """Reject a missing or empty file before torch is imported; a folder and a glob pattern are for Parquet files."""
    if source is None or source in ("embedded", "monthly", "auto") or source.startswith(PREFIXES):
        return source
    if not source.strip():
        raise typer.BadParameter(f"expected {SOURCES}; got an empty string")
    from torchcommodity.data import parse_table_name  # imports neither torch nor numpy

    table = None if os.path.exists(source) else parse_table_name(source)
    path = table.file if table else source
    if os.path.isdir(path) or glob.has_magic(path) or (os.path.isfile(path) and os.path.getsize(path)):
        return source
    problem = "does not exist"
    if os.path.exists(path):
        problem = "is empty" if os.path.isfile(path) else "is a pipe or device"
    raise typer.BadParameter(f"expected {SOURCES}; got {source!r}, which {problem}")


def check_curve(curve: str | None) -> str | None:
    """Reject a missing file of `--curve` before torch is imported."""
    if curve is None or curve == "eia:" or os.path.isfile(curve):
        return curve
    problem = "is a folder" if os.path.isdir(curve) else "does not exist"
    raise typer.BadParameter(f"expected a file date,symbol,nth,close or eia:; {curve!r} {problem}")


def check_spreads(spreads: list[str] | None) -> list[str] | None:
    """Reject what is no spread before torch is imported."""
    from torchcommodity.data import parse_spread  # imports neither torch nor numpy

    for text in spreads or ():
        parse_spread(text)
    return spreads


def check_format(name: str | None) -> str | None:
    """Reject an unknown format before torch is imported."""
    from torchcommodity.data import FORMATS  # imports neither torch nor numpy

    names = [record.name for record in FORMATS]
    if name is None or name in names:
        return name
    raise typer.BadParameter(f"expected one of {', '.join(names)}; got {name!r}")


def check_time(text: str | None) -> str | None:
    """Reject anything but an ISO date or time."""
    try:
        if text is not None:
            datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise typer.BadParameter(f"expected YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS; got {text!r}") from None
    return text


Source = Annotated[str, typer.Argument(metavar="SOURCE", callback=check_source, help=f"Prices: {SOURCES}")]
Data = Annotated[str, typer.Option("--data", metavar="SOURCE", callback=check_source, help=f"Prices: {SOURCES}")]
Symbols = Annotated[
    str | None,
    typer.Option("--symbols", metavar="A,B", callback=reject_unless(parse_names), help="Symbols to use, in this order"),
]
Contracts = Annotated[
    str | None,
    typer.Option(
        "--contracts",
        metavar="A=CL,B=C",
        callback=reject_unless(parse_contracts),
        help="Product codes of the symbols that are front-month futures",
    ),
]
CurveFile = Annotated[
    str | None,
    typer.Option(
        "--curve",
        metavar="FILE",
        callback=check_curve,
        help="Closes of nearby contracts: a file date,symbol,nth,close, or eia: (to April 2024, key in EIA_API_KEY)",
    ),
]
CurveOf = Annotated[
    str | None,
    typer.Option(
        "--curve-of",
        metavar="A=HO,B=RB",
        callback=reject_unless(parse_contracts, "--curve-of"),
        help="Product codes of the spot prices whose futures curve --curve has; default: WTI=CL,BRENT=BRN,HENRY_HUB=NG",
    ),
]
References = Annotated[
    str | None,
    typer.Option(
        "--references",
        metavar="A,B",
        help="Prices that help to forecast the others: symbols of --data, a file, or embedded; default: those that "
        "the embedded prices have; none: no references",
    ),
]
Spreads = Annotated[
    list[str] | None,
    typer.Option(
        "--spread",
        metavar="NAME=A-B",
        callback=check_spreads,
        help="Spread to add as a symbol, such as CRACK=2*GASOLINE+1*HEATOIL-3*WTI, BRENT-WTI, CL1-CL2 or crack-3-2-1; "
        "may be repeated",
    ),
]
Publisher = Annotated[
    str | None, typer.Option("--publisher", metavar="NAME", help="Publisher of a file without a column source")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        callback=check_time,
        help="Read store:NAME as it stood at the end of this day, or at this time, UTC",
    ),
]


def is_source(references: str) -> bool:
    """Whether `--references` is a source or none, not names of symbols of `--data`."""
    special = references in ("embedded", "monthly", "none") or references.startswith(PREFIXES)
    return special or os.path.exists(references)


@dataclass(frozen=True)
class SourceOptions:
    """How a source is to be read; None = detected, or as the store has it now."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", callback=check_format, help="Layout, see data formats; default: detected"
        ),
    ] = None
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Price column; default: settlement, else close")
    ] = None
    symbol: Annotated[
        str | None, typer.Option("--symbol", metavar="NAME", help="Symbol column; default: found by name and cells")
    ] = None
    contract: Annotated[
        str | None,
        typer.Option("--contract", metavar="NAME", help="Column of contracts or delivery months; default: likewise"),
    ] = None
    date: Annotated[
        str | None, typer.Option("--date", metavar="NAME", help="Date column; default: found by name and cells")
    ] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Encoding of a text file; default: as it proves")
    ] = None
    decimal: Annotated[
        DecimalMark | None, typer.Option("--decimal", help="Decimal mark; default: as the numbers prove")
    ] = None
    date_order: Annotated[
        DateOrder | None,
        typer.Option("--date-order", help="Order of year, month and day; default: as the dates prove"),
    ] = None
    query_timeout: Annotated[
        float | None,
        typer.Option("--query-timeout", metavar="SECONDS", help="Limit of a query or view of a database; default: 600"),
    ] = None
    roll: Annotated[
        str | None,
        typer.Option(
            "--roll",
            metavar="RULE",
            help="Roll of prices by contract: expiry, 5d, volume, open-interest, months=HKNUZ; default: expiry",
        ),
    ] = None
    adjustment: Annotated[
        Adjustment | None,
        typer.Option("--adjustment", help="Back-adjustment of prices by contract; default: none"),
    ] = None
    averages: Annotated[
        bool | None,
        typer.Option(
            "--averages/--no-averages",
            help="Prices are averages of their period, not its last ones; default: as the source says",
        ),
    ] = None
    calendar: Annotated[
        str | None,
        typer.Option(
            "--calendar",
            metavar="NAME",
            callback=reject_unless(parse_calendar),
            help="Trading days of spot prices ahead: XSHG, LSE, 24/5, or A=XSHG,B=LSE; default: NYSE",
        ),
    ] = None
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Refuse prices without a publisher, generated ones, and findings; default: $TORCHCOMMODITY_STRICT",
        ),
    ] = None
    accept: Annotated[
        str | None,
        typer.Option(
            "--accept",
            metavar="KIND,KIND",
            callback=reject_unless(parse_names, "--accept"),
            help="Kinds of findings that were looked at, such as gap,stale: --strict does not refuse them",
        ),
    ] = None
    as_of: AsOf = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of `data.read`."""
        calendar = None if self.calendar is None else parse_calendar(self.calendar)
        accept = [] if self.accept is None else parse_names(self.accept, "--accept")
        return {**asdict(self), "calendar": calendar, "accept": accept}


DETECTED = SourceOptions()


@dataclass(frozen=True)
class Prices:
    """The prices that a model is fitted to."""

    data: Data = "embedded"
    symbols: Symbols = None
    contracts: Contracts = None
    references: References = None
    curve: CurveFile = None
    curve_of: CurveOf = None
    spread: Spreads = None
    source_options: SourceOptions = DETECTED

    def read(self) -> "Panel":
        """The panel of these options."""
        return read_prices(
            self.data,
            self.symbols,
            self.contracts,
            self.curve,
            references=self.references,
            curve_of=self.curve_of,
            spreads=self.spread,
            options=self.source_options,
        )


@dataclass(frozen=True)
class NewPrices:
    """The prices that a fitted model is applied to; it names symbols and contracts itself, but for legs of spreads."""

    data: Data = "embedded"
    contracts: Contracts = None
    references: References = None
    curve: CurveFile = None
    curve_of: CurveOf = None
    spread: Spreads = None
    source_options: SourceOptions = DETECTED

    def read(self, symbols: Iterable[str] = ()) -> "Panel":
        """The panel of these options, with those of a model's symbols that the embedded prices have by name only."""
        panel = read_prices(
            self.data,
            None,
            self.contracts,
            self.curve,
            references=self.references,
            curve_of=self.curve_of,
            spreads=self.spread,
            options=self.source_options,
        )
        if self.data not in EMBEDDED:
            return panel
        from torchcommodity.data import embedded_symbols, read

        known = embedded_symbols(EMBEDDED[self.data])
        by_name = [symbol for symbol in symbols if symbol in known and symbol not in panel.symbols]
        return panel.join(read(self.data, by_name)) if by_name else panel


def read_prices(
    source: str,
    symbols: str | None = None,
    contracts: str | None = None,
    curve: str | None = None,
    publisher: str | None = None,
    references: str | None = None,
    curve_of: str | None = None,
    spreads: list[str] | None = None,
    options: SourceOptions = DETECTED,
) -> "Panel":
    """Read a source as `--symbols`, `--contracts`, `--curve`, `--references` and the other options say.

    With spreads the whole source is read, since their legs need not be among the symbols that are used.
    """
    from torchcommodity.data import NOT_STATED, add_curve, add_references, read

    names = None if symbols is None else parse_names(symbols)
    codes = None if contracts is None else parse_contracts(contracts)
    products = None if curve_of is None else parse_contracts(curve_of, "--curve-of")
    others = [] if references is None or is_source(references) else parse_names(references)
    names = None if names is None else list(dict.fromkeys([*names, *others]))
    arguments: dict[str, Any] = {"contracts": codes, "publisher": publisher or NOT_STATED, **options.arguments()}
    panel = read(source, None if spreads else names, **arguments)
    if spreads:
        panel = _add_spreads(add_curve(panel, curve, products), spreads, names, options)
    if references == "none":
        panel = panel.with_references(None)
    elif references is not None:
        panel = add_references(panel, others or references)
    return panel if spreads else add_curve(panel, curve, products)


def _add_spreads(panel: "Panel", spreads: list[str], names: list[str] | None, options: SourceOptions) -> "Panel":
    """The panel with spreads of its symbols and references; only the symbols `names` and the spreads."""
    from torchcommodity.data import accept_findings, check_doubts, is_strict, spread

    added = [spread(panel, text) for text in spreads]
    for one in added:
        panel = panel.join(one)
    if names is not None:
        names = list(dict.fromkeys([*names, *(symbol for one in added for symbol in one.symbols)]))
        panel = panel if panel.references is None else panel.join(panel.references)
        panel = panel.select(names).drop_empty_rows()
    panel = accept_findings(panel, options.arguments()["accept"])
    if is_strict(options.strict):
        check_doubts(panel, options.strict)
    return panel

"""Options that say how a source is to be read, as one bundle for every command that reads prices."""

from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import typer

from torchcommodity.cli._bundle import bundle

FORMATS = (
    "yfinance", "databento", "contracts", "pysystemtrade", "pysystemtrade-adjusted", "stooq-bulk", "nasdaq-data-link",
    "investing", "barchart", "norgate", "bloomberg", "refinitiv", "eia-api", "nixtla", "fred", "stooq", "bars",
    "long", "wide",
)  # fmt: skip
"""The names of `data.FORMATS`, which cannot be imported without torch; a test compares them."""


class Layout(NamedTuple):
    """What the user says about a source; None = detected, or as the store has it now."""

    format: str | None = None
    column: str | None = None
    decimal: Literal[".", ","] | None = None
    date_order: Literal["ymd", "dmy", "mdy"] | None = None
    roll: str | None = None
    adjustment: Literal["none", "panama", "ratio"] | None = None
    averages: bool | None = None
    as_of: str | None = None


DETECTED = Layout()


def check_format(name: str | None) -> str | None:
    """Reject an unknown format before torch is imported."""
    if name is None or name in FORMATS:
        return name
    raise typer.BadParameter(f"expected one of {', '.join(FORMATS)}; got {name!r}")


def check_time(text: str | None) -> str | None:
    """Reject anything but an ISO date or time."""
    try:
        if text is not None:
            datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise typer.BadParameter(f"expected YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS; got {text!r}") from None
    return text


AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        callback=check_time,
        help="Read store:NAME as it stood at the end of this day, or at this time, UTC",
    ),
]
OPTIONS = {
    "format": Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", callback=check_format, help="Layout, see data formats; default: detected"
        ),
    ],
    "column": Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Price column; default: settlement, else close")
    ],
    "decimal": Annotated[
        Literal[".", ","] | None, typer.Option("--decimal", help="Decimal mark; default: as the numbers prove")
    ],
    "date_order": Annotated[
        Literal["ymd", "dmy", "mdy"] | None,
        typer.Option("--date-order", help="Order of year, month and day; default: as the dates prove"),
    ],
    "roll": Annotated[
        str | None,
        typer.Option(
            "--roll",
            metavar="RULE",
            help="Roll of prices by contract: expiry, 5d, volume, open-interest, months=HKNUZ; default: expiry",
        ),
    ],
    "adjustment": Annotated[
        Literal["none", "panama", "ratio"] | None,
        typer.Option("--adjustment", help="Back-adjustment of prices by contract; default: none"),
    ],
    "averages": Annotated[
        bool | None,
        typer.Option(
            "--averages/--no-averages",
            help="Prices are averages of their period, not its last ones; default: as the source says",
        ),
    ],
    "as_of": AsOf,
}  # fmt: skip

with_layout = bundle("layout", Layout, OPTIONS)
"""Give a command the options of `Layout`; it takes them as one argument `layout`."""

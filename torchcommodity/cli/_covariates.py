"""Options that say which covariates there are and when they were published."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from torchcommodity._choices import Transform
from torchcommodity.cli import _output as output
from torchcommodity.cli._parse import parse_names
from torchcommodity.cli._prices import check_source

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import CovariateCheck, Covariates

CAPTION = (
    "age: median days from the date of a value to the row; expired: rows for which the last value is too old; "
    "unpublished: rows on which a join by date would have used a value that was not published yet."
)
TRANSFORMS = ", ".join(get_args(Transform))


def parse_transform(text: str) -> str | dict[str, str]:
    """Parse `volatility`, for all columns, or `VIX=volatility,USD=changes`.

    >>> parse_transform("VIX=volatility, USD=changes")
    {'VIX': 'volatility', 'USD': 'changes'}
    """
    if "=" not in text:
        return text
    pairs = [name.rpartition("=") for name in parse_names(text, "--transform")]
    return {column.strip(): transform.strip() for column, _, transform in pairs}


def check_transform(text: str | None) -> str | None:
    """Reject an unknown transform before torch is imported."""
    if text is not None:
        transforms = parse_transform(text)
        names = [transforms] if isinstance(transforms, str) else list(transforms.values())
        if unknown := [name for name in names if name not in get_args(Transform)]:
            raise typer.BadParameter(f"expected {TRANSFORMS}, or NAME=TRANSFORM,...; got {unknown[0]!r}")
    return text


@dataclass(frozen=True)
class CovariateOptions:
    """What the user says about covariates."""

    covariates: Annotated[
        str | None,
        typer.Option(
            "--covariates",
            metavar="SOURCE",
            callback=check_source,
            help="Covariates that enter the variance: a file with a column date and one for each variable, or fred:ID",
        ),
    ] = None
    lag: Annotated[
        str | None,
        typer.Option(
            "--lag",
            metavar="7D",
            help="Publication lag of the covariates: 7D = calendar days, 5B = business days; a file with a column "
            "published needs none",
        ),
    ] = None
    known_future: Annotated[
        bool | None,
        typer.Option("--known-future", help="The covariates are scheduled: their future values are known in advance"),
    ] = None
    transform: Annotated[
        str | None,
        typer.Option(
            "--transform",
            metavar="NAME",
            callback=check_transform,
            help=f"Transform of the covariates: {TRANSFORMS}, or VIX=volatility,USD=changes",
        ),
    ] = None
    covariates_column: Annotated[
        str | None,
        typer.Option(
            "--covariates-column", metavar="NAME", help="Column of the covariates' values; default: all with numbers"
        ),
    ] = None
    covariates_symbol: Annotated[
        str | None,
        typer.Option(
            "--covariates-symbol", metavar="NAME", help="Column that names the covariates; default: symbol, if any"
        ),
    ] = None
    covariates_date: Annotated[
        str | None,
        typer.Option(
            "--covariates-date", metavar="NAME", help="Date column of the covariates; default: found by its cells"
        ),
    ] = None

    def read(self) -> "Covariates | None":
        """Read the covariates; None if there are none."""
        if self.covariates is None:
            if others := [f"--{name.replace('_', '-')}" for name, value in asdict(self).items() if value]:
                raise ValueError(f"{others[0]}: expected --covariates SOURCE with it; got none")
            return None
        from torchcommodity.data import to_covariates

        return to_covariates(
            self.covariates,
            lag=self.lag,
            known_future=bool(self.known_future),
            transform=parse_transform(self.transform or "level"),  # type: ignore[arg-type]  # checked by the option
            column=self.covariates_column,
            symbol=self.covariates_symbol,
            date=self.covariates_date,
        )


def print_checks(screen: "Console", checks: "tuple[CovariateCheck, ...]") -> None:
    """Print when each covariate is used, and on how many rows a join by date would have looked ahead."""
    heads = ("covariate", "known", "first row", "rows", "age", "expired", "unpublished")
    rows = [(c.name, c.rule, c.first or "none", c.rows, f"{c.age:g} d", c.expired, c.unpublished) for c in checks]
    table = output.table("Covariates, each used from the day of its publication", heads, rows, (0, 1))
    table.caption, table.caption_justify = CAPTION, "left"
    screen.print(table)

"""`torchcommodity data check`: data-quality warnings, for people or as JSON."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _data_store as store
from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._covariates import NONE, CovariateOptions, print_checks, with_covariates
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from torchcommodity.data import CovariateCheck, Panel

# findings of symbols that `fit` rejects
UNUSABLE = ("no positive price", "short history", "constant price", "mixed frequency")


@with_layout
@with_covariates
def check(
    source: store.Source,
    publisher: options.Publisher = None,
    layout: Layout = DETECTED,
    covariates: CovariateOptions = NONE,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with every finding")] = False,
) -> None:
    """Check prices and print data-quality warnings; with --covariates, when each covariate was known.

    Exit code 0: the prices can be forecast; 2: they cannot, and the message says why.
    """
    from torchcommodity.data import summarize_findings, summarize_names

    screen = output.console()
    panel = options.read_prices(source, publisher=publisher, layout=layout)
    unusable, known = _unusable(panel), covariates.read()
    checks = () if known is None else known.check(panel.dates)
    if json:
        screen.print_json(_check_json(panel, unusable, checks))
    else:
        output.print_line(screen, repr(panel))
        output.print_reading(screen, panel, max_rows=None)
        if known is not None:
            print_checks(screen, checks)
            output.print_findings(screen, known.findings(panel.dates[-1]))
    if unusable:
        others = "" if len(unusable) == len(panel.symbols) else "; forecast --drop-unusable drops them"
        raise ValueError(f"data check: cannot be forecast: {summarize_names(unusable)}{others}")
    if not json:
        count = len(summarize_findings(panel.findings))
        screen.print(f"Usable, {output.count(count, 'warning') if count else 'no warnings'}.")


def _unusable(panel: "Panel") -> dict[str, str]:
    """Symbols that cannot be forecast, in the order of the panel, and why."""
    from torchcommodity.data import inspect

    reasons = {
        finding.symbol: f"{finding.kind}: {finding.value}" for finding in inspect(panel) if finding.kind in UNUSABLE
    }
    return {symbol: reasons[symbol] for symbol in panel.symbols if symbol in reasons}


def _check_json(panel: "Panel", unusable: dict[str, str], checks: "tuple[CovariateCheck, ...]") -> str:
    from dataclasses import asdict
    from json import dumps

    document = {
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
        "findings": [asdict(finding) for finding in panel.findings],
    }
    if checks:
        # JSON has no NaN: the age of a covariate that is never used
        document["covariates"] = [c._asdict() | {"age": c.age if c.rows else None} for c in checks]
    return dumps(document, allow_nan=False)

"""`torchcommodity data check`: data-quality warnings, for people or as JSON."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _data_store as store
from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from torchcommodity.data import Panel

# findings of symbols that `fit` rejects
UNUSABLE = ("no positive price", "short history", "constant price", "mixed frequency")


@with_layout
def check(
    source: store.Source,
    publisher: options.Publisher = None,
    layout: Layout = DETECTED,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, with every finding")] = False,
) -> None:
    """Check prices and print data-quality warnings.

    Exit code 0: the prices can be forecast; 2: they cannot, and the message says why.
    """
    from torchcommodity.data import summarize_findings, summarize_names

    screen = output.console()
    panel = options.read_prices(source, publisher=publisher, layout=layout)
    unusable = _unusable(panel)
    if json:
        screen.print_json(_check_json(panel, unusable))
    else:
        output.print_line(screen, repr(panel))
        output.print_reading(screen, panel, max_rows=None)
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


def _check_json(panel: "Panel", unusable: dict[str, str]) -> str:
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
    return dumps(document, allow_nan=False)

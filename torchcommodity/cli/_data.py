"""`torchcommodity data`: check prices, and manage the price store."""

import typer

from torchcommodity.cli import _data_store as store
from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._data_sources import sources

app = typer.Typer(
    help="Check prices and manage the price store.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

# findings of symbols that `fit` rejects
UNUSABLE = ("no positive price", "short history", "constant price", "mixed frequency")


@app.command("check")
def check(source: store.Source) -> None:
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


app.command("add")(store.add)
app.command("list")(store.list_)
app.command("show")(store.show)
app.command("export")(store.export)
app.command("remove")(store.remove)
app.command("sources")(sources)

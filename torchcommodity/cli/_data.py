"""`torchcommodity data`: check prices, and manage the price store."""

import typer

from torchcommodity.cli import _data_store as store
from torchcommodity.cli import _output as output
from torchcommodity.cli._data_check import check
from torchcommodity.cli._data_sources import sources
from torchcommodity.cli._data_update import update

app = typer.Typer(
    help="Check prices and manage the price store.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

app.command("check")(check)
app.command("add")(store.add)
app.command("list")(store.list_)
app.command("show")(store.show)
app.command("export")(store.export)
app.command("update")(update)
app.command("remove")(store.remove)
app.command("sources")(sources)


@app.command("formats")
def formats() -> None:
    """List the layouts of files that are recognized, for `--format`."""
    from torchcommodity.data import FORMATS

    rows = [(record.name, record.title, record.header) for record in FORMATS]
    output.console().print(output.table("Layouts", ("name", "vendor", "columns"), rows, range(3)))

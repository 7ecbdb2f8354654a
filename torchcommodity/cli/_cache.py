"""`torchcommodity cache`: show or clear cached models and backtests."""

import typer

from torchcommodity.cli import _output as output

app = typer.Typer(
    help="Show or clear cached models and backtests.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("show")
def show() -> None:
    """List the cached results of forecast, backtest and optimize."""
    from torchcommodity.forecast import cache_entries

    screen, entries = output.console(), cache_entries()
    if not entries:
        screen.print("The cache is empty.")
        return
    rows = [
        (entry.path.stem, entry.kind, f"{entry.size:,}", f"{entry.last_used:%Y-%m-%d %H:%M} UTC") for entry in entries
    ]
    results, size = output.count(len(entries), "result"), sum(entry.size for entry in entries)
    title = f"{entries[0].path.parent}: {results}, {size:,} bytes"
    screen.print(output.table(title, ("key", "kind", "bytes", "last used"), rows, (0, 1, 3)))


@app.command("clear")
def clear() -> None:
    """Remove all cached results."""
    from torchcommodity.forecast import clear_cache

    output.console().print(f"Removed {output.count(clear_cache(), 'result')}.")

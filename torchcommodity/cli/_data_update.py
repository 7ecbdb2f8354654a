"""`torchcommodity data update`: append what FRED and the EIA have published since."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._data_store import StoreFile, describe_vintage

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Store, Update

HEADS = ("symbol", "new", "revised", "withdrawn", "last")


def update(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names in the store; default: all that can be updated"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read the whole history, for revisions older than a year")
    ] = False,
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Fetch new and revised prices of stored series of FRED and the EIA, and append them as a vintage."""
    from torchcommodity.data import DataError, Store

    screen, target = output.console(quiet), Store(store)
    names = list(dict.fromkeys(names or [])) or _updatable(screen, target)
    failures = []
    for name in names:
        try:
            _print(screen, name, _update(screen, target, name, full))
        except DataError as error:
            failures.append(f"{name} was not updated: {error}")
    if failures:
        raise ValueError("; ".join(failures))


def _updatable(screen: "Console", store: "Store") -> list[str]:
    """Names of the panels with a series of FRED or the EIA; the others are printed."""
    from torchcommodity.data import updatable_symbols

    entries = [entry.name for entry in store.list()]
    names = [name for name in entries if updatable_symbols(store.load(name))]
    if others := [name for name in entries if name not in names]:
        output.print_line(screen, f"Not from FRED or the EIA: {', '.join(others)}")
    if not names:
        raise ValueError(
            f"data update: expected panels of FRED or the EIA in {store.path}; got none; "
            "add one: torchcommodity data add fred:DCOILWTICO --name wti"
        )
    return names


def _update(screen: "Console", store: "Store", name: str, full: bool) -> "Update":
    from torchcommodity.data import update

    with output.progress_bar(screen, f"Updating {name}") as progress:
        return update(name, store, full=full, progress=progress)


def _print(screen: "Console", name: str, result: "Update") -> None:
    screen.print(output.table(name, HEADS, result.series, (0, 4)))
    if result.others:
        output.print_line(screen, f"Not from FRED or the EIA, unchanged: {', '.join(result.others)}")
    output.print_line(screen, f"{name}: {describe_vintage(result.vintage)}")

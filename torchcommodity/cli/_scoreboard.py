"""`torchcommodity scoreboard`: any forecaster, as a function or a file of quantiles, by the fixed protocol."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchcommodity._choices import TrackName
from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli import _prices as prices
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._parse import code_errors, import_function, parse_names

if TYPE_CHECKING:
    from torchcommodity.scoreboard import Scoreboard

FILES = ("scoreboard.html", "scoreboard.csv", "scoreboard.json", "scoreboard.md")

Track = Annotated[
    TrackName | None,
    typer.Option("--track", help="Prices and test years of the protocol; default: daily, unless --data is given"),
]
OwnData = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="SOURCE",
        callback=prices.check_source,
        help=f"Own prices in place of a track: {prices.SOURCES}",
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--quantiles",
        metavar="NAME=FILE",
        help="File of quantiles of a model, origin,symbol,horizon and a column per level; may be repeated",
    ),
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="NAME=PACKAGE.MODULE:FUNCTION",
        help="Function (panel, horizons, levels), called once per origin, or a pretrained model; may be repeated",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME=PACKAGE.MODULE:NETWORK",
        help="Network of your own, or a name of fit --list, to fit and test as the default model; may be repeated",
    ),
]
Unit = Annotated[
    Literal["price", "log_return"] | None,
    typer.Option("--unit", help="What the files of quantiles hold; default: price"),
]
Template = Annotated[
    Path | None,
    typer.Option(
        "--template",
        metavar="FILE",
        callback=options.check_table,
        help="Write the list of forecasts that a file must have, with the price at each origin, and exit",
    ),
]
Without = Annotated[
    str | None,
    typer.Option(
        "--without", metavar="A,B", help="Models of statsforecast to leave out: autoarima is slow on many symbols"
    ),
]
LastYear = Annotated[int | None, typer.Option("--last-year", help="Last test year; default: that of the last price")]


@with_bundles
def scoreboard(
    *,
    quantiles: Files = None,
    model: Models = None,
    function: Functions = None,
    track: Track = None,
    unit: Unit = None,
    template: Template = None,
    data: OwnData = None,
    symbols: prices.Symbols = None,
    contracts: prices.Contracts = None,
    curve: prices.CurveFile = None,
    spread: prices.Spreads = None,
    first_year: options.FirstYear = None,
    last_year: LastYear = None,
    without: Without = None,
    out: options.OutFolder = Path("out"),
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
    source_options: prices.SourceOptions,
) -> None:
    """Score any forecaster by the fixed protocol.

    The same prices, origins, horizons, reference and tests for every model: the default model, its baselines,
    statsforecast where it is installed, and yours, as a network, a function or a file of quantiles. Writes
    scoreboard.html, .csv, .json and .md.
    """
    from torchcommodity.data import frame_to_csv, read_quantiles, utc_now
    from torchcommodity.forecast import data_hash
    from torchcommodity.report import (
        RunRecord,
        ScoreboardReportData,
        check_output_folder,
        package_versions,
        scoreboard_html,
        scoreboard_json,
        write_files,
    )
    from torchcommodity.scoreboard import align_quantiles, load_track, make_task, run

    options.check_available(device)
    screen = output.console(quiet)
    if data is None:
        if received := [value for value in (symbols, contracts, curve, spread, first_year, last_year) if value]:
            raise ValueError(
                f"scoreboard: the prices and years of a track are fixed; got {received[0]!r} without --data"
            )
        task = load_track(track or "daily")
    elif track is not None:
        raise ValueError("scoreboard: expected --track or --data; got both")
    else:
        panel = prices.read_prices(data, symbols, contracts, curve, spreads=spread, options=source_options)
        output.print_reading(screen, panel)
        task = make_task(panel, first_year=first_year, last_year=last_year)
    if template is not None:
        output.check_file(template)
        output.write_table(task.outcomes().drop(columns=["date", "outcome"]), template)
        output.print_written(screen, template)
        return
    check_output_folder(out, FILES)
    files = _named(quantiles, lambda path: Path(path).name.partition(".")[0])
    tables = {name: read_quantiles(path, unit=unit, model=name, signed=task.signed) for name, path in files.items()}
    for table in tables.values():
        align_quantiles(table, task)  # a defect is reported before minutes of fits
    omitted = parse_names(without, "--without") if without else []
    paths = _named(function, lambda path: path.rpartition(":")[2])
    functions = {name: _function(path) for name, path in paths.items()}
    models = _named(model, lambda path: path.rpartition(":")[2])
    with output.progress_bar(screen, "Scoreboard") as progress:
        board = run(
            task,
            functions=functions,
            tables=tables,
            models=models,
            without=omitted,
            device=device,
            progress=progress,
        )
    panel, versions = task.panel, package_versions("statsforecast")
    source = data or f"track {task.track}"
    record = RunRecord(utc_now(), output.command_line(), source, data_hash(panel), 0, versions, panel.credits())
    report = ScoreboardReportData(board, record)
    texts = (
        scoreboard_html(report),
        frame_to_csv(board.to_pandas()),
        scoreboard_json(report),
        f"{board.to_markdown()}\n",
    )
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})
    screen.print(_table(board))
    for entry in board.entries:
        if entry.note:
            output.print_line(screen, f"{entry.name}: {entry.note}.")
    output.print_line(screen, f"Fingerprint of the outcomes: {task.fingerprint}")
    output.print_written(screen, *(out / name for name in FILES))


def _named(arguments: Sequence[str] | None, default: Callable[[str], str]) -> dict[str, str]:
    """`NAME=VALUE` as a dictionary; without a name the default one, made of the value."""
    named: dict[str, str] = {}
    for text in arguments or ():
        name, equals, value = text.partition("=")
        if not equals or os.path.exists(text):  # a folder may be named symbol=WTI
            name, value = default(text), text
        if name in named or not name or not value:
            raise ValueError(f"scoreboard: expected NAME=VALUE, each name once; got {text!r}")
        named[name] = value
    return named


def _function(path: str) -> Callable[..., Any]:
    from torchcommodity.forecast import PretrainedModel

    with code_errors(path):
        function = import_function(path)
    if isinstance(function, PretrainedModel):
        return function

    def call(*arguments: Any) -> Any:
        with code_errors(path):
            return function(*arguments)

    return call


def _table(board: "Scoreboard") -> object:
    """Skills that fit on a terminal; the files have the p-values."""
    names = board.task.horizon_names()
    rows = []
    for place, entry, scores, mean in board.ranked_entries():
        if any(scores):
            cells = [
                "not scored" if s is None else f"{s.skill:+.2f}{'*' if s.p_reference < 0.05 else ' '}" for s in scores
            ]
            rows.append((f"{place or ''}", entry.name, *cells, f"{mean:+.2f}" if place else ""))
    title = f"{board.task.name}: percent of the loss of har saved"
    table = output.table(title, ("", "model", *names.values(), "mean"), rows, (1,))
    table.caption, table.caption_justify = "* p < 0.05, Diebold-Mariano test against har", "left"
    return table

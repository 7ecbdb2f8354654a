"""`torchcommodity scoreboard`: any forecaster, as a function or a file of quantiles, by the fixed protocol."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._layout import DETECTED, Layout, with_layout
from torchcommodity.cli._parse import code_errors, import_function, parse_names

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.scoreboard import EntryScore, Scoreboard

FILES = ("scoreboard.html", "scoreboard.csv", "scoreboard.json", "scoreboard.md")
TRACKS = ("daily", "monthly")
"""The names of `scoreboard.TRACKS`, which cannot be imported without torch; a test compares them."""

TrackName = Annotated[
    Literal["daily", "monthly"] | None,
    typer.Option("--track", help="Prices and test years of the protocol; default: daily, unless --data is given"),
]
OwnData = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="SOURCE",
        callback=options.check_source,
        help=f"Own prices in place of a track: {options.SOURCES}",
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


@with_layout
def scoreboard(
    quantiles: Files = None,
    function: Functions = None,
    track: TrackName = None,
    unit: Unit = None,
    template: Template = None,
    data: OwnData = None,
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    first_year: options.FirstYear = None,
    last_year: LastYear = None,
    without: Without = None,
    out: options.OutFolder = Path("out"),
    quiet: options.Quiet = False,
) -> None:
    """Score any forecaster by the fixed protocol.

    The same prices, origins, horizons, reference and tests for every model: the default model, its baselines,
    statsforecast where it is installed, and yours, as a function or a file of quantiles. Writes scoreboard.html, .csv,
    .json and .md.
    """
    from torchcommodity.cli._tables import check_file, write_table
    from torchcommodity.data import read_quantiles
    from torchcommodity.report import check_output_folder
    from torchcommodity.scoreboard import align_quantiles, load_track, make_task, run

    screen = output.console(quiet)
    if data is None:
        if received := [value for value in (symbols, contracts, curve, first_year, last_year) if value is not None]:
            raise ValueError(
                f"scoreboard: the prices and years of a track are fixed; got {received[0]!r} without --data"
            )
        task = load_track(track or TRACKS[0])
    elif track is not None:
        raise ValueError("scoreboard: expected --track or --data; got both")
    else:
        panel = options.read_prices(data, symbols, contracts, curve, layout=layout)
        output.print_reading(screen, panel)
        task = make_task(panel, first_year=first_year, last_year=last_year)
    if template is not None:
        check_file(template)
        write_table(task.outcomes().drop(columns=["date", "outcome"]), template)
        output.print_written(screen, template)
        return
    check_output_folder(out, FILES)
    tables = {name: read_quantiles(path, unit=unit, model=name) for name, path in _named(quantiles, _stem).items()}
    for table in tables.values():
        align_quantiles(table, task)  # a defect is reported before minutes of fits
    omitted = parse_names(without, "--without") if without else []
    functions = {name: _function(path) for name, path in _named(function, _last_name).items()}
    with output.progress_bar(screen, "Scoreboard") as progress:
        board = run(task, functions=functions, tables=tables, without=omitted, progress=progress)
    _write(board, data or f"track {task.track}", out)
    _print(board, screen)
    output.print_written(screen, *(out / name for name in FILES))


def _write(board: "Scoreboard", source: str, out: Path) -> None:
    from torchcommodity.data import frame_to_csv, utc_now
    from torchcommodity.forecast import data_hash
    from torchcommodity.report import (
        RunRecord,
        ScoreboardReportData,
        package_versions,
        scoreboard_html,
        scoreboard_json,
        write_files,
    )

    panel, versions = board.task.panel, package_versions("statsforecast")
    record = RunRecord(utc_now(), output.command_line(), source, data_hash(panel), 0, versions, panel.credits())
    report = ScoreboardReportData(board, record)
    texts = (
        scoreboard_html(report),
        frame_to_csv(board.to_pandas()),
        scoreboard_json(report),
        f"{board.to_markdown()}\n",
    )
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})


def _print(board: "Scoreboard", screen: "Console") -> None:
    screen.print(_table(board))
    for entry in board.entries:
        if entry.note:
            output.print_line(screen, f"{entry.name}: {entry.note}.")
    output.print_line(screen, f"Fingerprint of the outcomes: {board.task.fingerprint}")


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


def _stem(path: str) -> str:
    return Path(path).name.partition(".")[0]


def _last_name(path: str) -> str:
    return path.rpartition(":")[2]


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
    rows = [
        (f"{place or ''}", entry.name, *map(_cell, scores), f"{mean:+.2f}" if place else "")
        for place, entry, scores, mean in board.ranked_entries()
        if any(scores)
    ]
    title = f"{board.task.name}: percent of the loss of har saved"
    table = output.table(title, ("", "model", *names.values(), "mean"), rows, (1,))
    table.caption, table.caption_justify = "* p < 0.05, Diebold-Mariano test against har", "left"
    return table


def _cell(score: "EntryScore | None") -> str:
    return "not scored" if score is None else f"{score.skill:+.2f}{'*' if score.p_reference < 0.05 else ' '}"

"""`torchcommodity portfolio`: what a portfolio trained on its Sharpe ratio would have made, beside the usual rules."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.data import frame_to_csv, utc_now
from torchcommodity.forecast import data_hash
from torchcommodity.models import PortfolioLstmConfig
from torchcommodity.portfolio import FoldResult, Result, TrainConfig, walk
from torchcommodity.report import (
    PortfolioReportData,
    RunRecord,
    check_output_folder,
    describe_contracts,
    describe_results,
    package_versions,
    portfolio_days,
    portfolio_html,
    portfolio_row,
    portfolio_table,
    portfolio_weights,
    write_files,
)

FILES = ("portfolio.csv", "daily.csv", "weights.csv", "portfolio.html")


def portfolio(
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    cost_bps: Annotated[str, typer.Option("--cost-bps", metavar="A,B", help="of a trade; a roll costs two")] = "2,10",
    long_short: Annotated[bool, typer.Option("--long-short", help="with short positions")] = False,
    volatility: Annotated[float, typer.Option("--volatility", help="a year, aimed at")] = 0.10,
    first: Annotated[int | None, typer.Option("--first", help="first test year; default: the last seven years")] = None,
    out: options.Out = Path("out"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Walk a portfolio forward with costs; writes portfolio.csv, daily.csv, weights.csv and portfolio.html."""
    screen, costs = show.console(quiet), _costs(cost_bps)
    panel = options.prices(data, symbols, contracts, curve)
    check_output_folder(out, FILES)
    show.findings(screen, panel.findings)
    screen.print(escape(describe_contracts(panel)))
    config = TrainConfig(model=PortfolioLstmConfig(long_short=long_short, volatility=volatility))
    with show.steps(screen, "Walk-forward") as step:
        walked = walk(panel, config, costs=costs, first=first, seed=seed, progress=step)
    command = shlex.join(["torchcommodity", *sys.argv[1:]])
    run = RunRecord(utc_now(), command, data, data_hash(panel), seed, package_versions())
    contents = PortfolioReportData(panel, walked, run)
    frames = (portfolio_table(walked), portfolio_days(walked), portfolio_weights(walked))
    texts = (
        frame_to_csv(frames[0]),
        *(frame_to_csv(frame, index=True) for frame in frames[1:]),
        portfolio_html(contents),
    )
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})
    for cost in costs:
        _print(screen, walked, cost)
    for reason in walked.left_out:
        screen.print(f"Left out: {escape(reason)}.")
    screen.print(f"Wrote {', '.join(escape(str(out / name)) for name in FILES)}", soft_wrap=True)


def _print(screen: Console, walked: FoldResult, cost: float) -> None:
    kind = "Long and short" if walked.long_short else "Long only"
    title = f"{kind}, {1e4 * cost:g} basis points a trade, {walked.dates[0]} to {walked.dates[-1]}"
    heads = ("portfolio", "Sharpe", "LSTM less it", "return", "drawdown", "traded")
    made = show.table(title, heads, map(_cells, walked.at(cost)))
    made.caption, made.caption_justify = describe_results(walked.at(cost)), "left"
    screen.print(made)


def _cells(result: Result) -> tuple[str, ...]:
    """As wide as a terminal: the files and the page have the rest."""
    name, sharpe, less, interval, made, _, drawdown, turnover, _ = portfolio_row(result)
    name = name.replace("volatility", "vol.").replace("variance", "var.")
    return name, sharpe, f"{less} [{interval.replace(' to ', ' ')}]" if less else "", made, drawdown, turnover


def _costs(text: str) -> list[float]:
    """`2,10` in basis points as shares of what is traded.

    >>> _costs("2, 10")
    [0.0002, 0.001]
    """
    try:
        found = [float(part) / 1e4 for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 0 or len(set(found)) < len(found):
        raise ValueError(f"--cost-bps: expected different numbers >= 0 separated by commas; got {text!r}")
    return found

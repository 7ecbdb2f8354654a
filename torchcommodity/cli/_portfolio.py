"""`torchcommodity portfolio`: walk-forward test, after costs, of a portfolio trained on its Sharpe ratio."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._parse import reject_unless
from torchcommodity.cli._prices import Prices

if TYPE_CHECKING:
    from torchcommodity.portfolio import PortfolioBacktest

FILES = ("portfolio.csv", "daily.csv", "weights.csv", "portfolio.html")


def parse_costs(text: str) -> list[float]:
    """`2,10` basis points as fractions of the traded value.

    >>> parse_costs("2, 10")
    [0.0002, 0.001]
    """
    try:
        costs = [float(part) / 1e4 for part in text.split(",")]
    except ValueError:
        costs = []
    if not costs or not all(0 <= cost < math.inf for cost in costs) or len(set(costs)) < len(costs):
        raise ValueError(f"--cost-bps: expected distinct numbers >= 0, separated by commas; got {text!r}")
    return costs


def check_volatility(volatility: float) -> float:
    """Reject a volatility target that is not positive and finite."""
    if not 0 < volatility < math.inf:
        raise typer.BadParameter(f"expected a number > 0; got {volatility:g}")
    return volatility


CostBps = Annotated[
    str,
    typer.Option(
        "--cost-bps",
        metavar="A,B",
        callback=reject_unless(parse_costs),
        help="Transaction costs per trade in basis points (a roll counts as two trades)",
    ),
]
LongShort = Annotated[bool, typer.Option("--long-short", help="Allow short positions")]
Volatility = Annotated[
    float, typer.Option("--volatility", callback=check_volatility, help="Annualized volatility target")
]


@with_bundles
def portfolio(
    *,
    prices: Prices,
    cost_bps: CostBps = "2,10",
    long_short: LongShort = False,
    volatility: Volatility = 0.10,
    first_year: options.FirstYear = None,
    out: options.OutFolder = Path("out"),
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
) -> None:
    """Test a trained portfolio walk-forward, after costs.

    Writes portfolio.csv, daily.csv, weights.csv and portfolio.html.
    """
    import torchcommodity.portfolio as library
    from torchcommodity.data import frame_to_csv, utc_now
    from torchcommodity.forecast import data_hash
    from torchcommodity.models import PortfolioLstmConfig
    from torchcommodity.report import (
        PortfolioReportData,
        RunRecord,
        check_output_folder,
        describe_contracts,
        package_versions,
        portfolio_days,
        portfolio_html,
        portfolio_weights,
        write_files,
    )

    options.check_available(device)
    screen, costs = output.console(quiet), parse_costs(cost_bps)
    panel = prices.read()
    check_output_folder(out, FILES)
    output.print_reading(screen, panel)
    output.print_line(screen, describe_contracts(panel))
    model = PortfolioLstmConfig(long_short=long_short, volatility=volatility)
    config = library.PortfolioTrainConfig(model=model, device=device)
    with output.progress_bar(screen, "Walk-forward") as progress:
        result = library.backtest(panel, config, costs=costs, first_year=first_year, seed=seed, progress=progress)
    run = RunRecord(
        utc_now(), output.command_line(), prices.data, data_hash(panel), seed, package_versions(), panel.credits()
    )
    frames = (result.to_pandas(), portfolio_days(result), portfolio_weights(result))
    texts = (
        frame_to_csv(frames[0]),
        *(frame_to_csv(frame, index=True) for frame in frames[1:]),
        portfolio_html(PortfolioReportData(panel, result, run)),
    )
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})
    for cost in costs:
        screen.print(_table(result, cost))
    for reason in result.excluded:
        output.print_line(screen, f"Excluded: {reason}.")
    output.print_written(screen, *(out / name for name in FILES))


def _table(result: "PortfolioBacktest", cost: float) -> object:
    from torchcommodity.report import describe_results, describe_selection, portfolio_row

    kind = "Long and short" if result.long_short else "Long only"
    title = f"{kind}, {1e4 * cost:g} basis points per trade, {result.dates[0]} to {result.dates[-1]}"
    heads = ("portfolio", "Sharpe", "difference", "return", "drawdown", "traded")
    selection = result.selections[cost]
    rows = []
    for item in result.at_cost(cost):
        # the columns that fit on a terminal; the files and the report have all columns
        name, sharpe, _, difference, interval, annual, _, drawdown, turnover, _ = portfolio_row(item, selection)
        name = name.replace("volatility", "vol.").replace("variance", "var.")
        difference = f"{difference} [{interval.replace(' to ', ' ')}]" if difference else ""
        rows.append((name, sharpe, difference, annual, drawdown, turnover))
    table = output.table(title, heads, rows)
    notes = describe_results(result.at_cost(cost)), describe_selection(selection)
    table.caption, table.caption_justify = " ".join(filter(None, notes)), "left"
    return table

"""Walk-forward backtest of portfolios as tables and as one self-contained page."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchcommodity.charts import PALETTE, Chart, chart_layout, line_trace, log_axis
from torchcommodity.data import Panel
from torchcommodity.portfolio import (
    TRAINED,
    UNTRAINED,
    PortfolioBacktest,
    PortfolioResult,
    PortfolioSelection,
    Series,
)
from torchcommodity.report._comparisons import SIGNIFICANCE
from torchcommodity.report._markup import Markup, element, figure, join, paragraph, section
from torchcommodity.report._page import page
from torchcommodity.report._report_data import RunRecord
from torchcommodity.report._sections import created, data_section, reproduce_section, scope_note
from torchcommodity.report._tables import table

if TYPE_CHECKING:
    import pandas as pd

MAX_POINTS = 700  # points per line, about the width of a screen
COLUMNS = (
    "Portfolio",
    "Sharpe",
    "Deflated",
    "Difference",
    "95 % interval",
    "Return",
    "Volatility",
    "Drawdown",
    "Turnover",
    "Costs",
)
LABELS = {TRAINED: "LSTM", UNTRAINED: "LSTM, untrained"}
COLORS = tuple(PALETTE["light"][name] for name in ("accent", "series5", "mark", "series3", "series4", "muted"))
SCOPE = (
    "The results are those of daily rebalancing in years that the model had not seen, after the stated costs; without "
    "market impact, margin interest, taxes and interest on collateral.",
    "Returns are those of the contract held: the price gap between two contracts on a roll is not earned. Without a "
    "curve, which has the price of the next contract, the asset is not invested over that row and still pays for the "
    "roll. A series without a roll calendar is treated as a spot price, which cannot be traded in this form.",
    "A day without a positive price cannot be traded: the next return spans it. So does the "
    "return over 2020-04-20, when the front WTI contract closed at -37.63 dollars; the true loss was far larger than "
    "shown here.",
    "A difference whose interval contains zero may be due to chance. None of this is investment advice.",
)
FILES = (
    "portfolio.csv has the table, daily.csv the daily return of every portfolio after costs, weights.csv the weights "
    "of the trained portfolio."
)
NOTES = (
    "Sharpe ratio, return (not compounded), volatility, turnover and costs are annualized, after costs. Deflated is "
    "the probability that the true Sharpe ratio exceeds the one that the best of these portfolios has by luck; 0.95 "
    "is the usual threshold. Drawdown is the largest loss from a peak; turnover counts both sides of a trade as a "
    "multiple of wealth. The difference is the Sharpe ratio of the LSTM minus that of the row's portfolio, with the "
    "interval of Ledoit and Wolf, a studentized block bootstrap."
)


@dataclass(frozen=True)
class PortfolioReportData:
    """Content of a portfolio report: prices, backtest, run."""

    panel: Panel
    result: PortfolioBacktest
    run: RunRecord


def portfolio_days(result: PortfolioBacktest) -> "pd.DataFrame":
    """Daily return of every portfolio after costs, a share of wealth; one column per portfolio and cost."""
    import pandas as pd

    index = pd.DatetimeIndex(result.dates, name="date")
    returns = {f"{item.name} {1e4 * item.cost:g}bp": item.net.numpy() for item in result.results}
    table: pd.DataFrame = pd.DataFrame(returns, index=index)
    return table


def portfolio_weights(result: PortfolioBacktest) -> "pd.DataFrame":
    """Weights of the trained portfolio from the close of each test day on, shares of wealth; a row per cost and day."""
    import pandas as pd

    index = pd.DatetimeIndex(result.dates, name="date")
    parts = []
    for item in result.results:
        if item.name == TRAINED:
            weights = pd.DataFrame(item.weights[-len(index) :].numpy(), index=index, columns=list(result.symbols))
            weights.insert(0, "cost_bps", round(1e4 * item.cost, 9))
            parts.append(weights)
    table: pd.DataFrame = pd.concat(parts)
    return table


def portfolio_html(report: PortfolioReportData) -> str:
    """Convert the backtest to one HTML page."""
    result = report.result
    kind = "long and short" if result.long_short else "long only"
    more = f" and {len(result.symbols) - 6} more" if len(result.symbols) > 6 else ""
    title = f"Portfolio, {kind}: {', '.join(result.symbols[:6])}{more}"
    lead = (
        f"Walk-forward backtest from {result.dates[0]} to {result.dates[-1]}, one model per year. Created "
        f"{created(report.run)}."
    )
    header = join([element("h1", title), paragraph(lead, class_="lead"), scope_note("What these results cover", SCOPE)])
    fits = element("ul", *(element("li", fit) for fit in result.fits))
    parts = (
        section("results", "Results", *_results(result)),
        section("weights", "Weights", _weights(result), element("h3", "Training"), fits),
        data_section(report.panel, report.run),
        reproduce_section(report.run, FILES),
    )
    figures = {f"chart-wealth-{n}": _wealth_chart(result, cost) for n, cost in enumerate(_costs(result))}
    return page(title, header, parts, figures, report.run)


def portfolio_row(result: PortfolioResult, selection: PortfolioSelection) -> tuple[str, ...]:
    """Table cells of one portfolio, as in `COLUMNS`."""
    performance, difference = result.performance, result.sharpe_difference
    interval = ""
    if difference is not None:  # the returns may be constant
        bounds = f"{_signed(difference.low)} to {_signed(difference.high)}"
        interval = "none" if np.isnan(difference.low) else bounds
    return (
        LABELS.get(result.name, result.name.capitalize()),
        _signed(performance.sharpe_ratio),
        f"{selection.deflated_sharpe[result.name]:.2f}".replace("nan", "none"),
        "" if difference is None else _signed(difference.difference),
        interval,
        f"{100 * performance.annual_return:+.1f} %",
        f"{100 * performance.annual_volatility:.1f} %",
        f"{100 * performance.max_drawdown:.0f} %",
        f"{performance.turnover:.1f}",
        f"{100 * performance.costs:.2f} %",
    )


def describe_results(results: list[PortfolioResult]) -> str:
    """Summarize the comparisons of the LSTM with the other portfolios in one sentence."""
    comparisons = [result.sharpe_difference for result in results if result.sharpe_difference is not None]
    better, worse = (sum(c.significant and sign * c.difference > 0 for c in comparisons) for sign in (1, -1))
    higher = sum(c.difference > 0 for c in comparisons)
    return (
        f"The LSTM has a higher Sharpe ratio than {higher} of {len(comparisons)} other portfolios; the difference is "
        f"significantly positive against {better} and significantly negative against {worse}."
    )


def describe_selection(selection: PortfolioSelection) -> str:
    """Summarize in one sentence whether the best portfolio is more than luck; "" where that cannot be told."""
    if math.isnan(selection.p_value):
        return ""
    best, benchmark = (LABELS.get(name, name) for name in (selection.best, selection.benchmark))
    is_better = "is" if selection.p_value < SIGNIFICANCE else "is not"
    return (
        f"Allowing for the choice among {len(selection.deflated_sharpe)} portfolios, {best} {is_better} significantly "
        f"better than {benchmark} (SPA test, p = {selection.p_value:.2f}); the portfolio with the best past was below "
        f"the median afterwards in {100 * selection.overfitting:.0f} % of splits."
    )


def _signed(ratio: float) -> str:
    return "none" if np.isnan(ratio) else f"{ratio:+.2f}"


def _results(result: PortfolioBacktest) -> Iterator[Markup]:
    for n, cost in enumerate(_costs(result)):
        results, selection = result.at_cost(cost), result.selections[cost]
        yield element("h3", f"At {1e4 * cost:g} basis points per trade, {2e4 * cost:g} per roll")
        yield paragraph(element("strong", describe_results(results)), " ", describe_selection(selection))
        rows = (portfolio_row(item, selection) for item in results)
        yield table(f"Portfolios at {1e4 * cost:g} basis points", COLUMNS, rows, stack="portfolio")
        final = "; ".join(f"{LABELS.get(r.name, r.name)} {100 * (_wealth(r)[-1] - 1):+.0f} %" for r in results)
        yield figure(
            f"wealth-{n}", f"Line chart of wealth after costs; final: {final}.", "Wealth after costs, compounded."
        )
    yield paragraph(NOTES, class_="lead")
    yield from (paragraph(f"Excluded: {reason}.") for reason in result.excluded)


def _weights(result: PortfolioBacktest) -> Markup:
    trained = result.results[0]
    weights = trained.weights[-len(result.dates) :].numpy()
    rows = [
        (
            symbol,
            f"{100 * weights[:, n].mean():+.1f} %",
            f"{100 * weights[:, n].min():+.1f} %",
            f"{100 * weights[:, n].max():+.1f} %",
        )
        for n, symbol in enumerate(result.symbols)
    ]
    caption = f"Weights of the LSTM at {1e4 * trained.cost:g} basis points, shares of wealth"
    return table(caption, ("Symbol", "Mean", "Minimum", "Maximum"), rows)


def _costs(result: PortfolioBacktest) -> list[float]:
    return list(dict.fromkeys(item.cost for item in result.results))


def _wealth(result: PortfolioResult) -> Series:
    wealth: Series = (1 + result.net.numpy()).cumprod()
    return wealth


def _wealth_chart(result: PortfolioBacktest, cost: float) -> Chart:
    rows = np.unique(np.linspace(0, len(result.dates) - 1, MAX_POINTS).round().astype(int))
    dates = list(map(str, result.dates[rows]))
    lines = [
        line_trace(dates, _wealth(item)[rows], color, LABELS.get(item.name, item.name))
        for item, color in zip(result.at_cost(cost), COLORS)
    ]
    layout = chart_layout(xaxis={"type": "date"}, yaxis={**log_axis(), "title": {"text": "wealth, log scale"}})
    # two columns: a single one leaves no room for the lines on a phone
    layout["legend"] |= {"entrywidth": 0.5, "entrywidthmode": "fraction", "font": {"size": 11}}
    return {"data": lines[::-1], "layout": layout}

"""One walk-forward of portfolios as tables, and as one self-contained page."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from torchcommodity.data import Finding, Panel
from torchcommodity.portfolio import OURS, UNTRAINED, FoldResult, Interval, Result, Series
from torchcommodity.report import _charts as charts
from torchcommodity.report import _sections as sections
from torchcommodity.report._blocks import figure, paragraph, section
from torchcommodity.report._contents import Run
from torchcommodity.report._markup import Markup, element, join, table
from torchcommodity.report._page import whole_page

POINTS = 700  # of a line; a screen shows no more
HEADS = (
    "Portfolio",
    "Sharpe",
    "LSTM less it",
    "95 % interval",
    "Return",
    "Volatility",
    "Drawdown",
    "Turnover",
    "Costs",
)
NAMES = {OURS: "LSTM", UNTRAINED: "LSTM, untrained"}
COLOURS = ("#0b5c8a", "#8fb8d0", "#b3461b", "#3d7a3a", "#7a4a9c", "#5a6875")
CLAIMS = (
    "It says what daily rebalancing would have made in years that the model had not seen, with the stated costs and "
    "without market impact, margin interest, taxes and the interest on collateral.",
    "Returns are those of the contract that was held: the gap between two contracts on a roll is nobody's gain. Where "
    "no curve knows what the next contract cost, the asset counts as not invested over that row, and still pays for "
    "the roll. Without a calendar a series is taken for a spot price, which cannot be bought like this.",
    "A day without a positive price cannot be traded: the next return spans it. So the 20th of April 2020, when the "
    "front WTI contract closed at -37.63 dollars, is bridged; whoever held it lost far more than this page shows.",
    "An interval that contains zero means that chance may be all of the difference. None of it is investment advice.",
)
FILES = (
    "portfolio.csv has the table, daily.csv what every portfolio made on every day after costs, weights.csv what the "
    "trained portfolio held."
)
NOTES = (
    "Sharpe ratio, return (not compounded), volatility, turnover and costs are a year's, after costs; drawdown is the "
    "largest loss from a peak; turnover counts both sides of a trade as a multiple of wealth. The interval is that of "
    "Ledoit and Wolf: a studentized bootstrap of blocks."
)


@dataclass(frozen=True)
class PortfolioContents:
    """One report: prices and what was found about them, the walk-forward, the run."""

    panel: Panel
    findings: tuple[Finding, ...]
    walked: FoldResult
    run: Run


def portfolio_table(walked: FoldResult) -> pd.DataFrame:
    """One row a cost and portfolio: what it did, and the Sharpe ratio of ours less its own with the interval."""
    rows = []
    for result in walked.results:
        against = result.against
        less = {"ours_less": against.difference, "low": against.low, "high": against.high} if against else {}
        rows.append({"cost_bps": 1e4 * result.cost, "portfolio": result.name, **asdict(result.measures), **less})
    found: pd.DataFrame = pd.DataFrame(rows).round({"cost_bps": 9})
    return found


def portfolio_days(walked: FoldResult) -> pd.DataFrame:
    """What every portfolio made on every test day after costs, a share of wealth."""
    index = pd.DatetimeIndex(walked.dates, name="date")
    made = {f"{result.name} {1e4 * result.cost:g}bp": result.net.numpy() for result in walked.results}
    found: pd.DataFrame = pd.DataFrame(made, index=index)
    return found


def portfolio_weights(walked: FoldResult) -> pd.DataFrame:
    """What the trained portfolio held from the close of each test day on, a share of wealth; a row a cost and day."""
    index = pd.DatetimeIndex(walked.dates, name="date")
    parts = []
    for result in walked.results:
        if result.name == OURS:
            held = pd.DataFrame(result.weights[-len(index) :].numpy(), index=index, columns=list(walked.symbols))
            held.insert(0, "cost_bps", round(1e4 * result.cost, 9))
            parts.append(held)
    found: pd.DataFrame = pd.concat(parts)
    return found


def portfolio_html(contents: PortfolioContents) -> str:
    """The walk-forward as one HTML page."""
    walked = contents.walked
    parts = (
        section("results", "Results", *_results(walked)),
        section("held", "What was held", _held(walked), _training(walked)),
        sections.data(contents.panel, contents.findings, contents.run),
        sections.reproduce(contents.run, FILES),
    )
    return whole_page(_title(walked), _header(contents), parts, _figures(walked), contents.run)


def row(result: Result) -> tuple[str, ...]:
    """The cells of one portfolio, as in HEADS."""
    found, rates = result.measures, result.against
    return (
        NAMES.get(result.name, result.name.capitalize()),
        _signed(found.sharpe),
        "" if rates is None else _signed(rates.difference),
        "" if rates is None else between(rates),
        f"{100 * found.made:+.1f} %",
        f"{100 * found.volatility:.1f} %",
        f"{100 * found.drawdown:.0f} %",
        f"{found.turnover:.1f}",
        f"{100 * found.costs:.2f} %",
    )


def between(found: Interval) -> str:
    """`-0.12 to +0.34`, or `none` where a portfolio never moved."""
    return "none" if np.isnan(found.low) else f"{_signed(found.low)} to {_signed(found.high)}"


def _signed(ratio: float) -> str:
    return "none" if np.isnan(ratio) else f"{ratio:+.2f}"


def describe_results(results: list[Result]) -> str:
    """Wins and losses of ours in one sentence."""
    found = [result.against for result in results if result.against is not None]
    won, lost = (sum(one.sure and sign * one.difference > 0 for one in found) for sign in (1, -1))
    higher = sum(one.difference > 0 for one in found)
    return (
        f"Of {len(found)} other portfolios the LSTM has the higher Sharpe ratio than {higher}; beyond chance it is "
        f"better than {won} and worse than {lost}."
    )


def _title(walked: FoldResult) -> str:
    return f"Portfolio, {'long and short' if walked.long_short else 'long only'}: {', '.join(walked.symbols[:6])}" + (
        f" and {len(walked.symbols) - 6} more" if len(walked.symbols) > 6 else ""
    )


def _header(contents: PortfolioContents) -> Markup:
    walked, made = contents.walked, contents.run.made[:16].replace("T", " ")
    span = f"FoldResult forward from {walked.dates[0]} to {walked.dates[-1]}, a model a year. Made {made} UTC."
    return join(
        [
            element("h1", _title(walked)),
            paragraph(span, class_="lead"),
            element(
                "div",
                element("h2", "What this table is, and what it is not"),
                element("ul", *(element("li", sentence) for sentence in CLAIMS)),
                class_="note",
            ),
        ]
    )


def _results(walked: FoldResult) -> Iterator[Markup]:
    for n, cost in enumerate(_costs(walked)):
        results = walked.at(cost)
        yield element("h3", f"At {1e4 * cost:g} basis points a trade, {2e4 * cost:g} a roll")
        yield paragraph(element("strong", describe_results(results)))
        yield table(f"Portfolios at {1e4 * cost:g} basis points", HEADS, map(row, results))
        words = "; ".join(f"{NAMES.get(r.name, r.name)} {100 * (_wealth(r)[-1] - 1):+.0f} %" for r in results)
        yield figure(f"wealth-{n}", f"Wealth after costs, by the end: {words}.", "Wealth after costs, compounded.")
    yield paragraph(NOTES, class_="lead")
    yield from (paragraph(f"Left out: {reason}.") for reason in walked.left_out)


def _held(walked: FoldResult) -> Markup:
    ours = walked.results[0]
    held = ours.weights[-len(walked.dates) :].numpy()
    rows = [
        (
            symbol,
            f"{100 * held[:, n].mean():+.1f} %",
            f"{100 * held[:, n].min():+.1f} %",
            f"{100 * held[:, n].max():+.1f} %",
        )
        for n, symbol in enumerate(walked.symbols)
    ]
    caption = f"Weights of the LSTM at {1e4 * ours.cost:g} basis points, a share of wealth"
    return table(caption, ("Symbol", "Mean", "Least", "Most"), rows)


def _training(walked: FoldResult) -> Markup:
    return join([element("h3", "What training gave"), element("ul", *(element("li", fit) for fit in walked.fits))])


def _costs(walked: FoldResult) -> list[float]:
    return list(dict.fromkeys(result.cost for result in walked.results))


def _wealth(result: Result) -> Series:
    found: Series = (1 + result.net.numpy()).cumprod()
    return found


def _figures(walked: FoldResult) -> dict[str, charts.Figure]:
    return {f"chart-wealth-{n}": _growth(walked, cost) for n, cost in enumerate(_costs(walked))}


def _growth(walked: FoldResult, cost: float) -> charts.Figure:
    keep = np.unique(np.linspace(0, len(walked.dates) - 1, POINTS).round().astype(int))
    dates = list(map(str, walked.dates[keep]))
    lines = [
        charts.line(dates, _wealth(result)[keep], color, NAMES.get(result.name, result.name))
        for result, color in zip(walked.at(cost), COLOURS)
    ]
    axis = {"type": "log", "title": {"text": "wealth"}}
    layout = charts.framed(xaxis={"type": "date"}, yaxis=axis)
    # two columns: one under another they would leave no room for the lines on a telephone
    layout["legend"] |= {"entrywidth": 0.5, "entrywidthmode": "fraction", "font": {"size": 11}}
    return {"data": lines[::-1], "layout": layout}

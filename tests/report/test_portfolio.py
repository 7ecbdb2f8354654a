"""The portfolio page and its tables, from returns of real prices held at fixed weights."""

from dataclasses import replace
from html import unescape
from re import sub

import numpy as np
import pytest
import torch

from torchcommodity import ops
from torchcommodity.portfolio import (
    TRAINED,
    UNTRAINED,
    Performance,
    PortfolioBacktest,
    PortfolioResult,
    PortfolioSelection,
)
from torchcommodity.portfolio import SharpeDifference as Difference
from torchcommodity.report import (
    PortfolioReportData,
    ReportData,
    describe_results,
    describe_selection,
    portfolio_days,
    portfolio_html,
    portfolio_row,
    portfolio_weights,
)

PERFORMANCE = Performance(0.5, 0.06, 0.12, 0.21, 3.0, 0.0012, 0.018)


@pytest.fixture(scope="module")
def result(report: ReportData) -> PortfolioBacktest:
    returns = ops.log_returns(report.panel.values.plain()).nan_to_num()[-250:]
    weights = torch.full_like(returns, 0.5)
    net = (weights * returns).sum(-1)
    differences = {
        TRAINED: None,
        UNTRAINED: Difference(-0.3, -0.5, -0.1),
        "equal weight": Difference(0.2, -0.1, 0.5),
    }
    scales = dict(zip(differences, (1.0, 0.5, 0.25)))
    results = tuple(
        PortfolioResult(name, cost, weights, scales[name] * net, PERFORMANCE, difference)
        for cost in (2e-4, 1e-3)
        for name, difference in differences.items()
    )
    return PortfolioBacktest(report.panel.dates[-250:], report.panel.symbols, False, results, ("2018: epoch 3",))


def test_portfolio_html_has_a_table_and_a_chart_per_cost(report: ReportData, result: PortfolioBacktest) -> None:
    page = portfolio_html(PortfolioReportData(report.panel, result, report.run))
    text = unescape(sub(r"<[^>]+>", " ", page.partition("<main")[2].partition("</main>")[0]))
    assert "At 2 basis points per trade, 4 per roll" in text
    assert "At 10 basis points per trade, 20 per roll" in text
    assert "higher Sharpe ratio than 1 of 2 other portfolios" in text
    assert "2018: epoch 3" in text
    assert page.count('id="chart-wealth-') == 2


def test_describe_results_counts_significant_differences(result: PortfolioBacktest) -> None:
    assert describe_results(result.at_cost(2e-4)).endswith(
        "the difference is significantly positive against 0 and significantly negative against 1."
    )


def test_portfolio_row_formats_every_column(result: PortfolioBacktest) -> None:
    selection = PortfolioSelection({TRAINED: np.nan, "equal weight": 0.876}, TRAINED, "equal weight", 0.3, 0.5)
    assert portfolio_row(result.results[0], selection)[:5] == ("LSTM", "+0.50", "none", "", "")
    assert portfolio_row(result.results[2], selection) == (
        "Equal weight", "+0.50", "0.88", "+0.20", "-0.10 to +0.50", "+6.0 %", "12.0 %", "21 %", "3.0", "0.12 %"
    )  # fmt: skip


def test_describe_selection_says_whether_the_best_is_luck() -> None:
    selection = PortfolioSelection({TRAINED: 0.5, "equal weight": 0.4}, TRAINED, "equal weight", 0.3, 0.5)
    assert describe_selection(selection) == (
        "Allowing for the choice among 2 portfolios, LSTM is not significantly better than equal weight (SPA test, "
        "p = 0.30); the portfolio with the best past was below the median afterwards in 50 % of splits."
    )
    assert "LSTM is significantly better" in describe_selection(replace(selection, p_value=0.01))
    assert describe_selection(replace(selection, p_value=np.nan)) == ""


def test_portfolio_tables_have_a_row_per_day(result: PortfolioBacktest) -> None:
    days = portfolio_days(result)
    assert len(days) == 250
    assert list(days.columns[:2]) == [f"{TRAINED} 2bp", f"{UNTRAINED} 2bp"]
    np.testing.assert_array_equal(days.iloc[:, 0], result.results[0].net.numpy())
    weights = portfolio_weights(result)
    assert len(weights) == 2 * 250
    assert list(weights.columns) == ["cost_bps", "WTI", "BRENT"]
    assert set(weights["cost_bps"]) == {2.0, 10.0}

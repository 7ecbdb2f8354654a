"""The portfolio page and its tables, from returns of real prices held at fixed weights."""

from html import unescape
from re import sub

import numpy as np
import pytest
import torch

from torchcommodity import ops
from torchcommodity.portfolio import TRAINED, UNTRAINED, Performance, PortfolioBacktest, PortfolioResult
from torchcommodity.portfolio import SharpeDifference as Difference
from torchcommodity.report import (
    PortfolioReportData,
    ReportData,
    describe_results,
    portfolio_days,
    portfolio_html,
    portfolio_row,
    portfolio_weights,
)

PERFORMANCE = Performance(0.5, 0.06, 0.12, 0.21, 3.0, 0.0012)


@pytest.fixture(scope="module")
def result(report: ReportData) -> PortfolioBacktest:
    returns = ops.log_returns(report.panel.values.plain()).nan_to_num()[-250:]
    weights = torch.full_like(returns, 0.5)
    net = (weights * returns).sum(-1)
    differences = {TRAINED: None, UNTRAINED: Difference(-0.3, -0.5, -0.1), "momentum": Difference(0.2, -0.1, 0.5)}
    results = tuple(
        PortfolioResult(name, cost, weights, net, PERFORMANCE, difference)
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
    assert portfolio_row(result.results[0])[:4] == ("LSTM", "+0.50", "", "")
    assert portfolio_row(result.results[2]) == (
        "Momentum", "+0.50", "+0.20", "-0.10 to +0.50", "+6.0 %", "12.0 %", "21 %", "3.0", "0.12 %"
    )  # fmt: skip


def test_portfolio_tables_have_a_row_per_day(result: PortfolioBacktest) -> None:
    days = portfolio_days(result)
    assert len(days) == 250
    assert list(days.columns[:2]) == [f"{TRAINED} 2bp", f"{UNTRAINED} 2bp"]
    np.testing.assert_array_equal(days.iloc[:, 0], result.results[0].net.numpy())
    weights = portfolio_weights(result)
    assert len(weights) == 2 * 250
    assert list(weights.columns) == ["cost_bps", "WTI", "BRENT"]
    assert set(weights["cost_bps"]) == {2.0, 10.0}

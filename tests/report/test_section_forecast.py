"""Losses of a position in the forecast section, and the PIT histogram beside the calibration."""

from dataclasses import replace
from html import unescape
from re import findall, sub

import numpy as np
import pytest

from torchcommodity.forecast import BacktestSummary
from torchcommodity.report import ReportData
from torchcommodity.report._section_backtest import pit_chart
from torchcommodity.report._section_forecast import losses


def test_losses_are_those_of_the_outer_quantiles(report: ReportData) -> None:
    forecast, row = report.forecast, report.outlook.rows[0]
    text = unescape(sub(r"<[^>]+>", " ", losses(forecast, row, 0)))
    cells = {name: [float(x) for x in findall(r"([\d.]+) %", text.partition(name)[2])[:4]] for name in NAMES}
    low, high = forecast.log_returns[:, 0, 0].expm1().numpy(), forecast.log_returns[:, 0, -1].expm1().numpy()
    assert cells["Long, VaR"] == pytest.approx(-100 * low, abs=0.051)
    assert cells["Short, VaR"] == pytest.approx(100 * high, abs=0.051)
    for side in ("Long", "Short"):
        assert all(es > var for es, var in zip(cells[f"{side}, ES"], cells[f"{side}, VaR"]))
    assert max(cells["Long, ES"]) < 100


NAMES = ("Long, VaR", "Long, ES", "Short, VaR", "Short, ES")


def test_losses_mention_rolls_of_contracts_only(report: ReportData) -> None:
    row = report.outlook.rows[0]
    assert "contract rolls" not in losses(report.forecast, row, 0)
    assert "contract rolls" in losses(report.forecast, replace(row, contract="CL"), 0)


def test_losses_are_left_out_without_quantiles_so_far_out(report: ReportData) -> None:
    forecast = report.forecast
    inner = replace(
        forecast,
        levels=forecast.levels[1:-1],
        log_returns=forecast.log_returns[..., 1:-1],
        prices=forecast.prices[..., 1:-1],
    )
    assert losses(inner, report.outlook.rows[0], 0) == ""


def test_pit_chart_averages_to_one(summary: BacktestSummary, report: ReportData) -> None:
    chart = pit_chart(summary, report.forecast.calendar)
    assert [trace["name"] for trace in chart["data"]] == ["1 week", "1 month", "3 months", "6 months"]
    week = chart["data"][0]
    assert (week["x"][0], week["x"][-1], len(week["x"])) == ("0\u201310", "90\u2013100", 10)
    assert np.mean(week["y"]) == pytest.approx(1, abs=0.001)
    assert week["y"][0] == pytest.approx(summary.calibration["5"][1] / 0.1, abs=0.001)

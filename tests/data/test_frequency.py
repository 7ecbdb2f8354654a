"""Frequency of a panel, from its dates."""

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity.data import Panel, embedded, infer_frequency, month_end


def _dates(*days: str) -> np.ndarray:
    return np.array(days, dtype="datetime64[D]")


@pytest.mark.parametrize("rule", ["MS", "ME", "BME", "BMS"])
def test_monthly_dates_on_any_day_of_the_month_are_monthly(rule):
    assert infer_frequency(pd.date_range("1960-01-01", periods=40, freq=rule).to_numpy()) == "monthly"


def test_the_fifteenth_of_each_month_is_monthly():
    months = np.arange("1960-01", "1962-01", dtype="datetime64[M]")
    assert infer_frequency(months.astype("datetime64[D]") + np.timedelta64(14, "D")) == "monthly"


@pytest.mark.parametrize(
    ("rule", "expected"), [("B", "daily"), ("D", "daily"), ("W-FRI", "weekly"), ("W-TUE", "weekly")]
)
def test_median_spacing_decides(rule, expected):
    assert infer_frequency(pd.date_range("2001-01-01", periods=60, freq=rule).to_numpy()) == expected


def test_gaps_do_not_change_the_frequency():
    days = pd.bdate_range("2001-01-01", "2003-12-31").to_numpy().astype("datetime64[D]")
    outside = (days < np.datetime64("2001-06-01")) | (days > np.datetime64("2003-06-01"))
    assert infer_frequency(days[outside]) == "daily"


def test_fewer_than_two_dates_are_daily():
    assert infer_frequency(_dates("2001-01-01")) == infer_frequency(_dates()) == "daily"


def test_panel_frequency_ignores_rows_without_a_price():
    panel = embedded()
    assert panel.frequency == "daily"
    prices = panel.values.plain().clone()
    months = panel.dates.astype("datetime64[M]")
    prices[torch.from_numpy(np.append(months[1:] == months[:-1], True))] = torch.nan  # keep the last row of each month
    monthly = Panel(prices, panel.dates, panel.symbols, panel.units, panel.provenance)
    assert monthly.frequency == "monthly"
    assert panel.between("2017-01-03", "2017-01-03").frequency == "daily"


def test_month_end_is_the_last_weekday():
    months = np.arange("1959-12", "2031-01", dtype="datetime64[M]")
    days = month_end(months)
    assert np.is_busday(days).all()
    assert (days.astype("datetime64[M]") == months).all()
    assert (days == pd.date_range("1959-12", periods=len(months), freq="BME").to_numpy().astype("datetime64[D]")).all()

"""The JSON document and the CSV table."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity.report import ReportData, to_csv, to_json


def test_json_has_the_forecast_and_its_sources(report: ReportData) -> None:
    document = json.loads(to_json(report), parse_constant=pytest.fail)
    assert document["seed"] == 0
    assert document["versions"]["torch"]
    assert [c["series"] for c in document["data"]["columns"]] == ["RWTC", "RBRTE"]
    symbol = document["forecast"]["symbols"]["WTI"]
    assert symbol["origin"] == "2018-12-28"
    assert symbol["dates"]["5"] == "2019-01-07"
    assert symbol["quantiles"]["5"]["0.5"] == report.forecast.prices[0, 0, 9].item()
    assert document["backtest"]["symbols"] == ["WTI", "BRENT"]
    assert document["backtest"]["model"] == "har-garch"
    own = [score for score in document["backtest"]["scores"] if score["model"] == "har-garch"]
    assert [score["dm"] for score in own] == [None] * 4


def test_json_has_the_outlook(report: ReportData) -> None:
    row = json.loads(to_json(report))["outlook"]["rows"][0]
    assert (row["name"], row["last_date"], row["previous_date"]) == ("WTI crude oil, Cushing", "2018-12-28", None)
    assert row["ranges"][0]["low"] == report.forecast.prices[0, 0, 1].item()
    assert row["ranges"][0]["coverage"]["independent"] == 49  # weeks of 2018 with an outcome


def test_json_has_the_parts_of_the_location(report: ReportData) -> None:
    assert report.location is not None
    parts = json.loads(to_json(report))["location"]
    assert len(parts) == len(report.location.parts) > 0
    assert {part["horizon"] for part in parts} == {5}  # too few outcomes of the others
    assert parts[0].keys() == {"symbol", "horizon", "source", "deviation", "log_return", "years"}
    assert json.loads(to_json(replace(report, location=None)))["location"] == []


def test_json_says_why_there_is_no_backtest(hostile: ReportData) -> None:
    assert json.loads(to_json(hostile))["backtest"] == {"missing": "too short."}


def test_csv_has_every_quantile_with_unit_and_target_date(report: ReportData, tmp_path: Path) -> None:
    path = tmp_path / "forecast.csv"
    path.write_text(to_csv(report))
    frame = pd.read_csv(path)
    assert list(frame.columns) == ["symbol", "unit", "origin", "horizon", "date", "level", "log_return", "price"]
    assert len(frame) == 4 * 2 * 19
    dates = frame.loc[frame["symbol"] == "BRENT", "date"]
    assert set(dates) == {"2019-01-07", "2019-01-29", "2019-03-28", "2019-07-01"}  # of London
    np.testing.assert_allclose(frame["price"], report.forecast.to_pandas()["price"], rtol=1e-12)


def test_csv_quotes_cells_that_a_spreadsheet_would_run(single_symbol: ReportData) -> None:
    forecast = replace(single_symbol.forecast, symbols=("=HYPERLINK(1)",), units=("@SUM(A1)",))
    row = next(csv.DictReader(to_csv(replace(single_symbol, forecast=forecast)).splitlines()))
    assert (row["symbol"], row["unit"]) == ("'=HYPERLINK(1)", "'@SUM(A1)")
    assert float(row["log_return"]) < 0  # numbers are not quoted


def test_record_of_a_run_escapes_bytes_of_file_names_that_are_no_text(report: ReportData) -> None:
    source = os.fsdecode(b"caf\xe9.csv")
    run = replace(report.run, source=source, command=f"torchcommodity forecast --data {source}")
    assert (run.source, run.command) == (r"caf\udce9.csv", r"torchcommodity forecast --data caf\udce9.csv")

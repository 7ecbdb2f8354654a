"""`--spread` in commands that read prices, and the price form that `data check` prints."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity import data
from torchcommodity.cli import _prices

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_spread_option_adds_symbols(prices: Path) -> None:
    panel = _prices.read_prices(str(prices), spreads=["BRENT-WTI", "LEGS=2*WTI-BRENT"])
    assert panel.symbols == ("WTI", "BRENT", "BRENT-WTI", "LEGS")
    legs = panel.select(["WTI", "BRENT"])
    assert panel.select(["BRENT-WTI"]).drop_empty_rows().equals(data.spread(legs, "BRENT-WTI"))


def test_spread_option_finds_legs_that_are_no_symbols_of_the_forecast() -> None:
    panel = _prices.read_prices("embedded", "crack-3-2-1,WTI", spreads=["crack-3-2-1"])
    assert panel.symbols == ("crack-3-2-1", "WTI")
    assert panel.references is None
    with_references = _prices.read_prices("embedded", spreads=["crack-3-2-1"])
    assert with_references.symbols == ("WTI", "BRENT", "HENRY_HUB", "crack-3-2-1")
    assert with_references.references is not None
    alone = _prices.read_prices("embedded", references="none", spreads=["crack-3-2-1"])
    assert alone.symbols == with_references.symbols
    assert alone.references is None


def test_spread_option_takes_a_calendar_spread_of_the_curve(prices: Path, tmp_path: Path) -> None:
    front = data.embedded(["WTI"]).between("2015-07-01", "2018-12-31").to_pandas("long").dropna()
    nearby = [front.assign(nth=1, close=front["price"]), front.assign(nth=2, close=front["price"] + 1)]
    curve = tmp_path / "curve.csv"
    pd.concat(nearby)[["date", "symbol", "nth", "close"]].to_csv(curve, index=False)
    panel = _prices.read_prices(str(prices), "CL1-CL2", "WTI=CL", str(curve), spreads=["CL1-CL2"])
    assert panel.symbols == ("CL1-CL2",)
    assert panel.contracts == ("CL",)
    assert panel.values.plain().nanmean().item() == pytest.approx(-1)


def test_spread_option_accepts_findings_of_the_spread(prices: Path) -> None:
    kinds = "nonpositive,origin not stated,ended,empty row"
    panel = _prices.read_prices(str(prices), spreads=["WTI-BRENT"], options=_prices.SourceOptions(accept=kinds))
    assert {finding.treatment for finding in panel.findings if finding.kind in kinds} == {"accepted"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WTI", "at least two legs, or one of crack-3-2-1, crack-gasoline, crack-heating-oil, crush-soybean; got WTI"),
        ("WTI*BRENT", "spread: expected NAME=2*GASOLINE+HEATOIL-3*WTI"),
        ("BRNT-WTI", "unknown symbol 'BRNT' in legs; did you mean 'BRENT'?"),
        ("WTI=WTI-BRENT", "a name other than the symbols of the prices"),
    ],
)
def test_spread_option_refuses_what_is_none(run: Run, error: Error, prices: Path, text: str, message: str) -> None:
    result = run("data", "check", prices, "--spread", text)
    assert result.exit_code == 2
    assert message in error(result)


def test_data_check_says_log_or_asinh(run: Run) -> None:
    text = run("data", "check", "embedded", "--spread", "BRENT-WTI").stdout
    assert "Price form: WTI log: one price below zero, -36.98 on 2020-04-20: left out of returns" in text
    assert "Price form: BRENT-WTI asinh: 5,408 of 9,781 prices are below zero" in text
    assert "Price form: BRENT, HENRY_HUB log" in text
    assert text.count("5,408 of 9,781") == 1
    document = json.loads(run("data", "check", "embedded", "--spread", "BRENT-WTI", "--json").stdout)
    assert [form["form"] for form in document["forms"]] == ["log", "log", "log", "asinh"]


def test_data_check_of_a_file_with_negative_prices_says_asinh(run: Run, tmp_path: Path) -> None:
    panel = data.embedded(["WTI", "BRENT"])
    panel.join(data.spread(panel, "BRENT-WTI")).to_pandas().to_csv(path := tmp_path / "prices.csv")
    result = run("data", "check", path)
    assert result.exit_code == 0
    assert "Price form: BRENT-WTI asinh: 5,408 of 9,781 prices are below zero" in result.stdout


def test_commands_say_once_that_a_spread_is_signed(run: Run, tmp_path: Path) -> None:
    prices, model = tmp_path / "prices.csv", tmp_path / "model.safetensors"
    panel = data.embedded(["GASOLINE_NYH", "GASOLINE_USGC"]).between("2012-01-01", "2016-12-31")
    panel.to_pandas().to_csv(prices)
    arguments = ("--data", prices, "--spread", "BASIS=GASOLINE_NYH-GASOLINE_USGC", "--symbols", "BASIS")
    assert run("fit", *arguments, "--out", model).exit_code == 0
    for command, spread in (("predict", arguments[2:4]), ("risk", ())):  # whose legs are those of the file
        result = run(command, model, *arguments[:2], *spread)
        assert result.exit_code == 0, result.output
        assert result.stdout.count("forecast as asinh(P / S)") == 1
    words = " ".join(result.stdout.split())
    assert "of a price that may be negative in its unit, per unit held" in words
    assert re.search(r"\b0\.0\d\d\d\d? /", words)  # of some cents


def test_spread_option_adds_to_the_chosen_symbols(prices: Path) -> None:
    assert _prices.read_prices(str(prices), "WTI", spreads=["S=WTI-BRENT"]).symbols == ("WTI", "S")

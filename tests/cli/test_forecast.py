"""`torchcommodity forecast`: files, tables, the cache, and a stop from outside."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded

Run = Callable[..., Result]
Error = Callable[[Result], str]
FILES = {"forecast.csv", "forecast.json", "report.html"}


def replace(path: Path, pattern: str, text: str) -> Path:
    content = path.read_text()
    assert re.search(pattern, content, flags=re.M)
    path.write_text(re.sub(pattern, text, content, count=1, flags=re.M))
    return path


def test_forecast_writes_its_files_and_uses_the_cache(run: Run, prices: Path, tmp_path: Path) -> None:
    first = run("forecast", "--data", prices, "--out", tmp_path / "a")
    assert first.exit_code == 0, first.output
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES
    assert "Fitted HAR-GARCH on 2 symbols, 2015-07-01 to 2018-12-28" in first.stdout
    assert "median" in first.stdout
    assert "No walk-forward test: backtest: a symbol must have 5 years" in first.stdout
    again = run("forecast", "--data", prices, "--out", tmp_path / "b")
    assert "(from the cache)" in again.stdout
    assert (tmp_path / "a" / "forecast.csv").read_bytes() == (tmp_path / "b" / "forecast.csv").read_bytes()
    other = run("forecast", "--data", prices, "--out", tmp_path / "b", "--seed", 1, "--symbols", "BRENT")
    assert "(from the cache)" not in other.stdout
    document = json.loads((tmp_path / "b" / "forecast.json").read_text())
    assert (document["seed"], list(document["forecast"]["symbols"])) == (1, ["BRENT"])


def test_forecast_says_what_moves_the_median(run: Run, prices: Path, tmp_path: Path) -> None:
    lines = run("forecast", "--data", prices, "--out", tmp_path / "a").stdout.splitlines()
    assert sum(line.startswith("Median over 3 months: ") and line.endswith(".") for line in lines) == 2
    rows = prices.read_text().splitlines()
    prices.write_text("\n".join([rows[0], *rows[-520:]]))  # too few for related prices and a season
    result = run("forecast", "--data", prices, "--out", tmp_path / "b")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines().count("Median over 3 months: no change expected.") == 2
    assert "3 months: no change expected" in (tmp_path / "b" / "report.html").read_text()


def test_forecast_quiet_prints_nothing(run: Run, prices: Path, tmp_path: Path) -> None:
    result = run("forecast", "--data", prices, "--out", tmp_path / "out", "--quiet", "--symbols", "WTI")
    assert (result.exit_code, result.output) == (0, "")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_forecast_recomputes_a_damaged_cache(run: Run, prices: Path, tmp_path: Path) -> None:
    run("forecast", "--data", prices, "--out", tmp_path / "a", "--symbols", "WTI")
    for path in (Path(os.environ["TORCHCOMMODITY_CACHE"]) / "models").iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    result = run("forecast", "--data", prices, "--out", tmp_path / "b", "--symbols", "WTI")
    assert "(from the cache)" not in result.stdout
    assert (tmp_path / "a" / "forecast.csv").read_bytes() == (tmp_path / "b" / "forecast.csv").read_bytes()


def test_forecast_starts_from_the_last_positive_price(run: Run, prices: Path, tmp_path: Path) -> None:
    series = embedded(["WTI"]).between("2015-07-01", "2018-12-31").to_pandas()["WTI"].dropna()
    last, previous = series.index[-1], series.index[-2]
    assert isinstance(last, pd.Timestamp)
    replace(prices, rf"^{last.date()},[^,]*", f"{last.date()},-37.63")
    result = run("forecast", "--data", prices, "--out", tmp_path / "out", "--symbols", "WTI")
    assert result.exit_code == 0, result.output
    assert "-37.63" in result.stdout
    assert "returns treat it as missing" in " ".join(result.stdout.split())
    document = json.loads((tmp_path / "out" / "forecast.json").read_text())
    assert document["forecast"]["symbols"]["WTI"]["origin"] == str(previous.date())
    values = [finding["value"] for finding in document["data"]["findings"] if finding["kind"] == "nonpositive"]
    assert values == ["-37.63"]


INVALID = {
    "text": (r"^2016-03-01,[^,]*", "2016-03-01,n/k", r"prices\.csv.* line 1\d\d.*n/k"),
    "date": (r"^2016-03-01", "2016-02-31", r"prices\.csv.* line 1\d\d.*2016-02-31"),
}


@pytest.mark.parametrize("kind", INVALID)
@pytest.mark.parametrize("command", [("forecast", "--data"), ("data", "add"), ("data", "check")], ids=" ".join)
def test_invalid_prices_are_rejected_with_file_and_line(
    run: Run, error: Error, kind: str, command: tuple[str, ...], prices: Path, tmp_path: Path
) -> None:
    pattern, text, message = INVALID[kind]
    before = {path.name for path in tmp_path.iterdir()}
    out = ("--out", tmp_path / "out") if command[0] == "forecast" else ()
    result = run(*command, replace(prices, pattern, text), *out)
    assert result.exit_code == 2
    assert re.search(message, error(result))
    assert result.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_forecast_stopped_by_a_signal_leaves_no_files(number: signal.Signals, code: int, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    frame = embedded(["WTI"]).to_pandas()
    frame.to_csv(path)
    command = [sys.executable, "-m", "torchcommodity", "forecast", "--data", str(path), "--out", str(tmp_path / "out")]
    # a job in the background ignores SIGINT, and its children inherit that
    restore = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restore
    ) as process:
        assert process.stdout is not None
        assert "Read as" in process.stdout.readline()  # printed before the fit
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()


def test_forecast_of_monthly_prices_names_months(run: Run, tmp_path: Path) -> None:
    result = run("forecast", "--data", "monthly", "--symbols", "GOLD,COPPER", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "12 months" in result.stdout
    assert "Walk-forward, 2007-01-31 to 2026-05-29" in result.stdout
    table = pd.read_csv(tmp_path / "forecast.csv")
    assert table.groupby("horizon").date.first().to_dict() == {
        1: "2026-06-30", 3: "2026-08-31", 6: "2026-11-30", 12: "2027-05-31",
    }  # fmt: skip

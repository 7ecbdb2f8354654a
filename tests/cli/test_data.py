"""`torchcommodity data`: check, add, list, remove."""

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import read

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_data_add_list_remove_and_forecast_from_the_store(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    assert "No panels in" in run("data", "list", *store).stdout
    assert run("data", "add", prices, "--name", "mine", *store).exit_code == 0
    listing = run("data", "list", *store).stdout
    assert "mine" in listing
    assert "WTI, BRENT" in listing
    assert (
        "vintage 1, no new, revised or withdrawn prices" in run("data", "add", prices, "--name", "mine", *store).stdout
    )
    assert run("data", "add", prices, "--name", "mine", "--quiet", *store).output == ""
    assert "Removed mine" in run("data", "remove", "mine", *store).stdout
    assert "No panels in" in run("data", "list", *store).stdout
    assert run("data", "remove", "mine", *store).exit_code == 2
    run("data", "add", prices)
    assert run("forecast", "--data", "store:prices", "--out", tmp_path / "out", "--quiet").exit_code == 0


def test_data_check_prints_findings_of_usable_prices(run: Run, prices: Path) -> None:
    prices.write_text(re.sub(r"^2016-03-01,[^,]*", "2016-03-01,0", prices.read_text(), count=1, flags=re.M))
    result = run("data", "check", prices)
    assert result.exit_code == 0
    assert re.search(r"warning: nonpositive WTI 2016-03-01 line \d+", result.stdout)
    assert "Usable, 3 warnings." in result.stdout  # its origin is not stated, and it is old


def test_data_check_shows_when_covariates_were_known(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    pd.read_csv(prices)[["date", "BRENT"]].to_csv(path := tmp_path / "brent.csv", index=False)
    result = run("data", "check", prices, "--covariates", path, "--lag", "1B")
    assert re.search(r"BRENT +lag 1B +2015-07-02 +\d+ +1 d +0 +\d\d\d", result.stdout)
    document = json.loads(run("data", "check", prices, "--covariates", path, "--lag", "1B", "--json").stdout)
    assert [record["name"] for record in document["covariates"]] == ["BRENT"]
    assert "a column published; got none of them" in error(run("data", "check", prices, "--covariates", path))
    named = pd.read_csv(path).assign(name="STOCKS", period="2015-01-01").rename(columns={"date": "release"})
    named.to_csv(path, index=False)
    options = ("data", "check", prices, "--covariates", path, "--lag", "1B", "--covariates-symbol", "name")
    assert "got release, period; name it with date= (--covariates-date)" in error(run(*options))
    result = run(*options, "--covariates-date", "release", "--covariates-column", "BRENT")
    assert re.search(r"STOCKS +lag 1B +2015-07-02 +\d+ +1 d", result.stdout)
    assert "--lag: expected --covariates SOURCE" in error(run("data", "check", prices, "--lag", "1D"))
    assert "expected level, changes, volatility" in error(run("data", "check", prices, "--transform", "log"))


def test_data_sources_prints_span_publisher_license_and_credit(run: Run, error: Error) -> None:
    text = run("data", "sources").stdout
    assert re.search(r"JET_FUEL_USGC +\$/gal .* 1990-04-02 +2025-12-08", text)
    for words in ("assessments by Refinitiv, an LSEG business", "CC BY 4.0", "US public domain", "World Bank", "TSP "):
        assert words in text
    assert "Read only by name, with --symbols: CRUDE_OIL_AVERAGE, CRUDE_OIL_DUBAI, " in text
    assert set(re.findall(r"Credit line: (.*)", text)) == {
        line for source in ("embedded", "monthly") for line in read(source).credits()
    }
    assert "GOLD" not in run("data", "sources", "embedded").stdout
    assert "got 'nowhere', which does not exist" in error(run("data", "sources", "nowhere"))


def test_data_sources_of_a_file_says_what_is_not_stated(run: Run, prices: Path) -> None:
    text = run("data", "sources", prices).stdout
    assert "Publisher: not stated" in text
    assert "Credit line" not in text


def test_data_check_takes_the_publisher(run: Run, prices: Path) -> None:
    assert "origin not stated" in run("data", "check", prices).stdout
    assert "origin not stated" not in run("data", "check", prices, "--publisher", "EIA").stdout


def test_data_check_prints_json_with_every_finding(run: Run, prices: Path) -> None:
    table = pd.read_csv(prices, index_col="date")
    table.iloc[100:140, 0] = 0.0
    table.assign(FLAT=1.5, SHORT=table["BRENT"].where(table["WTI"].index < "2016")).to_csv(prices)
    result = run("data", "check", prices, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 2
    assert document["format"] == "torchcommodity.check.1"
    assert document["read_as"] == "wide, 4 symbols"
    assert document["panel"]["symbols"] == ["WTI", "BRENT", "FLAT", "SHORT"]
    assert document["panel"]["frequency"] == "daily"
    assert document["usable"] == ["WTI", "BRENT"]
    assert list(document["unusable"]) == ["FLAT", "SHORT"]
    assert document["unusable"]["FLAT"].startswith("constant price: ")
    zeros = [finding for finding in document["findings"] if finding["kind"] == "nonpositive"]
    assert sum(finding["count"] for finding in zeros if finding["symbol"] == "WTI") == 40
    assert document["forms"][0] == {"symbol": "WTI", "form": "log", "reason": "40 prices of zero: left out of returns"}
    assert document["findings"][0].keys() == {"kind", "symbol", "date", "line", "value", "treatment", "count"}


@pytest.mark.slow
def test_data_check_of_many_symbols_is_a_few_lines(run: Run, tmp_path: Path) -> None:
    days = pd.bdate_range("2024-01-01", periods=20).rename("date")
    pd.DataFrame({f"S{n}": [5.0 + n + i % 7 for i in range(20)] for n in range(5000)}, index=days).to_csv(
        tmp_path / "wide.csv"
    )
    lines = run("data", "check", tmp_path / "wide.csv").stdout.splitlines()
    assert len(lines) < 8
    assert any("short history 5,000 symbols: S0, S1, S2, S3, S4 and 4,995 more" in line for line in lines)


DAYS = pd.bdate_range("2015-01-01", periods=600)
TABLES = {
    "one row": [50.0],
    "negative": [-50.0 - i % 11 for i in range(600)],
    "mostly missing": [50.0 + i % 11 if i % 3 == 0 else math.nan for i in range(600)],
    "one price too few": [50.0 + i % 11 for i in range(504)],
    "enough": [50.0 + i % 11 for i in range(505)],
    "constant": [50.0] * 600,
    "nearly constant": [50.0] * 599 + [51.0],
}


@pytest.mark.parametrize("name", TABLES)
def test_data_check_rejects_what_forecast_rejects(run: Run, error: Error, name: str, tmp_path: Path) -> None:
    path, values = tmp_path / "prices.csv", TABLES[name]
    pd.DataFrame({"OIL": values}, index=DAYS[: len(values)].rename("date")).to_csv(path)
    forecast, check = run("forecast", "--data", path, "--out", tmp_path / "out"), run("data", "check", path)
    assert check.exit_code == forecast.exit_code == (0 if name in ("enough", "negative") else 2)
    assert ("cannot be forecast: OIL" in error(check)) == (check.exit_code == 2)


def test_data_check_says_how_to_leave_symbols_out(run: Run, error: Error, tmp_path: Path) -> None:
    table = pd.DataFrame({name: TABLES[name] for name in ("constant", "mostly missing")}, index=DAYS.rename("date"))
    table.assign(OIL=TABLES["negative"]).to_csv(tmp_path / "prices.csv")
    assert run("forecast", "--data", tmp_path / "prices.csv", "--drop-unusable", "--out", tmp_path).exit_code == 0
    message = error(run("data", "check", tmp_path / "prices.csv"))
    assert message.endswith("cannot be forecast: constant, mostly missing; forecast --drop-unusable drops them")


@pytest.fixture
def fred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, float]]]:
    """Prices that a local FRED serves."""
    from publisher_server import fred_series, serving

    prices = {"DCOILWTICO": {"2020-04-17": 18.31, "2020-04-20": -36.98}}
    with serving(fred_series(prices)) as (_, base):
        monkeypatch.setenv("TORCHCOMMODITY_FRED_URL", base)
        monkeypatch.setenv("TORCHCOMMODITY_CACHE", str(tmp_path / "cache"))
        yield prices


def test_data_update_appends_a_vintage_and_as_of_reads_the_one_before(
    run: Run, error: Error, fred: dict[str, dict[str, float]], prices: Path, tmp_path: Path
) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    assert "expected panels of FRED or the EIA" in error(run("data", "update", *store))
    assert run("data", "add", "fred:DCOILWTICO", "--name", "wti", *store).exit_code == 0
    run("data", "add", prices, "--name", "file", *store)
    fred["DCOILWTICO"] |= {"2020-04-20": -37.63, "2020-04-22": 13.64}
    result = run("data", "update", *store)
    assert "Not from FRED or the EIA: file" in result.stdout
    assert re.search(r"DCOILWTICO +1 +1 +0 +2020-04-22", result.stdout)
    assert "wti: vintage 2, 1 new, 1 revised prices" in result.stdout
    assert "vintage 2, no new, revised or withdrawn prices" in run("data", "update", "wti", "--full", *store).stdout
    assert re.search(r"wti +DCOILWTICO +3 +2020-04-17 +2020-04-22 +2 ", run("data", "list", *store).stdout)
    message = error(run("data", "update", "file", "wti", "nothing", *store))
    assert "file was not updated: update: expected a panel with series of FRED or the EIA" in message
    assert "nothing was not updated" in message


def test_data_update_says_that_a_publisher_does_not_respond(
    run: Run, error: Error, fred: dict[str, dict[str, float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    run("data", "add", "fred:DCOILWTICO", "--name", "wti", *store)
    monkeypatch.setenv("TORCHCOMMODITY_FRED_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: None)  # seven seconds between its tries
    result = run("data", "update", "wti", *store)
    assert result.exit_code == 2
    assert "wti was not updated: http://127.0.0.1:9/" in error(result)
    assert "1 " in run("data", "list", *store).stdout


def test_data_show_and_export_read_any_vintage(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    from torchcommodity import data

    store = data.Store(tmp_path / "my.duckdb")
    panel = data.read(prices)
    store.add(panel.between(last="2018-06-29"), "mine", known_from=datetime(2018, 7, 1))
    store.add(panel, "mine")
    option = ("--store", store.path)
    shown = run("data", "show", "mine", "--last", "2", *option).stdout
    for words in ("Last prices", "Vintages", "2018-07-01T00:00", "Publisher", str(panel.dates[-1])):
        assert words in shown
    past = run("data", "show", "mine", "--as-of", "2018-07-01", "--symbol", "BRENT", *option).stdout
    assert "as of 2018-07-01" in past
    assert "2018-06-29" in past
    assert "first vintage of 'mine'" in error(run("data", "show", "mine", "--as-of", "2018-06-30", *option))
    for name in ("out.csv", "out.parquet"):
        assert run("data", "export", "mine", tmp_path / name, "--as-of", "2018-07-01", *option).exit_code == 0
        assert data.read(tmp_path / name).to_pandas().equals(store.load("mine", "2018-07-01").to_pandas())
    assert "expected YYYY-MM-DD" in error(run("data", "show", "mine", "--as-of", "soon", *option))
    assert "out.exe" in error(run("data", "export", "mine", tmp_path / "out.exe", *option))
    assert not (tmp_path / "out.exe").exists()


def test_as_of_is_an_option_of_every_command_that_reads_prices(
    run: Run, error: Error, prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchcommodity import data

    monkeypatch.setenv("TORCHCOMMODITY_STORE", str(tmp_path / "my.duckdb"))
    panel = data.read(prices)
    data.Store().add(panel.between(last="2018-06-29"), "mine", known_from=datetime(2018, 7, 1))
    data.Store().add(panel, "mine")
    past = run("forecast", "--data", "store:mine", "--as-of", "2018-07-01", "--out", tmp_path / "out")
    assert "Read as vintage 1 of 'mine', known from 2018-07-01 00:00 UTC." in past.stdout
    assert "2018-06-29" in (tmp_path / "out" / "forecast.csv").read_text()
    assert "expected the source store:NAME" in error(run("data", "check", prices, "--as-of", "2018-07-01"))


@pytest.mark.parametrize("name", ["[red]x[/]", "=cmd()", "../../x", "a';--", "é b", "<script>"])
def test_names_in_the_store_are_text(run: Run, name: str, prices: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    assert f" as {name} in " in run("data", "add", prices, "--name", name, *store).stdout
    assert name in run("data", "list", *store).stdout
    assert run("data", "show", name, "--last", "1", *store).exit_code == 0
    assert run("data", "update", name, *store).exit_code == 2
    assert f"Removed {name} from" in run("data", "remove", name, *store).stdout
    assert "No panels in" in run("data", "list", *store).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.duckdb", "prices.csv"]

"""`torchcommodity data`: check, add, list, remove."""

import re
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_data_add_list_remove_and_forecast_from_the_store(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    assert "No panels in" in run("data", "list", *store).stdout
    assert run("data", "add", prices, "--name", "mine", *store).exit_code == 0
    listing = run("data", "list", *store).stdout
    assert "mine" in listing
    assert "WTI, SP500" in listing
    assert "--replace" in error(run("data", "add", prices, "--name", "mine", *store))
    assert run("data", "add", prices, "--name", "mine", "--replace", "--quiet", *store).output == ""
    assert "Removed mine" in run("data", "remove", "mine", *store).stdout
    assert "No panels in" in run("data", "list", *store).stdout
    assert run("data", "remove", "mine", *store).exit_code == 2
    run("data", "add", prices)
    assert run("forecast", "--data", "store:prices", "--out", tmp_path / "out", "--quiet").exit_code == 0


def test_data_check_prints_findings_of_usable_prices(run: Run, prices: Path) -> None:
    prices.write_text(re.sub(r"^2016-03-01,[^,]*", "2016-03-01,0", prices.read_text(), count=1, flags=re.M))
    result = run("data", "check", prices)
    assert result.exit_code == 0
    assert re.search(r"doubtful nonpositive WTI 2016-03-01 line \d+", result.stdout)
    assert "Usable; " in result.stdout


def test_data_check_rejects_what_forecast_rejects(run: Run, error: Error, tmp_path: Path) -> None:
    days = [f"2016-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]
    tables = {
        "one row": ["2016-01-04,50.0"],
        "negative": [f"{day},-50.0" for day in days],
        "missing": [f"{day},{50 if i % 60 == 0 else ''}" for i, day in enumerate(days)],
        "short": [f"{day},{50 + i % 7}" for i, day in enumerate(days[:100])],
    }
    for name, rows in tables.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["date,OIL", *rows, ""]))
        assert run("forecast", "--data", path, "--out", tmp_path / "out").exit_code == 2
        result = run("data", "check", path)
        assert result.exit_code == 2, name
        assert "OIL" in error(result), name

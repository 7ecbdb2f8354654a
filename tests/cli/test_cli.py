"""What a user types, and what comes of it: results, messages, exit codes, and nothing half-written."""

import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import torchcommodity.cli
from torchcommodity.cli import _options as options
from torchcommodity.cli._application import app
from torchcommodity.cli._cache import data_hash
from torchcommodity.cli._walk import plan
from torchcommodity.data import embedded

FILES = {"forecast.csv", "forecast.json", "report.html"}
SHORT = embedded()["WTI", "SP500"].between("2015-07-01", "2018-12-31").to_pandas()  # too short for a walk-forward


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def told(result: Result) -> str:
    """What was printed as an error, without the breaks of lines."""
    return " ".join(result.stderr.split())


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    SHORT.to_csv(path)
    return path


def spoiled(prices: Path, old: str, new: str) -> Path:
    text = prices.read_text()
    assert re.search(old, text, flags=re.M)
    prices.write_text(re.sub(old, new, text, count=1, flags=re.M))
    return prices


def test_forecast_then_again_from_what_was_kept(prices: Path, tmp_path: Path) -> None:
    first = run("forecast", "--data", prices, "--out", tmp_path / "a")
    assert first.exit_code == 0, first.output
    assert {path.name for path in (tmp_path / "a").iterdir()} == FILES
    assert "WTI" in first.stdout
    assert "median" in first.stdout
    assert "No walk-forward test: a walk-forward needs 5 years" in first.stdout
    again = run("forecast", "--data", prices, "--out", tmp_path / "b")
    assert "already trained on these prices and loaded" in again.stdout
    assert (tmp_path / "a" / "forecast.csv").read_bytes() == (tmp_path / "b" / "forecast.csv").read_bytes()
    other = run("forecast", "--data", prices, "--out", tmp_path / "b", "--seed", 1, "--symbols", "SP500")
    assert "already trained" not in other.stdout
    document = json.loads((tmp_path / "b" / "forecast.json").read_text())
    assert (document["seed"], list(document["forecast"]["symbols"])) == (1, ["SP500"])


def test_quiet_prints_nothing(prices: Path, tmp_path: Path) -> None:
    result = run("forecast", "--data", prices, "--out", tmp_path / "out", "--quiet", "--symbols", "WTI")
    assert (result.exit_code, result.output) == (0, "")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_a_damaged_cache_is_made_anew(prices: Path, tmp_path: Path) -> None:
    run("forecast", "--data", prices, "--out", tmp_path / "a", "--symbols", "WTI")
    for kept in (tmp_path / "home" / "cache" / "models").iterdir():
        kept.write_bytes(kept.read_bytes()[:-9])
    result = run("forecast", "--data", prices, "--out", tmp_path / "b", "--symbols", "WTI")
    assert "already trained" not in result.stdout
    assert (tmp_path / "a" / "forecast.csv").read_bytes() == (tmp_path / "b" / "forecast.csv").read_bytes()


def test_a_negative_last_price_starts_from_the_last_positive_one(prices: Path, tmp_path: Path) -> None:
    day, before = SHORT["WTI"].last_valid_index(), SHORT["WTI"].dropna().index[-2]
    assert isinstance(day, pd.Timestamp)
    spoiled(prices, rf"^{day.date()},[^,]*", f"{day.date()},-37.63")
    result = run("forecast", "--data", prices, "--out", tmp_path / "out", "--symbols", "WTI")
    assert result.exit_code == 0, result.output
    assert "-37.63" in result.stdout
    assert "returns treat it as missing" in " ".join(result.stdout.split())
    document = json.loads((tmp_path / "out" / "forecast.json").read_text())
    assert document["forecast"]["symbols"]["WTI"]["origin"] == str(before.date())
    assert [finding["value"] for finding in document["data"]["findings"] if finding["kind"] == "nonpositive"] == [
        "-37.63"
    ]


REFUSED = {
    "text in a number": (r"^2016-03-01,[^,]*", "2016-03-01,n/k", r"prices\.csv.* line 1\d\d.*n/k"),
    "an impossible date": (r"^2016-03-01", "2016-02-31", r"prices\.csv.* line 1\d\d.*2016-02-31"),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("command", [("forecast", "--data"), ("data", "add"), ("data", "check")], ids=" ".join)
def test_bad_data_are_refused(kind: str, command: tuple[str, ...], prices: Path, tmp_path: Path) -> None:
    old, new, message = REFUSED[kind]
    before = {path.name for path in tmp_path.iterdir()}
    out = ("--out", tmp_path / "out") if command[0] == "forecast" else ()
    result = run(*command, spoiled(prices, old, new), *out)
    assert result.exit_code == 2
    assert re.search(message, told(result))
    assert result.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == before


def test_contracts_and_curve_belong_to_the_prices(prices: Path, tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    fronts = SHORT["WTI"].dropna().rename("close").reset_index().assign(symbol="WTI", nth=1)
    fronts.to_csv(curve, index=False)
    spot = options.prices(str(prices), "WTI,SP500")
    futures, findings = options.prices(str(prices), "WTI,SP500", "WTI=CL", curve)
    assert futures.contracts == ("CL", None)
    assert futures.curve is not None
    assert futures.curve.shape == (len(spot), 2, 1)
    assert not findings
    assert len({data_hash(panel) for panel in (spot, spot.with_contracts({"WTI": "CL"}), futures)}) == 3


def test_an_unknown_symbol_lists_the_known_ones(prices: Path, tmp_path: Path) -> None:
    result = run("forecast", "--data", prices, "--symbols", "WTI,GOLD", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "WTI, SP500" in told(result)
    assert "GOLD" in told(result)
    assert not (tmp_path / "out").exists()


WRONG = {
    "no file": (("forecast", "--data", "nowhere.csv"), "nowhere.csv"),
    "a folder": (("forecast", "--data", "."), "a directory"),
    "no symbol": (("forecast", "--symbols", " , "), "--symbols: expected names"),
    "out is a file": (("forecast", "--symbols", "WTI", "--out", __file__), "--out: expected a folder"),
    "no such name": (("forecast", "--data", "store:nothing"), "nothing"),
    "no years": (("backtest", "--symbols", "VIX"), "a walk-forward needs 5 years"),
    "no such product": (("forecast", "--contracts", "WTI=XX"), "expected a product code among CL, BRN"),
    "no product": (("forecast", "--contracts", "WTI"), "--contracts: expected each symbol once, as in WTI=CL"),
    "no curve": (("backtest", "--curve", "nowhere.csv"), "nowhere.csv"),
    "a year out of reach": (("backtest", "--symbols", "WTI", "--first", "2050"), "2050"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_mistake_is_one_message(kind: str) -> None:
    arguments, message = WRONG[kind]
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in told(result)
    assert "Traceback" not in result.output


def test_data_add_list_and_forecast_from_the_store(prices: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "my.duckdb")
    assert "Nothing is stored" in run("data", "list", *store).stdout
    assert run("data", "add", prices, "--name", "mine", *store).exit_code == 0
    listed = run("data", "list", *store).stdout
    assert "mine" in listed
    assert "WTI, SP500" in listed
    assert "stored already" in told(run("data", "add", prices, "--name", "mine", *store))
    assert run("data", "add", prices, "--name", "mine", "--replace", "--quiet", *store).output == ""
    run("data", "add", prices)
    assert run("forecast", "--data", "store:prices", "--out", tmp_path / "out", "--quiet").exit_code == 0


def test_data_check_prints_what_is_doubtful(prices: Path) -> None:
    spoiled(prices, r"^2016-03-01,[^,]*", "2016-03-01,0")
    result = run("data", "check", prices)
    assert result.exit_code == 0
    assert re.search(r"doubtful nonpositive WTI 2016-03-01 line \d+", result.stdout)
    assert "Accepted; " in result.stdout


def test_young_symbols_are_left_out_of_the_walk_forward() -> None:
    assert plan(embedded()) == (["WTI", "SP500", "NASDAQ"], (2012, 2018))
    assert plan(embedded(), 2005) == (["WTI", "SP500", "NASDAQ"], (2005, 2018))
    assert plan(embedded(), 1995) == (["WTI"], (1995, 2018))


def test_doctor_says_what_there_is() -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for what in ("torch", "python", "native library", "devices", "threads", "passed"):
        assert what in result.stdout


@pytest.mark.parametrize("command", ["forecast", "backtest", "data", "op", "doctor"])
def test_every_command_has_help(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert command in run("--help").stdout


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "load", interrupted)
    result = run("forecast")
    assert result.exit_code == 130
    assert "nothing was written" in told(result)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("torchcommodity.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(
        SystemExit, match=r"needs typer, which is not installed: pip install 'torchcommodity\[forecast\]'"
    ):
        torchcommodity.cli.main()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_killed_run_leaves_nothing_half_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    frame = embedded()["WTI"].to_pandas()
    frame.iloc[-3] = 0.0  # a finding, which is printed before the training
    frame.to_csv(path)
    command = [
        sys.executable,
        "-m",
        "torchcommodity.cli",
        "forecast",
        "--data",
        str(path),
        "--out",
        str(tmp_path / "out"),
    ]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it, and so its own
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        assert process.stdout is not None
        assert "doubtful" in process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()

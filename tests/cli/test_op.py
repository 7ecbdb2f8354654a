"""`torchcommodity op`."""

import json

from mutants import FAULTS
from typer.testing import CliRunner

from torchcommodity.cli._op import app

runner = CliRunner()


def test_list_names_every_operator() -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "linear_recurrence" in result.stdout


def test_check_prints_a_table_and_succeeds() -> None:
    result = runner.invoke(app, ["check", "linear_recurrence", "--quick"])
    assert result.exit_code == 0, result.stdout
    assert "holds" in result.stdout


def test_check_fails_with_code_1_and_says_what_to_do() -> None:
    op = next(fault for fault in FAULTS if fault.row == "warm_up").build()
    result = runner.invoke(app, ["check", op.qualified_name, "--quick", "--json"])
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)
    broken = [row for row in report["rows"] if row["status"] == "fail"]
    assert [row["name"] for row in broken] == ["warm_up"]
    assert "warmup" in broken[0]["remedy"]


def test_an_unknown_operator_is_refused_in_words() -> None:
    result = runner.invoke(app, ["check", "nonsense"])
    assert result.exit_code == 2
    assert "no operator nonsense" in result.stderr

"""`torchcommodity op`."""

import json

from mutants import MUTANTS
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
    op = next(mutant for mutant in MUTANTS if mutant.check == "warmup").build()
    result = runner.invoke(app, ["check", op.qualified_name, "--quick", "--json"])
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)
    failures = [result for result in report["results"] if result["status"] == "fail"]
    assert [result["name"] for result in failures] == ["warmup"]
    assert "warmup" in failures[0]["fix"]


def test_an_unknown_operator_is_refused_in_words() -> None:
    result = runner.invoke(app, ["check", "nonsense"])
    assert result.exit_code == 2
    assert "no operator nonsense" in result.stderr

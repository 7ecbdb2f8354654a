"""`torchcommodity op`."""

import json
from collections.abc import Callable

import pytest
from mutants import MUTANTS
from typer.testing import Result

from torchcommodity.opkit import Op

Run = Callable[..., Result]


def test_op_list_names_operators(run: Run) -> None:
    result = run("op", "list")
    assert result.exit_code == 0
    assert "linear_recurrence" in result.stdout


def test_op_list_marks_cuda_kernels_as_experimental(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Op, "devices", ("cpu", "cuda"))
    monkeypatch.setenv("COLUMNS", "200")
    assert "cpu, cuda (experimental)" in run("op", "list").stdout


def test_op_check_prints_a_report(run: Run) -> None:
    result = run("op", "check", "linear_recurrence", "--quick")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.startswith("commodity::linear_recurrence: ")
    assert " 0 fail, " in result.stdout


def test_op_check_of_a_faulty_operator_is_exit_code_1_and_says_how_to_fix_it(run: Run) -> None:
    op = next(mutant for mutant in MUTANTS if mutant.check == "warmup").build()
    result = run("op", "check", op.qualified_name, "--quick", "--json")
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)
    failures = [check for check in report["results"] if check["status"] == "fail"]
    assert [check["name"] for check in failures] == ["warmup"]
    assert "warmup" in failures[0]["fix"]


def test_op_check_names_unknown_operators(run: Run) -> None:
    result = run("op", "check", "nonsense")
    assert result.exit_code == 2
    assert "unknown operator 'nonsense'; torchcommodity op list prints all names" in result.stderr
    assert "expected the name of an operator, or --all" in run("op", "check").stderr

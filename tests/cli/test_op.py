"""`torchcommodity op`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mutants import MUTANTS
from typer.testing import Result

from torchcommodity.opkit import Op

Run = Callable[..., Result]


def test_op_list_names_operators(run: Run) -> None:
    result = run("op", "list")
    assert result.exit_code == 0
    assert "linear_recurrence" in result.stdout


def test_op_list_names_the_devices_of_the_kernels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Op, "devices", ("cpu", "cuda"))
    monkeypatch.setenv("COLUMNS", "200")
    assert "cpu, cuda" in run("op", "list").stdout


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


OPERATORS = """
import torch

def shifted(x, lag=1):
    return torch.nn.functional.pad(x, (0, 0, lag, 0), value=torch.nan)[..., : x.shape[-2], :]

def look_ahead(x):
    return x.flip(-2)

def crash(x):
    raise ZeroDivisionError("division by zero")

def samples():
    return [torch.rand(2, 7, 3, dtype=torch.double)]

def broken_samples():
    return samples() + undefined

SETTINGS = {"lag": [1, 2]}
WRONG = ["lag"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "declared_operators.py").write_text(OPERATORS)
    monkeypatch.chdir(tmp_path)


def check(run: Run, name: str, *options: str) -> Result:
    options = tuple(option.replace("MODULE:", "declared_operators:") for option in options)
    return run("op", "check", f"declared_operators:{name}", "--quick", *options)


@pytest.mark.usefixtures("folder")
def test_op_check_takes_what_an_operator_states(run: Run) -> None:
    stated = ("--samples", "MODULE:samples", "--reference", "MODULE:shifted", "--settings", "MODULE:SETTINGS")
    result = check(run, "shifted", "--time", "-2", "--causal", *stated)
    assert result.exit_code == 0, result.output
    assert "on a guess" not in result.stdout
    faulty = check(run, "look_ahead", "--time=-2", "--causal", "--samples", "MODULE:samples", "--json")
    assert faulty.exit_code == 1
    (report,) = json.loads(faulty.stdout)
    assert report["location"] == "declared_operators.py:7"
    assert len(report["causes"]) == 1


WRONG = {
    "time word": (("shifted", "--time", "x"), 2, "--time: expected an axis such as -2"),
    "positive time": (("shifted", "--time", "1"), 2, "check: time must be a negative axis"),
    "negative warm-up": (("shifted", "--warmup", "-1"), 2, "check: warmup must be an integer >= 0"),
    "settings": (("shifted", "--settings", "MODULE:WRONG"), 2, "check: settings must map names to a value"),
    "reference": (("shifted", "--reference", "MODULE:WRONG"), 2, "check: reference must be callable; got list"),
    "no such sample": (("shifted", "--samples", "MODULE:nothing"), 2, "cannot import declared_operators:nothing"),
    "broken samples": (("shifted", "--samples", "MODULE:broken_samples"), 4, "raised NameError"),
    "no sample works": (("crash",), 2, "check: no guessed sample works for crash (ZeroDivisionError"),
}  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", WRONG)
def test_op_check_tells_invalid_options_from_a_crash(run: Run, case: str) -> None:
    arguments, code, message = WRONG[case]
    result = check(run, *arguments)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())

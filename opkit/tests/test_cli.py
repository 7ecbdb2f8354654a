"""The command `opkit`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torch_opkit import Op

Run = Callable[..., Any]


RECORDS = """
import torch
from torch_opkit import Op

def _square(x: torch.Tensor) -> torch.Tensor:
    return x * x

def _cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x

square = Op("records_in_a_module::square", reference=_square, backward=lambda grad, *, x: 2 * x.nan_to_num() * grad)
cube = Op("records_in_a_module::cube", reference=_cube)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with two records, in the current folder."""
    (tmp_path / "records_in_a_module.py").write_text(RECORDS)
    monkeypatch.chdir(tmp_path)
    return "records_in_a_module"


def test_list_names_the_records_of_a_module(run: Run, module: str) -> None:
    result = run("list", module)
    assert result.exit_code == 0, result.stderr
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["operator", "devices", "differentiable", "causal"],
        [f"{module}::cube", "reference", "no", "yes"],
        [f"{module}::square", "reference", "yes", "yes"],
    ]


def test_list_names_the_devices_of_the_kernels(run: Run, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Op, "devices", ("cpu", "cuda"))
    assert "cpu, cuda" in run("list", module).stdout


def test_check_prints_a_report(run: Run, module: str) -> None:
    result = run("check", f"{module}:square", "--quick")
    assert result.exit_code == 0, result.stdout
    assert result.stdout.startswith(f"{module}::square: ")
    assert " 0 fail, " in result.stdout


def test_check_takes_all_records_of_a_module(run: Run, module: str) -> None:
    reports = json.loads(run("check", module, "--quick", "--json").stdout)
    assert [report["operator"] for report in reports] == [f"{module}::cube", f"{module}::square"]


LATE = 'late = Op("late_record::late", reference=_square, warmup=lambda: 1)'


def test_check_of_a_faulty_operator_is_exit_code_1_and_says_how_to_fix_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_record.py").write_text(RECORDS.partition("square =")[0] + LATE)
    monkeypatch.chdir(tmp_path)
    result = run("check", "late_record:late", "--quick", "--json")
    assert result.exit_code == 1, result.stderr
    (report,) = json.loads(result.stdout)
    failures = [check for check in report["results"] if check["status"] == "fail"]
    assert [check["name"] for check in failures] == ["warmup"]
    assert "warmup" in failures[0]["fix"]


def test_check_names_unknown_operators(run: Run, module: str) -> None:
    result = run("check", f"{module}:sqare")
    assert (result.exit_code, result.stderr) == (2, "Error: unknown operator 'sqare'; did you mean 'square'?\n")
    assert f"opkit list {module} prints all names" in run("check", f"{module}:nothing").stderr
    assert run("check", "no_such_module").stderr.startswith("Error: cannot import no_such_module: No module named")
    assert "expected a module that makes records of operators" in run("check", "math").stderr
    assert "the following arguments are required: NAME" in run("check").stderr


def test_closed_pipe_ends_quietly(module: str) -> None:
    command = f"{sys.executable} -m torch_opkit list {module} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_doctor_names_the_compiler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", sys.executable)
    result = run("doctor")
    assert (result.exit_code, f"C++ compiler     {sys.executable}" in result.stdout) == (0, True), result.stdout
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("PATH", "")
    assert "C++ compiler     no C++ compiler: install g++ or clang++" in run("doctor").stdout


def test_graph_prints_or_draws_an_output(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs_to_draw.py").write_text(
        "import torch\nmodel = torch.nn.Linear(3, 2)\ndef output():\n    return model(torch.ones(4, 3)).sum(), model\n"
    )
    assert "weight    (2, 3)" in run("graph", "outputs_to_draw:output").stdout
    assert run("graph", "outputs_to_draw:output", "--out", "graph.html").stdout == "graph.html\n"
    assert "Addmm" in (tmp_path / "graph.html").read_text()
    assert run("graph", "outputs_to_draw:output", "--out", "graph.doc").exit_code == 2


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


def check(run: Run, name: str, *options: str) -> Any:
    options = tuple(option.replace("MODULE:", "declared_operators:") for option in options)
    return run("check", f"declared_operators:{name}", "--quick", *options)


@pytest.mark.usefixtures("folder")
def test_check_takes_what_an_operator_states(run: Run) -> None:
    stated = ("--samples", "MODULE:samples", "--reference", "MODULE:shifted", "--settings", "MODULE:SETTINGS")
    result = check(run, "shifted", "--time", "-2", "--causal", *stated)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "on a guess" not in result.stdout
    faulty = check(run, "look_ahead", "--time=-2", "--causal", "--samples", "MODULE:samples", "--json")
    assert faulty.exit_code == 1
    (report,) = json.loads(faulty.stdout)
    assert report["location"] == "declared_operators.py:7"
    assert len(report["causes"]) == 1


WRONG = {
    "time word": (("shifted", "--time", "x"), 2, "argument --time: expected an axis such as -2"),
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
def test_check_tells_invalid_options_from_a_crash(run: Run, case: str) -> None:
    arguments, code, message = WRONG[case]
    result = check(run, *arguments)
    assert result.exit_code == code, result.stdout + result.stderr
    assert message in " ".join(result.stderr.split())

"""The contract on operators of other makes."""

import json
from pathlib import Path

import foreign_operators as foreign
import pytest
import torch
from typer.testing import CliRunner

from torchcommodity import opkit
from torchcommodity.cli._op import app
from torchcommodity.opkit.testing import OpContract

LIES = [
    (foreign.lying, "forward_mode"),
    (foreign.wrong_gradient, "gradcheck"),
    (foreign.wrong_fake, "fake"),
    (foreign.mutating, "inputs_kept"),
    (foreign.contiguous_only, "strides"),
    (foreign.Constant, "gradgradcheck"),
]
HEALTHY = [
    foreign.Cube,
    foreign.OldCube,
    foreign.smooth,
    foreign.scaled,
    torch.ops.aten.silu.default,
]


@pytest.mark.parametrize(("operator", "row"), LIES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_lie_is_caught_in_its_row(operator: object, row: str) -> None:
    report = opkit.check(operator, compiled=False)
    assert row in {result.name for result in report.failures}, str(report)
    assert report[row].remedy


@pytest.mark.parametrize("operator", HEALTHY, ids=lambda operator: getattr(operator, "__name__", str(operator)))
def test_the_healthy_pass(operator: object) -> None:
    report = opkit.check(operator, compiled=False)
    assert report.ok, str(report)
    assert report["gradcheck"].status == "pass"


def test_a_triton_op_is_judged_by_what_it_promises() -> None:
    report = opkit.check(foreign.doubled, compiled=False)
    assert report.ok, str(report)
    assert report["fake"].status == "pass"
    assert "it promises no gradient" in report["gradcheck"].cause


def test_pytorch_lets_the_first_lie_through() -> None:
    x = torch.rand(3, 4, dtype=torch.double, requires_grad=True)
    torch.library.opcheck(foreign.lying, (x,))
    assert torch.autograd.gradcheck(foreign.lying, x)
    assert torch.autograd.gradgradcheck(foreign.lying, x)


def test_a_refusal_in_the_open_is_told_and_no_failure() -> None:
    result = opkit.check(foreign.OldCube, compiled=False)["func_grad"]
    assert result.status == "skip"
    assert result.cause.startswith("it refuses: ")


def test_values_are_compared_with_an_oracle() -> None:
    x = torch.rand(3, 4, dtype=torch.double)
    right = opkit.Cases(function=foreign.smooth, samples=(opkit.Sample(x, x),), oracle=foreign.smooth)
    assert opkit.check(foreign.smooth, cases=right, compiled=False)["values_float64"].status == "pass"
    wrong = opkit.Cases(function=foreign.smooth, samples=(opkit.Sample(x, x),), oracle=lambda x, y: x + y)
    assert opkit.check(foreign.smooth, cases=wrong, compiled=False)["values_float64"].status == "fail"


def test_samples_that_do_not_fit_are_told() -> None:
    with pytest.raises(ValueError, match=r"guessed samples .* do not fit: .*; give your own: check\(op, cases"):
        opkit.check(torch.ops.aten.mm.default)
    with pytest.raises(ValueError, match=r"no signature found .*; give samples: check\(op, cases"):
        opkit.check(torch.mm)
    samples = [opkit.Sample(torch.rand(2, 3).double(), torch.rand(3, 2).double())]
    assert opkit.check(torch.mm, cases=samples, compiled=False).ok
    with pytest.raises(TypeError, match="expected an operator"):
        opkit.check(3)


def test_by_name_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "operators_by_name.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check", "operators_by_name:double", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    (report,) = json.loads(result.stdout)
    assert (report["operator"], report["ok"]) == ("double", True)


class TestCube(OpContract):
    operator, compiled = foreign.Cube, False

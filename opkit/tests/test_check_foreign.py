"""`opkit.check` on operators without a record."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foreign_operators as foreign
import pytest
import torch

import torch_opkit as opkit
from torch_opkit.testing import OpContract

FAULTY = [
    (foreign.zero_tangent, "forward_mode"),
    (foreign.wrong_gradient, "gradcheck"),
    (foreign.wrong_fake, "fake"),
    (foreign.mutating, "inputs_unchanged"),
    (foreign.contiguous_only, "strides"),
    (foreign.DetachedCube, "gradgradcheck"),
]
CORRECT = [
    foreign.Cube,
    foreign.CombinedForwardCube,
    foreign.smooth,
    foreign.scaled,
    torch.ops.aten.silu.default,
]


@pytest.mark.parametrize(("operator", "check"), FAULTY, ids=lambda x: getattr(x, "__name__", str(x)))
def test_check_fails_a_faulty_foreign_operator(operator: object, check: str) -> None:
    report = opkit.check(operator, compiled=False)
    assert check in {result.name for result in report.failures}, str(report)
    assert report[check].fix


@pytest.mark.parametrize("operator", CORRECT, ids=lambda operator: getattr(operator, "__name__", str(operator)))
def test_check_passes_a_correct_foreign_operator(operator: object) -> None:
    report = opkit.check(operator, compiled=False)
    assert report.ok, str(report)
    assert report["gradcheck"].status == "pass"


def test_check_skips_gradients_of_a_triton_op_without_one() -> None:
    report = opkit.check(foreign.doubled, compiled=False)
    assert report.ok, str(report)
    assert report["fake"].status == "pass"
    assert report["gradcheck"].cause.startswith("not differentiable")


def test_opcheck_and_gradcheck_of_pytorch_pass_a_zero_tangent() -> None:
    x = torch.rand(3, 4, dtype=torch.double, requires_grad=True)
    torch.library.opcheck(foreign.zero_tangent, (x,))
    assert torch.autograd.gradcheck(foreign.zero_tangent, x)
    assert torch.autograd.gradgradcheck(foreign.zero_tangent, x)


def test_check_reports_an_unsupported_transform_as_skipped() -> None:
    result = opkit.check(foreign.CombinedForwardCube, compiled=False)["func_grad"]
    assert result.status == "skip"
    assert result.cause.startswith("not supported: ")


def test_check_compares_values_with_the_oracle() -> None:
    x = torch.rand(3, 4, dtype=torch.double)
    right = opkit.Cases(function=foreign.smooth, samples=(opkit.Sample(x, x),), oracle=foreign.smooth)
    assert opkit.check(foreign.smooth, cases=right, compiled=False)["values_float64"].status == "pass"
    wrong = opkit.Cases(function=foreign.smooth, samples=(opkit.Sample(x, x),), oracle=lambda x, y: x + y)
    assert opkit.check(foreign.smooth, cases=wrong, compiled=False)["values_float64"].status == "fail"


def test_check_guesses_matrices_that_fit() -> None:
    report = opkit.check(torch.ops.aten.mm.default, only="values_float32")
    assert report.guesses == ("samples ((5, 4), (4, 3))",)
    assert report["inputs_unchanged"].guess == report.guesses[0]


def test_check_asks_for_samples_that_it_cannot_guess() -> None:
    def needs_seventeen(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x.reshape(17) * factor

    with pytest.raises(ValueError, match=r"no guessed sample works .* such as opkit.check\(needs_seventeen, samples="):
        opkit.check(needs_seventeen)
    samples = [(torch.rand(17).double(), 2.0)]
    assert opkit.check(needs_seventeen, samples=samples, only="inputs_unchanged").ok


def test_check_rejects_what_is_not_callable() -> None:
    with pytest.raises(TypeError, match="check: op must be an operator or a callable; got int"):
        opkit.check(3)


def test_check_finds_a_function_by_module_and_name(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "operators_by_name.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    result = run("check", "operators_by_name:double", "--quick", "--json")
    assert result.exit_code == 0, result.stderr
    (report,) = json.loads(result.stdout)
    assert (report["operator"], report["ok"]) == ("double", True)


class TestCube(OpContract):
    operator, compiled = foreign.Cube, False

"""`opkit.check` with what an operator without a record says about itself, and with what is guessed."""

from typing import Any

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Bad, Report, Sample
from torch_opkit.testing import OpContract


def panel(*shape: int) -> Tensor:
    return torch.rand(shape or (2, 7, 3), dtype=torch.double, generator=torch.Generator().manual_seed(0))


def rolling_mean(x: Tensor, window: int = 3) -> Tensor:
    if window < 1:
        raise ValueError(f"rolling_mean: window must be >= 1; got {window}")
    gap = torch.full_like(x[..., : window - 1, :], torch.nan)
    padded = torch.cat([gap, x], -2)
    return padded.unfold(-2, window, 1).mean(-1)


def centered_mean(x: Tensor) -> Tensor:
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1))
    return padded.unfold(-2, 3, 1).mean(-1)


def statuses(report: Report, *names: str) -> list[str]:
    return [report[name].status for name in names]


def test_check_judges_causality_and_warmup_as_declared() -> None:
    names = ("causal", "warmup")
    right = opkit.check(rolling_mean, time=-2, causal=True, warmup=lambda window: window - 1, only=names)
    assert statuses(right, *names) == ["pass", "pass"], str(right)
    assert right.guesses == ("samples ((2, 11, 3), window=3)",)
    wrong = opkit.check(centered_mean, time=-2, causal=True, warmup=1, only=names)
    assert statuses(wrong, *names) == ["fail", "fail"]
    assert "causal=False" in wrong["causal"].fix


def test_check_never_fails_what_was_not_declared() -> None:
    report = opkit.check(centered_mean, time=-2, only=["causal", "warmup"])
    assert statuses(report, "causal", "warmup") == ["pass", "skip"]
    assert "pass warmup=0" in report["warmup"].cause


def test_check_guesses_the_axis_along_which_rows_remember() -> None:
    report = opkit.check(lambda x: x.cumsum(-2), only="causal")
    assert report["causal"].status == "pass"
    assert "time=-2" in report["causal"].guess
    elementwise = opkit.check(torch.sin, samples=panel(), only="causal")
    assert elementwise["causal"].cause.startswith("no time axis was stated or found")
    without = opkit.check(torch.sin, samples=panel(), time=None, only="causal")
    assert without["causal"].cause == "the call says time=None: no axis is time"


def test_check_leaves_a_final_state_out_of_the_checks_of_rows() -> None:
    def running_total(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.cumsum(-2), x.sum(-2)

    names = ("causal", "zero_rows")
    report = opkit.check(running_total, time=-2, causal=True, only=names)
    assert statuses(report, *names) == ["pass", "pass"], str(report)
    with pytest.raises(ValueError, match=r"an axis of an output with 11 rows, as the input has; got \(2, 3\)"):
        opkit.check(lambda x: x.sum(-2), time=-2)


def test_check_only_remarks_on_edges_of_a_guessed_time_axis() -> None:
    def total(x: Tensor) -> Tensor:
        x[..., 0, :]  # an IndexError without rows
        return x.cumsum(-2)

    assert opkit.check(total, time=-2, only="zero_rows")["zero_rows"].status == "fail"
    result = opkit.check(total, only="zero_rows")["zero_rows"]
    assert (result.status, "not judged, as time is not stated" in result.cause) == ("skip", True)


def test_check_compares_with_the_reference() -> None:
    def doubled(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    right = opkit.check(doubled, reference=lambda x, factor: x + (factor - 1) * x, only="values_float64")
    assert right.ok, str(right)
    wrong = opkit.check(doubled, reference=lambda x, factor: x, only="values_float64")
    assert [cause.name for cause in wrong.causes] == ["values_float64"]


def test_check_tries_each_value_of_a_setting() -> None:
    def broken_for_five(x: Tensor, window: int) -> Tensor:
        return x.fill_(0.0) if window == 5 else x * window

    assert opkit.check(broken_for_five, samples=[(panel(), 2)], only="inputs_unchanged").ok
    (cause,) = opkit.check(broken_for_five, settings={"window": [2, 5]}, only="inputs_unchanged").causes
    assert cause.sample.endswith("window=5")


def test_check_requires_that_bad_inputs_are_refused() -> None:
    refused = [(panel(), 0), Bad(Sample(panel(), window=-1), "window must be >= 1; got -1")]
    assert opkit.check(rolling_mean, bad_inputs=refused, only="bad_input")["bad_input"].status == "pass"
    report = opkit.check(rolling_mean, bad_inputs=[(panel(), 2)], only="bad_input")
    assert "ValueError or TypeError or RuntimeError" in report["bad_input"].cause


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "positive time": ({"time": 1}, ValueError, r"time must be a negative axis, .*; got 1: .* pass time=-2"),
    "three axes": ({"time": (-1, -2, -3)}, ValueError, "time must be a negative axis"),
    "axis too far": ({"time": -5}, ValueError, "time=-5 must be an axis of the first input"),
    "samples": ({"samples": lambda: 3}, ValueError, "samples must be a sequence of Samples, .*; got int"),
    "causal": ({"causal": "yes"}, TypeError, "causal must be a bool or a function of settings; got 'yes'"),
    "warmup": ({"warmup": -1}, ValueError, "warmup must be an integer >= 0 or a function of settings; got -1"),
    "reference": ({"reference": 3}, TypeError, "reference must be callable; got int"),
    "settings": ({"settings": [3]}, TypeError, r"settings must map names .* got \[3\]"),
    "unknown setting": ({"settings": {"size": 3}}, ValueError, "settings must name parameters .*window; got 'size'"),
    "no samples": ({"samples": []}, ValueError, "samples must hold at least one Sample"),
    "sample": ({"samples": ["x"]}, TypeError, "samples must hold Sample objects, .*; got str"),
    "too many": ({"samples": [(panel(), 3, 4)]}, ValueError, r"must fit the operator's parameters \(x, window\)"),
    "does not run": ({"samples": [(panel(), 0)]}, ValueError, "rolling_mean does not run on the sample"),
    "list as cases": ({"cases": [panel()]}, TypeError, r"cases must be opkit.Cases; got list: pass samples="),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_check_rejects_a_declaration_in_words(case: str) -> None:
    arguments, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        opkit.check(rolling_mean, only="causal", **arguments)


def _total(x: Tensor) -> Tensor:
    return x.cumsum(-2)


def test_check_takes_the_time_axis_of_a_record_from_the_record() -> None:
    record = opkit.Op("test_check_declared::total", reference=_total)
    with pytest.raises(ValueError, match="time is stated by the record total; got time= too"):
        opkit.check(record, time=-2)


def shifted(x: Tensor, lag: int = 2) -> Tensor:
    return torch.nn.functional.pad(x, (0, 0, lag, 0), value=torch.nan)[..., : x.shape[-2], :]


class TestShifted(OpContract):
    operator = reference = shifted
    time, causal, compiled = -2, True, False

    def warmup(lag: int) -> int:  # noqa: N805  # an argument of `check`, not a method
        return lag

"""The checker is checked: each planted fault fails its own row, and no other."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from fault_planting import Fault, backward, with_weights, without_time
from mutants import COMPILED_FAULTS, FAULTS

from torchcommodity import opkit
from torchcommodity.opkit import ROWS


def named(faults: tuple[Fault, ...]) -> list[Any]:
    return [pytest.param(fault, id=f"{fault.row}-{fault.what}") for fault in faults]


def failures(report: opkit.Report) -> list[str]:
    return [result.name for result in report.failures]


def test_the_healthy_operator_keeps_the_contract() -> None:
    report = opkit.check(Fault("none", "healthy").build(), compiled=False)
    assert report.ok, str(report)
    assert [result.name for result in report if result.status == "skip"] == ["derived_jvp"]


def skipped(report: opkit.Report) -> set[str]:
    return {result.name for result in report if result.status == "skip"}


def test_weights_need_not_share_leading_axes() -> None:
    report = opkit.check(with_weights("none", "healthy with weights").build())
    assert report.ok, str(report)
    assert skipped(report) == {"oracle", "golden", "bad_input", "derived_jvp", "one_asset"}
    assert report["one_asset"].cause.startswith("the record says vmap='loop'")


def test_an_operator_without_time_skips_what_speaks_of_time() -> None:
    report = opkit.check(without_time("none", "healthy without time").build())
    assert report.ok, str(report)
    timed = {row.name for row in ROWS.values() if row.timed}
    assert skipped(report) == {"oracle", "golden", "bad_input", "derived_jvp"} | timed
    assert {report[name].cause.partition(":")[0] for name in timed} == {"the record says time=None"}


@pytest.mark.parametrize("fault", named(FAULTS))
def test_a_fault_fails_its_row_and_no_other(fault: Fault) -> None:
    report = opkit.check(fault.build(), compiled=False)
    assert failures(report) == [fault.row], str(report)
    assert report[fault.row].remedy


@pytest.mark.parametrize("fault", named(COMPILED_FAULTS))
def test_a_fault_of_compiling_fails_its_row_and_no_other(fault: Fault) -> None:
    """The four cheap compiled rows always; ahead of time and ONNX, which cost most, where they are meant."""
    quick = {row.name for row in ROWS.values() if row.compiled} - {"aot_inductor", "onnx"}
    report = opkit.check(fault.build(), only=sorted(quick | {fault.row}))
    assert failures(report) == [fault.row], str(report)


def test_every_row_has_a_fault() -> None:
    assert {fault.row for fault in (*FAULTS, *COMPILED_FAULTS)} == set(ROWS)


def test_a_report_reads_as_a_table() -> None:
    report = opkit.check(Fault("gradcheck", "off by a hundredth", {"backward": backward}).build(), only="golden")
    text = str(report)
    assert text.startswith("faulty::")
    assert len(text.splitlines()) >= len(report)
    assert {result.name for result in report} >= {"golden", "values_float64"}
    assert '"ok": true' in report.json()


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ValueError, match="only must name rows of the contract; got \\['nonsense'\\]"):
        opkit.check(Fault("none", "healthy").build(), only="nonsense")


def test_an_operator_without_cases_is_judged_on_guessed_samples() -> None:
    op = Fault("none", "caseless", {"cases": None}).build()
    report = opkit.check(op, compiled=False)
    assert report.ok, str(report)
    assert {r.name for r in report if r.status == "skip"} >= {"oracle", "golden", "bad_input"}


def test_a_missing_oracle_is_skipped_aloud() -> None:
    def absent(x: torch.Tensor, window: int) -> torch.Tensor:
        raise ImportError("No module named 'oracle'")

    fault = Fault("none", "oracle absent", cases=lambda c: replace(c, oracle=absent))
    result = opkit.check(fault.build(), only="oracle")["oracle"]
    assert (result.status, result.cause) == ("skip", "the oracle is not installed: No module named 'oracle'")

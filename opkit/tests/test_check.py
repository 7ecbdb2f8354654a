"""`opkit.check`: every mutant fails its own check, and no other."""

from dataclasses import replace
from typing import Any

import faults
import pytest
import torch
from mutants import COMPILED_MUTANTS, MUTANTS
from mutation import CORRECT, Mutant, backward, with_weights, without_time

import torch_opkit as opkit
from torch_opkit import CHECKS
from torch_opkit._contract.exported import run_ahead_of_time
from torch_opkit._contract.module import CaseModule
from torch_opkit._contract.runner import build_cases

WITH_WEIGHTS = with_weights("none", "correct with weights")
WITHOUT_TIME = without_time("none", "correct without time")
WITHOUT_AOT = sorted({*CHECKS} - {"aot_inductor"})  # see test_ahead_of_time_takes_weights_and_no_time_axis


def params(mutants: tuple[Mutant, ...]) -> list[Any]:
    return [pytest.param(mutant, id=f"{mutant.check}-{mutant.fault}") for mutant in mutants]


def failures(report: opkit.Report) -> list[str]:
    return [result.name for result in report.failures]


def skipped(report: opkit.Report) -> set[str]:
    return {result.name for result in report if result.status == "skip"}


def test_check_passes_a_correct_operator() -> None:
    report = opkit.check(CORRECT.build(), compiled=False)
    assert report.ok, str(report)
    assert skipped(report) == {"jvp_formula", "live"}


def test_check_passes_live_updates_of_an_operator() -> None:
    live = Mutant("none", "correct live updates", cases=faults.live_variance(faults.keeps_window))
    assert opkit.check(live.build(), only="live")["live"].status == "pass"


@pytest.mark.slow
@pytest.mark.compile
def test_check_passes_an_operator_with_weights() -> None:
    report = opkit.check(WITH_WEIGHTS.build(), only=WITHOUT_AOT)
    assert report.ok, str(report)
    assert skipped(report) == {"oracle", "golden", "bad_input", "jvp_formula", "live", "one_asset"}
    assert report["one_asset"].cause.startswith("the record says vmap='loop'")


@pytest.mark.slow
@pytest.mark.compile
def test_check_skips_time_checks_without_a_time_axis() -> None:
    report = opkit.check(WITHOUT_TIME.build(), only=WITHOUT_AOT)
    assert report.ok, str(report)
    about_time = {check.name for check in CHECKS.values() if check.needs_time}
    assert skipped(report) == {"oracle", "golden", "bad_input", "jvp_formula"} | about_time
    assert {report[name].cause.partition(":")[0] for name in about_time} == {"the record says time=None"}


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn about themselves
def test_ahead_of_time_takes_weights_and_no_time_axis() -> None:
    """What `aot_inductor` does with each of them, in one package that compiles once."""
    run_ahead_of_time(CaseModule([build_cases(mutant.build())[0] for mutant in (WITH_WEIGHTS, WITHOUT_TIME)]))


@pytest.mark.parametrize("mutant", params(MUTANTS))
def test_check_fails_a_mutant(mutant: Mutant) -> None:
    """In its own check, and in none of those that it depends on."""
    report = opkit.check(mutant.build(), only=mutant.check)
    assert failures(report) == [mutant.check], str(report)
    assert report[mutant.check].fix


@pytest.mark.slow
@pytest.mark.parametrize("mutant", params(MUTANTS))
def test_check_fails_a_mutant_in_one_check(mutant: Mutant) -> None:
    report = opkit.check(mutant.build(), compiled=False)
    assert failures(report) == [mutant.check], str(report)


@pytest.mark.parametrize("mutant", params(COMPILED_MUTANTS))
@pytest.mark.slow
@pytest.mark.compile
def test_check_fails_a_compiled_mutant_in_one_check(mutant: Mutant) -> None:
    """With the cheap compiled checks; AOTInductor and ONNX, which cost most, only for their own mutants."""
    cheap = {check.name for check in CHECKS.values() if check.compiled} - {"aot_inductor", "onnx"}
    report = opkit.check(mutant.build(), only=sorted(cheap | {mutant.check}))
    assert failures(report) == [mutant.check], str(report)


def test_every_check_has_a_mutant() -> None:
    assert {mutant.check for mutant in (*MUTANTS, *COMPILED_MUTANTS)} == set(CHECKS)


def test_report_prints_a_table_and_json() -> None:
    report = opkit.check(Mutant("gradcheck", "correct gradient", {"backward": backward}).build(), only="golden")
    text = report.table()
    assert text.startswith("mutants::")
    assert len(text.splitlines()) == 1 + len(report)
    assert {result.name for result in report} >= {"golden", "values_float64"}
    assert '"ok": true' in report.json()


def test_report_prints_one_cause_then_what_depends_on_it() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.fault == "off by 1e-4")
    report = opkit.check(mutant.build(), only=["gradcheck", "forward_mode"])
    (cause,) = report.causes
    lines = str(report).splitlines()
    assert cause.location in lines[2]
    assert "mutation.py:" in report.location
    assert report["forward_mode"].blocked_by == "gradcheck"
    assert any(line.strip().startswith("not run, as they depend on it: ") and "forward_mode" in line for line in lines)
    assert lines[-1] == f"{len([r for r in report if r.status == 'pass'])} of {len(report)} checks passed"


def test_check_rejects_an_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"check: only must name checks of the contract, .*; got \['nonsense'\]"):
        opkit.check(CORRECT.build(), only="nonsense")


def test_check_guesses_samples_without_cases() -> None:
    report = opkit.check(Mutant("none", "without cases", {"cases": None}).build(), compiled=False)
    assert report.ok, str(report)
    assert skipped(report) >= {"oracle", "golden", "bad_input"}


def test_check_reports_a_missing_oracle_as_skipped() -> None:
    def missing(x: torch.Tensor, window: int) -> torch.Tensor:
        raise ImportError("No module named 'oracle'")

    mutant = Mutant("none", "oracle not installed", cases=lambda c: replace(c, oracle=missing))
    result = opkit.check(mutant.build(), only="oracle")["oracle"]
    assert (result.status, result.cause) == ("skip", "the oracle is not installed: No module named 'oracle'")

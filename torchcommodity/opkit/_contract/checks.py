"""Registry of the contract checks, and how one check runs on the samples of an operator."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.report import Result, Status

CheckFunction = Callable[[Case], None]


@dataclass(frozen=True)
class Check:
    """One requirement of the contract. `function` raises if a case does not meet it, with the cause as its message."""

    name: str
    requirement: str
    fix: str  # what to do if it fails
    function: CheckFunction
    depends_on: tuple[str, ...]  # checks that this one builds on; if one of them fails, this one does not run
    first_sample_only: bool
    compiled: bool  # compiles or exports: takes seconds
    needs_time: bool  # about the time axis or free leading axes: skipped if the record says `time=None`


CHECKS: dict[str, Check] = {}


def register(
    fix: str,
    *,
    depends_on: Sequence[str] = (),
    first_sample_only: bool = False,
    compiled: bool = False,
    needs_time: bool = False,
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check, under its own name; the first line of its docstring is the requirement."""

    def decorate(function: CheckFunction) -> CheckFunction:
        name, requirement = function.__name__, (function.__doc__ or "").strip().splitlines()[0]
        first_only = first_sample_only or compiled
        CHECKS[name] = Check(name, requirement, fix, function, tuple(depends_on), first_only, compiled, needs_time)
        return function

    return decorate


def run_check(check: Check, cases: Sequence[Case]) -> Result:
    """Run a check on one case after another until one fails. The check is skipped if it was skipped on every case."""
    start, skips = time.perf_counter(), []
    cases = cases[: 1 if check.first_sample_only else None]
    for case in cases:
        try:
            if check.needs_time and not case.op.time:
                raise SkipCheck("the record says time=None: no time axis, and the leading axes are not free")
            _run_quietly(check.function, case)
        except SkipCheck as reason:
            skips.append(str(reason))
        except Exception as error:
            seconds = time.perf_counter() - start
            return Result(check.name, "fail", seconds, str(case.sample), describe_error(error), check.fix)
    status: Status = "skip" if len(skips) == len(cases) else "pass"
    return Result(check.name, status, time.perf_counter() - start, cause=skips[0] if status == "skip" else "")


def _run_quietly(function: CheckFunction, case: Case) -> None:
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        function(case)


def describe_error(error: Exception, width: int = 400) -> str:
    """The message on one line, cut at `width`, with the exception's type unless it is an AssertionError."""
    words = " ".join(str(error).split()) or "no message"
    words = words if isinstance(error, AssertionError) else f"{type(error).__name__}: {words}"
    return words if len(words) <= width else words[: width - 3] + "..."

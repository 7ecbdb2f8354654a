"""Registry of the contract checks, and how one check runs on the samples of an operator."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from torch_opkit import _torch_private as private
from torch_opkit._contract.case import Case, SkipCheck
from torch_opkit._contract.remedies import remedy
from torch_opkit._contract.report import Result, Status
from torch_opkit._contract.source import locate
from torch_opkit._op import Op

if TYPE_CHECKING:
    from torch_opkit._contract.foreign import ForeignOp

CheckFunction = Callable[[Case], None]
CAUSAL = {"causal", "causal_gradient"}  # judged only if the operator says whether rows look ahead
EDGES = {"short_series", "zero_rows", "one_asset", "batch_axes"}  # what a time axis, if there is one, must allow
OF_BACKWARD = {
    "gradcheck", "gradgradcheck", "causal_gradient", "missing_values_gradient", "nan_output_gradient",
    "compile_backward",
}  # fmt: skip


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
        name = function.__name__
        requirement = (
            (function.__doc__ or name.replace("_", " ")).strip().splitlines()[0]
        )  # python -OO has no docstrings
        first_only = first_sample_only or compiled
        CHECKS[name] = Check(name, requirement, fix, function, tuple(depends_on), first_only, compiled, needs_time)
        return function

    return decorate


def run_check(check: Check, cases: Sequence[Case]) -> Result:
    """Run a check on one case after another until one fails. The check is skipped if it was skipped on every case."""
    start, skips = time.perf_counter(), []
    cases = cases[: 1 if check.first_sample_only else None]
    op = cases[0].op
    guesses = {} if isinstance(op, Op) else op.guesses
    # what the check assumes without having been told, in words
    assumed = ("samples", *(("time",) if check.needs_time else ()), *(("causal",) if check.name in CAUSAL else ()))
    guess = "; ".join(guesses[name] for name in assumed if name in guesses)
    for case in cases:
        try:
            if check.needs_time and not op.time:
                raise SkipCheck(no_time(op))
            with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
                warnings.simplefilter("ignore")
                private.warn_vmap_fallback(False)  # it prints to stderr, outside Python's warnings
                torch.manual_seed(0)
                check.function(case.with_timed_outputs() if check.needs_time else case)
        except SkipCheck as reason:
            skips.append(str(reason))
        except Exception as error:
            return _describe_failure(check, case, error, guess, time.perf_counter() - start)
    status: Status = "skip" if len(skips) == len(cases) else "pass"
    seconds = time.perf_counter() - start
    return Result(check.name, status, seconds, cause=skips[0] if status == "skip" else "", guess=guess)


def no_time(op: "Op | ForeignOp") -> str:
    """Why checks of the time axis do not apply."""
    if isinstance(op, Op) or op.declaration.time is None:
        return f"the {'record says' if isinstance(op, Op) else 'call says'} time=None: no axis is time"
    return "no time axis was stated or found: pass time=-2, or another axis"


def _describe_failure(check: Check, case: Case, error: Exception, guess: str, seconds: float) -> Result:
    cause, sample = describe_error(error), str(case.sample)
    judged = "causal" if check.name in CAUSAL else "time" if check.name in EDGES else ""
    if not isinstance(case.op, Op) and judged in case.op.guesses:  # a fault of what was not stated is a remark
        remark = f"not judged, as {judged} is not stated, but: {cause}; pass {judged}= to have it judged"
        return Result(check.name, "skip", seconds, cause=remark, guess=guess)
    kind, fix, location = (getattr(error, name, "") for name in ("kind", "fix", "location"))
    location = location or locate(case.op, "backward" if check.name in OF_BACKWARD else "forward")
    kind = kind or check.name
    fix = remedy(check.name, kind, fix or check.fix, case.op, is_specific=bool(fix))
    return Result(check.name, "fail", seconds, sample, cause, fix, kind, location, guess)


def describe_error(error: Exception, width: int = 400) -> str:
    """The message on one line, cut at `width`, with the exception's type unless it is an AssertionError."""
    words = " ".join(str(error).split()) or "no message"
    words = words if isinstance(error, AssertionError) else f"{type(error).__name__}: {words}"
    return words if len(words) <= width else words[: width - 3] + "..."

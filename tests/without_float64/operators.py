"""The eager rows of the contract on a device without float64: `python operators.py [--device mps] name ...`.

Operators run through their references there, in float32. Values and derivatives are compared with the CPU, which
computes in float64 from the same float32 numbers. Without names, every operator. Prints the failures as JSON.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import comparison
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

import torch_opkit as opkit
from torch_opkit import CHECKS
from torch_opkit._contract import causality, missing
from torch_opkit._contract.case import Case
from torch_opkit._contract.checks import run_check
from torch_opkit._contract.runner import build_cases
from torch_opkit._contract.values import to_float
from torchcommodity import ops

EXACT = ["warmup", "missing_values_gradient"]
LOOPS = {  # references that take many steps in Python for each row
    "dcc_correlation",
    "egarch_variance",
    "ewm_mean",
    "ewm_mean_backward",
    "garch_variance",
    "hamilton_filter",
    "lltm",
    "lltm_backward",
    "lstm",
    "lstm_backward",
    "rolling_correlation",
    "rolling_correlation_backward",
    "rolling_correlation_pairs",
    "seasonal_decompose",
    "series_program",
    "series_program_backward",
    "stl",
    "stl_backward",
    "technical_indicators_backward",
}
INTERPRETED = {"parabolic_sar", "parabolic_sar_backward"}  # a loop of small tensors for each row
assert ops.NATIVE, ops.NATIVE.reason
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))


def failures_by_name(names: list[str], device: str) -> dict[str, list[str]]:
    return {name: comparison.run_quietly(partial(failures, name, device)) for name in names}


def failures(name: str, device: str) -> Iterator[str]:
    """Every row on the first sample, without loops also on the second; of the others, values and gradients."""
    cases = build_cases(opkit.OPERATORS[f"commodity::{name}"])[: 2 if name in INTERPRETED else None]
    thorough = cases[: 1 if name in LOOPS | INTERPRETED else 2]
    single = [_called_on(device, case.map_tensors(to_float)) for case in thorough]
    for check in EXACT:
        result = run_check(CHECKS[check], single)
        if result.status == "fail":
            yield f"{check}: {result.sample}: {result.cause}"
    for case in single:
        for label, check in (("causal", _leaks), ("gradient at a NaN output", _nan_reaches_gradients)):
            try:
                yield from (f"{label}: {case.sample}: {words}" for words in check(case))
            except Exception as error:
                yield f"{label}: {case.sample}: {type(error).__name__}: {error}"
    for i, case in enumerate(cases):
        long = 0 if i or name in INTERPRETED else 300 if name in LOOPS else 3000
        for difference in comparison.differences(case, device, i < len(thorough), long):
            yield f"{case.sample}: {difference}"


def _leaks(case: Case) -> list[AssertionError]:
    """Changes of early rows by later ones, at one cut: a reference is slow, and the contract has tried every cut."""
    if not case.op.time or not case.causal:
        return []
    with torch.no_grad():
        with_time = case.with_timed_outputs()
        return causality._leaks(with_time, [case.rows // 2])


def _nan_reaches_gradients(case: Case) -> Iterator[str]:
    """The contract's `nan_output_gradient`, with a missing value in the first panel only."""
    if not (case.op.backward and case.op.time and case.float_indices):
        return
    for row in (case, *missing._with_missing_values(case)[:1]):
        pairs = zip(missing._gradients(row, torch.nan), missing._gradients(row, 0.0), strict=True)
        yield from (f"tensor {i} differs" for i, (x, y) in enumerate(pairs) if not torch.equal(x, y))


def _called_on(device: str, case: Case) -> Case:
    """The case with its function on the device, of CPU tensors: what judges its results may compute in float64."""
    return replace(case, cases=replace(case.cases, function=_moving(device, case.cases.function)))


def _moving(device: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*tensors: Tensor | None, **settings: Any) -> Any:
        outputs = function(*tree_map_only(Tensor, lambda x: x.to(device), tensors), **settings)
        return tree_map_only(Tensor, lambda y: y.cpu(), outputs)

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--device", default="single")
    arguments = parser.parse_args()
    if arguments.device == "single":
        import single_device

        assert torch.device(arguments.device).type == single_device.NAME
    sys.stdout.write(json.dumps(failures_by_name(arguments.names or NAMES, arguments.device)))


if __name__ == "__main__":
    main()

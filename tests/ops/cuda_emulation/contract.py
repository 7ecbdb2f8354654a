"""Run the contract on emulated CUDA kernels: `python contract.py emulated.so name ...` prints the failures as JSON.

It runs in a process of its own, without the native library of the package, whose kernels the emulated ones replace.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator

os.environ["TORCHCOMMODITY_NATIVE"] = "0"

import torch

import torch_opkit as opkit
from torch_opkit import CHECKS
from torch_opkit._contract.case import Case, SkipCheck, Tensors
from torch_opkit._contract.checks import run_check
from torch_opkit._contract.compare import assert_bitwise_equal, assert_close
from torch_opkit._contract.resize import resize
from torch_opkit._contract.runner import build_cases
from torchcommodity import ops

# no gradcheck: the formulas are those of the CPU, where it runs; here the gradients are compared with the references'
CHECK_NAMES = [
    "deterministic",
    "settings",
    "inputs_unchanged",
    "no_aliasing",
    "uninitialized_memory",
    "values_float64",
    "values_float32",
    "oracle",
    "golden",
    "causal",
    "warmup",
    "missing_values",
    "strides",
    "short_series",
    "zero_rows",
    "one_asset",
    "empty_batch",
    "batch_axes",
    "large_level",
    "long_series",
    "gradient_layout",
    "missing_values_gradient",
    "nan_output_gradient",
]
assert not ops.NATIVE


def failures(op: opkit.Op, expected: list[Tensors], library: ctypes.CDLL) -> Iterator[str]:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(op.qualified_name, "CPU"):
        yield "no kernel is registered"
    cases = build_cases(op)
    results = [run_check(CHECKS[name], cases) for name in CHECK_NAMES]
    yield from (f"{result.name}: {result.cause}" for result in results if result.status == "fail")
    try:
        for actual, reference in zip(gradients(op), expected, strict=True):
            assert_close(actual, reference, 1e-9, "gradient")
        _check_item_order(op, library)
    except AssertionError as error:
        yield str(error)


def gradients(op: opkit.Op) -> list[Tensors]:
    """The gradients of each sample that has any."""
    if not op.backward:
        return []
    return [case.gradients() for case in build_cases(op) if case.float_indices and case.finite_outputs()]


def _check_item_order(op: opkit.Op, library: ctypes.CDLL) -> None:
    for case in build_cases(op):
        for batch, rows, assets in ((None, None, None), (2, 150, None), (1, 70, 37)):
            large = _resized(case, batch, rows, assets)
            library.set_reverse_order(True)
            try:
                reversed_order = large.call()
            except (ValueError, RuntimeError):  # weights do not fit so many assets
                continue
            library.set_reverse_order(False)
            label = f"order: {rows} rows, {assets} assets:"
            assert_bitwise_equal(reversed_order, large.call(), f"{label} items in reverse order: the result")
            assert_close(reversed_order, large.call_reference(), 1e-9, f"{label} the result")


def _resized(case: Case, batch: int | None, rows: int | None, assets: int | None) -> Case:
    if rows is None or case.op.time is None:
        return case
    try:
        return resize(case, batch=batch, rows=rows, assets=assets)
    except SkipCheck:
        return case


if __name__ == "__main__":
    path, *names = sys.argv[1:]
    records = {name: opkit.OPERATORS[f"commodity::{name}"] for name in names}
    expected = {name: gradients(op) for name, op in records.items()}  # before the kernels are there: by the references
    torch.ops.load_library(path)
    emulated = ctypes.CDLL(path)
    failed = {name: list(failures(op, expected[name], emulated)) for name, op in records.items()}
    sys.stdout.write(json.dumps(failed))

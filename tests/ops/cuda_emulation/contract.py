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

from torchcommodity import opkit, ops
from torchcommodity.opkit._contract.case import Case, SkipCheck
from torchcommodity.opkit._contract.compare import assert_bitwise_equal, assert_close
from torchcommodity.opkit._contract.resize import resize
from torchcommodity.opkit._contract.runner import build_cases

# the derivatives of the formulas are those of the CPU; the kernels in them have their values checked here
CHECKS = [
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
    "missing_values_gradient",
    "nan_output_gradient",
]
assert not ops.NATIVE


def failures(op: opkit.Op, library: ctypes.CDLL) -> Iterator[str]:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(op.qualified_name, "CPU"):
        yield "no kernel is registered"
    yield from (f"{failure.name}: {failure.cause}" for failure in opkit.check(op, only=CHECKS).failures)
    try:
        _check_item_order(op, library)
    except AssertionError as error:
        yield f"order: {error}"


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
            assert_bitwise_equal(
                reversed_order, large.call(), f"{rows} rows, {assets} assets: items in reverse order: the result"
            )
            assert_close(reversed_order, large.call_reference(), 1e-9, f"{rows} rows, {assets} assets: the result")


def _resized(case: Case, batch: int | None, rows: int | None, assets: int | None) -> Case:
    if rows is None or case.op.time is None:
        return case
    try:
        return resize(case, batch=batch, rows=rows, assets=assets)
    except SkipCheck:
        return case


if __name__ == "__main__":
    path, *names = sys.argv[1:]
    torch.ops.load_library(path)
    emulated = ctypes.CDLL(path)
    failed = {name: list(failures(opkit.OPERATORS[f"commodity::{name}"], emulated)) for name in names}
    sys.stdout.write(json.dumps(failed))

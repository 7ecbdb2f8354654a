"""Run the contract on the bodies of the CUDA kernels: `python contract.py emulated.so name ...` prints what fails.

In a process of its own, without the library of the package, so that the emulated kernels answer in its place.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator

os.environ["TORCHCOMMODITY_NATIVE"] = "0"

import torch

from torchcommodity import opkit, ops
from torchcommodity.opkit._check.compare import same, same_bits
from torchcommodity.opkit._check.resize import resized
from torchcommodity.opkit._check.runner import subjects_of
from torchcommodity.opkit._check.subject import Skip, Subject

ROWS = [
    "inputs_kept",
    "no_alias",
    "memory",
    "values_float64",
    "values_float32",
    "oracle",
    "golden",
    "causal",
    "warm_up",
    "missing_value",
    "strides",
    "short",
    "no_rows",
    "one_asset",
    "no_batch",
    "batch_axes",
    "level",
    "long",
]
assert not ops.NATIVE


def failures(op: opkit.Op, library: ctypes.CDLL) -> Iterator[str]:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(op.qualified_name, "CPU"):
        yield "no kernel was registered"
    yield from (f"{failure.name}: {failure.cause}" for failure in opkit.check(op, only=ROWS).failures)
    try:
        _any_order(op, library)
    except AssertionError as error:
        yield f"order: {error}"


def _any_order(op: opkit.Op, library: ctypes.CDLL) -> None:
    for subject in subjects_of(op):
        for batch, rows, assets in ((None, None, None), (2, 150, None), (1, 70, 37)):
            large = _resized(subject, batch, rows, assets)
            library.run_backwards(True)
            try:
                last_first = large.call()
            except (ValueError, RuntimeError):  # refused: weights do not fit so many assets
                continue
            library.run_backwards(False)
            same_bits(last_first, large.call(), f"{rows} rows, {assets} assets: items run backwards: the result")
            same(last_first, large.defined(), 1e-9, f"{rows} rows, {assets} assets: the result")


def _resized(subject: Subject, batch: int | None, rows: int | None, assets: int | None) -> Subject:
    if rows is None or subject.op.time is None:
        return subject
    try:
        return resized(subject, batch=batch, rows=rows, assets=assets)
    except Skip:
        return subject


if __name__ == "__main__":
    path, *names = sys.argv[1:]
    torch.ops.load_library(path)
    emulated = ctypes.CDLL(path)
    broken = {name: list(failures(opkit.OPERATORS[f"commodity::{name}"], emulated)) for name in names}
    sys.stdout.write(json.dumps(broken))

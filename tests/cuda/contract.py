"""Every native operator against its reference, on the samples of its record, with the checks of the contract.

Several processes share the device: the references are loops of small kernels. `contract.py NAME`: one operator.
"""

import sys
import time

import torch
from gpu import Table, exit_without_gpu, run_each, to_gpu
from operators import cases_of, native_operators

from torch_opkit import CHECKS
from torch_opkit._contract.checks import run_check

CHECK_NAMES = [
    "inputs_unchanged",
    "no_aliasing",
    "uninitialized_memory",
    "values_float64",
    "values_float32",
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
    "gradcheck",
    "missing_values_gradient",
    "nan_output_gradient",
]
HEADS = ("operator", "samples", "passed", "do not apply", "seconds", "result")


def check_operator(name: str, table: Table) -> None:
    op = next(op for op in native_operators() if op.name == name)
    torch.backends.cudnn.deterministic = True  # its other algorithms do not give the same bits twice
    start, cases = time.perf_counter(), [case.map_tensors(to_gpu) for case in cases_of(op)]
    results = [run_check(CHECKS[name], cases) for name in CHECK_NAMES]
    count = {status: sum(result.status == status for result in results) for status in ("pass", "skip")}
    failing = "; ".join(f"{result.name}: {result.cause}" for result in results if result.status == "fail")
    seconds = f"{time.perf_counter() - start:.1f}"
    result = f"**FAIL** {failing}" if failing else "pass"
    table.failed |= bool(failing)
    table.row(f"`{op.name}`", len(cases), count["pass"], count["skip"], seconds, result)


def main() -> None:
    exit_without_gpu()
    table = Table("contract", *HEADS)
    if len(sys.argv) == 2:
        check_operator(sys.argv[1], table)
    else:
        run_each(__file__, [op.name for op in native_operators()], table)
    raise SystemExit(table.failed)


if __name__ == "__main__":
    main()

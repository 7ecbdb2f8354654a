"""Every native operator against its reference, on the samples of its record, with the checks of the contract.

Several processes share the device: the references are loops of small kernels.
"""

import os
import subprocess
import sys
import time

from gpu import Table, exit_without_gpu, to_gpu
from operators import cases_of, native_operators

from torchcommodity.opkit import CHECKS
from torchcommodity.opkit._contract.checks import run_check

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


def check_operators(table: Table, shard: int, shards: int) -> None:
    for op in native_operators()[shard::shards]:
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
    if len(sys.argv) == 3:
        table = Table("contract", *HEADS)
        check_operators(table, *map(int, sys.argv[1:]))
        raise SystemExit(table.failed)
    Table("contract", *HEADS)
    shards = max(1, min(8, os.cpu_count() or 1))
    environment = os.environ | {"TORCHCOMMODITY_CUDA_APPEND": "1", "OMP_NUM_THREADS": "1"}
    commands = [[sys.executable, __file__, str(k), str(shards)] for k in range(shards)]
    processes = [subprocess.Popen(command, env=environment) for command in commands]
    codes = [process.wait() for process in processes]  # all of them
    raise SystemExit(any(codes))


if __name__ == "__main__":
    main()

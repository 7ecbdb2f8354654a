"""The contract of every operator, without the checks that compile: one process per core, one thread each."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import part
import torch

# Third derivatives that a version of PyTorch does not have: that of a convolution takes symbolic shapes from 2.13 on
MISSING = {(version, "commodity::conv_bn_backward", "aot_dispatch") for version in ("2.10", "2.11", "2.12")}


def check(name: str) -> list[tuple[str, str]]:
    """Status of each check of an operator, and what failed, in words."""
    import torch_opkit as opkit

    part.native_operators()
    results, version = opkit.check(opkit.OPERATORS[name], compiled=False).results, torch.__version__[:4]
    return [
        (
            "skip" if result.status == "fail" and (version, name, result.name) in MISSING else result.status,
            f"{name}, {result.name}: {result.cause}",
        )
        for result in results
    ]


def contract() -> dict[str, Any]:
    names = [op.qualified_name for op in part.native_operators()]
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the processes
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        results = [result for results in pool.map(check, names) for result in results]
    count = Counter(status for status, _ in results)
    failures = [text for status, text in results if status == "fail"]
    return {"passed": count["pass"], "skipped": count["skip"], "failures": failures}


if __name__ == "__main__":
    part.run(contract)

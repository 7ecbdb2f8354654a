"""The contract of every operator, without the checks that compile: one process per core, one thread each."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import part
import torch

# third derivatives that a version of PyTorch does not have, by its first two numbers, operator and check
MISSING = {
    ("2.10", "commodity::conv_bn_backward", "aot_dispatch"): "ConvolutionBackwardBackward takes no symbolic shapes",
}


def check(name: str) -> list[tuple[str, str]]:
    """Status of each check of an operator, and what failed, in words."""
    import torch_opkit as opkit

    part.native_operators()
    results, version = opkit.check(opkit.OPERATORS[name], compiled=False).results, torch.__version__[:4]
    known = {check for torch_version, operator, check in MISSING if (torch_version, operator) == (version, name)}
    return [
        ("skip" if result.name in known else result.status, f"{name}, {result.name}: {result.cause}")
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

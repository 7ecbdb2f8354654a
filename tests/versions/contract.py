"""The contract of every operator, without the checks that compile: one process per core, one thread each."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import part


def check(name: str) -> list[tuple[str, str]]:
    """Status of each check of an operator, and what failed, in words."""
    import torch_opkit as opkit

    part.native_operators()
    results = opkit.check(opkit.OPERATORS[name], compiled=False).results
    return [(result.status, f"{name}, {result.name}: {result.cause}") for result in results]


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

"""Which operators are native, what the imports do to the GIL, and whether Python threads get the same bits."""

import importlib
import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import part

THREADS, CALLS = 8, 3
IMPORTS = ("torch", "torchcommodity.ops", "torchcommodity.models", "pandas", "torchcommodity.forecast")


def gil_enabled() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def gil_after(module: str) -> bool | None:
    """Whether the GIL is enabled after this import too; None if the module, or what it needs, is not installed."""
    try:
        importlib.import_module(module)
    except ImportError:
        return None
    return gil_enabled()


def bits(outputs: Any) -> list[bytes]:
    """The bytes of each output: NaNs compare too."""
    import torch

    return [y.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() for y in outputs]


def same_bits(op: Any, pool: ThreadPoolExecutor) -> bool:
    """Whether an operator returns the same bits in one thread and in several at once."""
    from torch_opkit._contract.runner import build_cases

    case, barrier = build_cases(op)[0], threading.Barrier(THREADS)
    expected = bits(case.call())

    def call(_: int) -> bool:
        barrier.wait()
        return all(bits(case.call()) == expected for _ in range(CALLS))

    return all(pool.map(call, range(THREADS)))


def operators() -> dict[str, Any]:
    gil = {module: gil_after(module) for module in IMPORTS}  # first: nothing is imported yet
    import torch

    native = part.native_operators()
    with ThreadPoolExecutor(THREADS) as pool:
        differing = [op.name for op in native if not same_bits(op, pool)]
    python = platform.python_version() + ("t" if sys.abiflags.startswith("t") else "")
    versions = {"torch": torch.__version__, "python": python, "platform": platform.platform()}
    return {**versions, "native": len(native), "gil": gil, "differing": differing}


if __name__ == "__main__":
    part.run(operators)

"""The launches of an operator's CUDA kernels, counted on the CPU: their threads, and the memory that they access.

The kernels are those of the tests without a GPU (tests/ops/cuda_emulation), compiled to count accesses. Of each launch
a sample of warps runs, so the results are not to be used.
"""

import ctypes
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "ops"))

os.environ["TORCHCOMMODITY_NATIVE"] = "0"  # these kernels take the place of the package's

import torch
from cuda_unity import INCLUDES, OPS, unity
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.cpp_extension import library_paths

EMULATION = OPS.parents[1] / "tests" / "ops" / "cuda_emulation"
SECONDS = 60  # of one operator at one size


@dataclass(frozen=True)
class Launch:
    """Counts of the sample, whose part of the launch is `share`; warps are those of the whole launch."""

    kernel: str
    body: str  # mangled
    warps: int
    threads: int  # of a block, or of a warp that runs items
    serial: int  # blocks of which each waits for the one before
    share: float
    instructions: int  # of warps, with an access to global memory
    bytes: int  # that threads read and write in global memory
    sectors: int  # of 32 bytes, in the accesses of all warps
    touched: int  # sectors that differ
    shared: int  # accesses of threads to shared memory
    longest: int  # accesses one after another: of the slowest thread between two barriers, added up
    barriers: int  # of a block
    memory: int  # bytes of shared memory of a block

    @classmethod
    def parse(cls, line: str) -> "Launch":
        kernel, body, *numbers = line.split("\t")
        units, threads, serial, sampled, *counts = map(int, numbers)
        return cls(kernel, body, units * -(-threads // 32), threads, serial, sampled / max(units, 1), *counts)


@dataclass(frozen=True)
class Counts:
    """Of one call: launches of kernels, bytes of its results, and bytes that each kernel of torch reads and writes."""

    launches: list[Launch]
    size: int
    torch: list[int]


class TorchCalls(TorchDispatchMode):
    """Operators of torch around the kernels, such as checks of values; views and allocations start no kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = list[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        is_view = any(r.alias_info and not r.alias_info.is_write for r in func._schema.returns)
        if func.namespace == "aten" and not is_view and "empty" not in func._schema.name:
            tensors = (x for x in tree_leaves((args, kwargs, results)) if isinstance(x, Tensor))
            self.bytes.append(sum(x.nbytes for x in tensors))
        return results


def compile_traced(folder: Path) -> Path:
    """The kernels as a library for the CPU that counts."""
    options = ["-std=c++20", "-O1", "-w", "-fPIC", "-DCOMMODITY_TRACE", "-DTORCH_TARGET_VERSION=0x020a000000000000"]
    options += [f"-I{path}" for path in (EMULATION, *INCLUDES)]
    sanitizer = ["-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0"]
    objects = [folder / "kernels.o", folder / "trace.o"]
    libraries = [f"-L{path}" for path in library_paths()] + ["-ltorch_cpu"]
    for command in (
        [*options, *sanitizer, "-x", "c++", "-c", unity(folder), "-o", objects[0]],
        [*options, "-c", EMULATION / "trace.cpp", "-o", objects[1]],
        ["-shared", *objects, "-o", folder / "traced.so", *libraries],
    ):
        subprocess.run(["c++", *map(str, command)], check=True)
    return folder / "traced.so"


class Tracer:
    """Runs calls on the library in processes of their own: a sample leaves memory unwritten, and may end in a crash."""

    def __init__(self, library: Path) -> None:
        torch.set_num_threads(1)
        torch.ops.load_library(library)
        self.library = ctypes.CDLL(str(library))
        self.library.take_trace.restype = ctypes.c_char_p

    def count(self, call: Callable[[], object]) -> Counts:
        """What one call does; nothing if it fails or takes too long."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=self._run, args=(call, sender))
        process.start()
        sender.close()
        try:
            text, *counts = receiver.recv() if receiver.poll(SECONDS) else ("", 0, [])
        except EOFError:
            text, *counts = "", 0, []
        process.kill()
        process.join()
        return Counts([Launch.parse(line) for line in text.splitlines()], *counts)

    def _run(self, call: Callable[[], object], sender: Connection) -> None:
        ctypes.CDLL(None).mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD: zeros are indices, if the sample does not write them
        self.library.take_trace()
        with torch.no_grad(), TorchCalls() as calls:
            results = tree_leaves(call())
        size = sum(y.nbytes for y in results if isinstance(y, torch.Tensor))
        sender.send((self.library.take_trace().decode(), size, calls.bytes))


def demangle(names: list[str]) -> Iterator[str]:
    """Names of types or functions without namespaces, so that those of the two compilers are equal."""
    output = subprocess.run(["c++filt", "-t"], input="\n".join(names), capture_output=True, text=True, check=True)
    yield from output.stdout.splitlines()

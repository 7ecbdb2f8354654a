"""The native library of torchcommodity, one shared object: ops/**/*.cpp, *.cu where torch has CUDA, and *.kernel.h.

A *.kernel.h is a source for both devices: it is compiled once for the CPU and, where torch has CUDA, once for a GPU.

It holds no Python symbol: `torch.ops.load_library` loads it in every Python, and in every torch from 2.10 on.
"""

import os
import platform
import re
import runpy
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from torch_opkit.build import BuildError, Toolchain, cxx, gencode, nvcc, torch_folder

PACKAGE = Path(__file__).resolve().parents[1] / "torchcommodity"
HEADERS = PACKAGE / "ops" / "_csrc"
NAME = "_C.so"
CPUINFO = Path("/proc/cpuinfo")
LEVEL = "x86-64-v3"  # the instruction set of processors with AVX2, from 2013 on
# GCC's elimination of common subexpressions in registers, after the one in its trees, takes up to half of the time of
# a large inlined kernel and does not change its speed measurably; clang does not know the flags
CFLAGS = ("-fno-gcse", "-fno-gcse-after-reload", "-Wno-ignored-optimization-argument", "-fvisibility=hidden")
INCLUDED = re.compile(r'^#include (?:"(.+)"|(<.+>))', re.MULTILINE)
SHARED = re.compile(r"^namespace [\w:]+ \{", re.MULTILINE)  # functions for other sources, whose namespace must stay
BLOCK_SIZE = 4  # small enough that many processors have work, and that a change of one kernel compiles soon


def sources(cuda: bool = False) -> list[Path]:
    """The sources, in the same order on every machine."""
    patterns = ("*.cpp", "*.kernel.h", "*.cu") if cuda else ("*.cpp", "*.kernel.h")
    return sorted(path for pattern in patterns for path in (PACKAGE / "ops").rglob(pattern))


def level() -> str:
    """What a library for this machine is compiled for, which is its folder in the package too: LEVEL, or "" for all."""
    flags = set(CPUINFO.read_text().split()) if CPUINFO.exists() else set()
    return LEVEL if platform.machine() == "x86_64" and {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"} <= flags else ""


def build_library(target: Path, folder: Path, cuda: bool = False, cflags: Sequence[str] = (), **settings: Any) -> None:
    """Write the library to `target`. `folder` keeps the object files, so that the next build compiles what changed.

    Args:
        target: path of the library.
        folder: folder of the object files, one for each set of settings.
        cuda: compile the kernels for a GPU.
        cflags: additional flags of the C++ compiler.
        settings: of `Toolchain`, to build for another platform: `compiler`, the command of a C++ compiler; `torch`, the
            folder of a torch for that platform; `libraries` and `ldflags`; `platform`, "linux" or "darwin".
    """
    # messages name the files from the root of the sources on, whoever built the library
    roots = (f"{PACKAGE.parent}{os.sep}", f"{settings.get('torch') or torch_folder()}{os.sep}include{os.sep}")
    relative = (f"-ffile-prefix-map={root}=" for root in roots)
    toolchain = Toolchain(
        cflags=(*CFLAGS, *relative, *cflags),
        include=(HEADERS,),
        precompiled=HEADERS / "native.h",
        cuda=cuda,
        gencode=tuple(gencode()) if cuda else (),
        cuda_cflags=("--expt-relaxed-constexpr",),
        **settings,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    toolchain.build(in_blocks(sources(cuda), folder, cuda), folder, target)


def in_blocks(sources: Sequence[Path], folder: Path, cuda: bool = False) -> list[Path]:
    """Write blocks of up to BLOCK_SIZE kernels of one family into `folder`; returns them with the other sources.

    A block is compiled as one source: reading the headers takes about half of the time of a small kernel. What compiles
    longest comes first, .cu files before all, so that the processors finish at about the same time.
    """
    for_gpu = [path for path in sources if path.suffix == ".cu"]
    shared = [path for path in sources if path.suffix == ".cpp" and SHARED.search(path.read_text())]
    kernels = [path for path in sources if path not in (*for_gpu, *shared)]
    blocks = list[Path]()
    for family, members in groupby(kernels, lambda path: path.parent):
        paths = [*members]
        for k in range(0, len(paths), BLOCK_SIZE):
            block = folder / f"{family.name.strip('_')}_{k // BLOCK_SIZE + 1}.cpp"
            block.write_text(block_text(paths[k : k + BLOCK_SIZE]))
            blocks.append(block)
    for path in filter(is_for_both, sources if cuda else ()):
        source = folder / f"{kernel_name(path)}.cu"
        source.write_text(block_text([path], gpu=True))
        for_gpu.append(source)
    return [*for_gpu, *blocks, *shared]


def block_text(kernels: Sequence[Path], gpu: bool = False) -> str:
    """Every header once, then each kernel in a namespace of its own: kernels give the same names to what is theirs."""
    headers = dict[str, None]()
    for path in kernels:
        for quoted, other in INCLUDED.findall(path.read_text()):
            beside = path.parent / quoted
            headers[other or f'"{beside if beside.is_file() else quoted}"'] = None
    lines = ["#define COMMODITY_GPU"] if gpu else []
    lines += [f"#include {header}" for header in headers]
    lines += [f'namespace in_{kernel_name(path)} {{\n#include "{path}"\n}}' for path in kernels]
    return "\n".join(lines) + "\n"


def is_for_both(source: Path) -> bool:
    """Whether it is a source for the CPU and for a GPU."""
    return source.name.endswith(".kernel.h")


def kernel_name(source: Path) -> str:
    return source.name.split(".")[0]


def has_compiler() -> bool:
    try:
        return bool(cxx())
    except BuildError:
        return False


def has_cuda() -> bool:
    """Whether to compile the .cu files: TORCHCOMMODITY_CUDA, else whether torch has CUDA and nvcc is installed."""
    if setting := os.environ.get("TORCHCOMMODITY_CUDA"):
        return setting == "1"
    version = runpy.run_path(str(torch_folder() / "version.py"))
    try:
        return bool(version["cuda"] and nvcc())
    except BuildError:
        return False

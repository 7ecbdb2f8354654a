"""Compiler flags of every native build: the stable ABI, the optimization of loops, the GPU architectures.

It imports nothing of this package, so that `setup.py` can run the file before anything is built.
"""

from collections.abc import Iterable

STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020a000000000000"  # one library for every torch from 2.10 on
CXX_FLAGS = (
    "-std=c++20",
    "-g0",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",  # lets a test for NaN inside a loop be vectorized; NaN keeps its meaning
    "-Wall",
    "-Werror=return-type",
    STABLE_ABI,
)
NVCC_FLAGS = ("-std=c++20", "-O3", "-DUSE_CUDA", STABLE_ABI)
ARCHITECTURES = ("8.0", "9.0")


def gencode(architectures: Iterable[str] = ARCHITECTURES) -> list[str]:
    """nvcc's options for these compute capabilities, with PTX of the last one for later GPUs."""
    numbers = [architecture.replace(".", "") for architecture in architectures]
    codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers]
    return [*codes, f"-gencode=arch=compute_{numbers[-1]},code=compute_{numbers[-1]}"]

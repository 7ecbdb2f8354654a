"""What every build of a native operator shares: the stable ABI, how loops are optimized, the GPUs it is meant for.

Nothing of this package is imported here, so that a `setup.py` can run this file before anything is built.
"""

from collections.abc import Iterable

STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020a000000000000"  # one library for every torch from 2.10 on
# without traps a test for NaN inside a loop can be vectorized; NaN keeps its meaning
HOST = ("-std=c++20", "-g0", "-O3", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Werror=return-type", STABLE_ABI)
DEVICE = ("-std=c++20", "-O3", "-DUSE_CUDA", STABLE_ABI)
ARCHITECTURES = ("8.0", "9.0")


def gencode(architectures: Iterable[str] = ARCHITECTURES) -> list[str]:
    """nvcc's options for these compute capabilities, with PTX of the last for what comes after it."""
    numbers = [architecture.replace(".", "") for architecture in architectures]
    codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers]
    return [*codes, f"-gencode=arch=compute_{numbers[-1]},code=compute_{numbers[-1]}"]

"""Compiler flags of every native build: the stable ABI, the optimization of loops."""

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

"""The .cu files without a GPU: nvcc compiles them all, and their bodies, run on the processor, give the right numbers.

An emulation of the launch (`cuda_emulation/launch.h`) runs the very bodies of the kernels one item after the other,
forwards and backwards. It shows the arithmetic and the indices. It cannot show races, nor the launch itself: those need
`benchmarks/cuda.py` on a machine with a GPU.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_unity import INCLUDES, KERNELS, OPS, nvcc, unity
from torch.utils.cpp_extension import library_paths

STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020a000000000000"
EMULATION = Path(__file__).parent / "cuda_emulation"
REGISTERED = re.compile(r"^COMMODITY_CUDA\((\w+)\)", re.MULTILINE)
NAMES = sorted(name for path in KERNELS for name in REGISTERED.findall(path.read_text()))


def test_every_native_operator_has_a_kernel_for_cuda() -> None:
    declared = re.compile(r"^COMMODITY_OPERATOR\(\s*(\w+)", re.MULTILINE)
    native = {name for path in OPS.glob("*/*.cpp") for name in declared.findall(path.read_text())}
    assert native == set(NAMES)


def test_nvcc_compiles_every_kernel(tmp_path: Path) -> None:
    compiler = nvcc()
    if compiler is None:
        pytest.skip("no nvcc: the .cu files were not compiled for a GPU")
    oldest = "-gencode=arch=compute_80,code=compute_80"  # what it takes, later GPUs take; no machine code
    includes = [f"-I{path}" for path in INCLUDES]
    options = ["-std=c++20", "-O3", STABLE_ABI, "-DUSE_CUDA", "-Xcompiler=-fPIC", "-Werror=all-warnings"]
    options += ["--expt-relaxed-constexpr"]  # as torch compiles extensions
    _run(compiler, *options, oldest, *includes, "-c", unity(tmp_path), "-o", tmp_path / "unity.o")


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Of each operator, the rows of the contract that the bodies of its kernels break on the processor."""
    folder = tmp_path_factory.mktemp("emulated")
    includes = [f"-I{path}" for path in (EMULATION, *INCLUDES)]
    libraries = [f"-L{path}" for path in library_paths()] + ["-ltorch_cpu"]
    options = ["-x", "c++", "-std=c++20", "-O1", "-fPIC", "-shared", STABLE_ABI, "-Wall", "-Wno-unknown-pragmas"]
    _run("c++", *options, *includes, unity(folder), "-o", folder / "emulated.so", *libraries)
    found: dict[str, list[str]] = json.loads(
        _run(sys.executable, EMULATION / "contract.py", folder / "emulated.so", *NAMES)
    )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_its_body_keeps_the_contract(name: str, failures: dict[str, list[str]]) -> None:
    assert not failures[name], "\n".join(failures[name])


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout

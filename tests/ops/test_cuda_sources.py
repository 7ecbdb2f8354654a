"""The CUDA kernels without a GPU: nvcc compiles them all, and their bodies pass the contract on the CPU.

`cuda_emulation/launch.h` replaces the launch: it runs the bodies of the kernels one item at a time, in either order.
This tests arithmetic and indices. It cannot detect races or errors of the launch itself; for those, run
`make test-cuda` on a machine with a GPU.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cuda_unity import INCLUDES, KERNELS, OPS, nvcc, unity
from torch.utils.cpp_extension import library_paths

from native.library import sources
from torchcommodity import ops

STABLE_ABI = "-DTORCH_TARGET_VERSION=0x020a000000000000"
EMULATION = Path(__file__).parent / "cuda_emulation"
REGISTERED = re.compile(r"^COMMODITY_(?:CUDA|KERNEL)\(\s*(\w+)", re.MULTILINE)
NAMES = sorted(name for path in KERNELS for name in REGISTERED.findall(path.read_text()))
pytestmark = [pytest.mark.slow, pytest.mark.compile]


def test_every_native_operator_has_a_cuda_kernel() -> None:
    declared = re.compile(r"^COMMODITY_(?:OPERATOR|KERNEL)\(\s*(\w+)", re.MULTILINE)
    native = {name for path in sources() for name in declared.findall(path.read_text())}
    live_updates = {name for name in native if name.endswith("_step")}  # on a GPU the reference runs
    assert native - live_updates == set(NAMES)


def test_cuda_kernels_compile(tmp_path: Path) -> None:
    compiler = nvcc()
    if compiler is None:
        pytest.skip("nvcc is not installed: the .cu files are not compiled for a GPU")
    oldest = "-gencode=arch=compute_80,code=compute_80"  # PTX of the oldest GPU, which later ones accept
    includes = [f"-I{path}" for path in INCLUDES]
    # -O0 is for the host code, which is not run; the device code is optimized and its loops are unrolled
    options = ["-std=c++20", "-O0", STABLE_ABI, "-DUSE_CUDA", "-Xcompiler=-fPIC", "-Werror=all-warnings"]
    options += ["--expt-relaxed-constexpr"]  # as torch compiles extensions
    _run(compiler, *options, oldest, *includes, "-c", unity(tmp_path), "-o", tmp_path / "unity.o")


@pytest.fixture(scope="module")
def emulated(once: Callable[..., Path]) -> Path:
    """The kernels as a library for the CPU."""

    def build(folder: Path) -> None:
        folder.mkdir()
        includes = [f"-I{path}" for path in (EMULATION, *INCLUDES)]
        libraries = [f"-L{path}" for path in library_paths()] + ["-ltorch_cpu"]
        options = ["-x", "c++", "-std=c++20", "-O1", "-fPIC", "-shared", STABLE_ABI, "-Wall", "-Wno-unknown-pragmas"]
        _run("c++", *options, *includes, unity(folder), "-o", folder / "emulated.so", *libraries)

    return once("emulated", build) / "emulated.so"


@pytest.fixture(scope="module")
def failures(emulated: Path, once: Callable[..., Path]) -> dict[str, list[str]]:
    """For each operator, the checks of the contract that its kernels fail on the CPU."""
    command = (sys.executable, EMULATION / "contract.py", emulated, *NAMES)
    output = once("emulated.json", lambda path: path.write_text(_run(*command)))
    failures: dict[str, list[str]] = json.loads(output.read_text())
    return failures


@pytest.mark.parametrize("name", NAMES)
def test_cuda_kernel_passes_contract_on_cpu(name: str, failures: dict[str, list[str]]) -> None:
    assert not failures[name], "\n".join(failures[name])


def test_no_kernel_has_a_function_that_the_linker_mistakes_for_one_of_the_cpu(emulated: Path) -> None:
    assert ops.NATIVE.path
    shared = functions(emulated) & functions(ops.NATIVE.path)
    launching = sorted(symbol for symbol in shared if re.search(r"\bcommodity::dispatch<", symbol))
    assert not launching, "a function that launches a kernel has one name on both devices: use COMMODITY_DEVICE"
    headers = [path.read_text() for path in OPS.rglob("*.h")]
    for name in {name_of(symbol) for symbol in shared}:
        definition = re.compile(rf"^\w[^;()]*\b{re.escape(name)}\(", re.MULTILINE)
        assert sum(bool(definition.search(text)) for text in headers) <= 1, f"two headers define {name}"
    for name in types(emulated) & types(ops.NATIVE.path):
        definition = re.compile(rf"^struct {name}\b[^;]*{{$", re.MULTILINE)
        assert sum(bool(definition.search(text)) for text in headers) <= 1, f"two headers define {name}: use on_gpu"


def functions(library: Path) -> set[str]:
    """Functions of the namespace commodity with their arguments, without those of anonymous namespaces."""
    lines = [line.split(maxsplit=2) for line in _run("nm", "--demangle", "--defined-only", library).splitlines()]
    symbols = {symbol for _, kind, symbol in lines if kind in "tTwW"}
    return {symbol for symbol in symbols if "commodity::" in symbol and "anonymous" not in symbol}


def name_of(symbol: str) -> str:
    """`run` of "void commodity::run<float>(int)"."""
    while "<" in symbol:
        symbol = re.sub(r"<[^<>]*>", "", symbol)
    return symbol.split("(")[0].split("::")[-1]


def types(library: Path) -> set[str]:
    """Types with functions, `Loess` of "commodity::Loess::size() const", without those in a namespace of one device."""
    return set(re.findall(r"\bcommodity::(\w+)::~?\w+\(", "\n".join(functions(library))))


def test_random_series_programs_equal_their_reference(emulated: Path) -> None:
    assert not _run(sys.executable, EMULATION / "programs.py", emulated)


def test_windows_of_all_lengths_equal_their_reference(emulated: Path) -> None:
    assert not _run(sys.executable, EMULATION / "windows.py", emulated)


def test_recurrent_layers_of_all_sizes_equal_their_reference(emulated: Path) -> None:
    assert not _run(sys.executable, EMULATION / "recurrent.py", emulated)


def _run(*command: object) -> str:
    process = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-4000:]
    return process.stdout

"""Compile and link one shared library, with errors that start at the source line."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torchcommodity.opkit._build.extension import INCLUDE
from torchcommodity.opkit._build.flags import CXX_FLAGS, NVCC_FLAGS, gencode


class BuildError(RuntimeError):
    """A source does not compile or link; the message starts with file, line and source line."""


@dataclass(frozen=True)
class Toolchain:
    """Compiler commands with additional flags and include folders."""

    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()

    def compile_command(self, source: Path, target: Path) -> list[str]:
        headers = [f"-I{folder}" for folder in (INCLUDE, *self.include)]
        headers += [word for folder in _torch_headers() for word in ("-isystem", str(folder))]  # nvcc wants two words
        if source.suffix == ".cu":
            host = ["-Xcompiler", "-fPIC"]
            return [nvcc(), *NVCC_FLAGS, *gencode(), *host, *self.flags, *headers, "-c", str(source), "-o", str(target)]
        return [cxx(), *CXX_FLAGS, "-fPIC", *self.flags, *headers, "-c", str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path, cuda: bool = False) -> list[str]:
        mac = sys.platform == "darwin"
        shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
        linker = nvcc() if cuda else cxx()  # nvcc knows the path of CUDA's runtime
        libraries = [f"-L{_torch_folder() / 'lib'}", *_libraries(cuda)]
        return [linker, *shared, *map(str, objects), *libraries, "-o", str(target)]

    def build(self, sources: Sequence[Path], folder: Path, target: Path) -> None:
        """Compile the sources in parallel, with object files in `folder`, and link them into `target`."""
        objects = [folder / f"{i}.o" for i in range(len(sources))]
        with ThreadPoolExecutor(max_workers=min(len(sources), os.cpu_count() or 1)) as pool:
            list(pool.map(lambda pair: _run(self.compile_command(*pair), folder), zip(sources, objects)))
        _run(self.link_command(objects, target, any(source.suffix == ".cu" for source in sources)), folder)


def cxx() -> str:
    path = os.environ.get("CXX") or shutil.which("c++")
    if not path:
        raise BuildError("no C++ compiler: install g++ or clang++, or set the environment variable CXX")
    return path


def nvcc() -> str:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    path = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else shutil.which("nvcc")
    if not path:
        raise BuildError("no nvcc for the CUDA sources: install the CUDA toolkit, or set CUDA_HOME to its folder")
    return path


def _torch_folder() -> Path:
    import torch

    return Path(torch.__file__).parent


def _torch_headers() -> list[Path]:
    include = _torch_folder() / "include"
    return [include, include / "torch/csrc/api/include"]


def _libraries(cuda: bool) -> list[str]:
    # torch without CUDA has no libtorch_cuda to link; loading the library then fails with an explanation
    has_cuda = cuda and list((_torch_folder() / "lib").glob("libtorch_cuda.*"))
    return [f"-l{name}" for name in ("torch", "torch_cpu", "c10", *(["torch_cuda"] if has_cuda else []))]


def _run(command: list[str], folder: Path) -> None:
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: no such compiler") from None
    if process.returncode:
        output = (process.stderr or process.stdout).replace(f"{folder}{os.sep}", "")
        raise BuildError(_first_error(output, command[0]))


def _first_error(output: str, compiler: str) -> str:
    """The first error with its source line, followed by the full output."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)), 0)
    return "\n".join([*lines[first : first + 3], "", f"Full output of {Path(compiler).name}:", output.strip()])

"""Compile and link one shared library, with errors that start at the source line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchcommodity.opkit._build.architectures import gencode
from torchcommodity.opkit._build.extension import INCLUDE
from torchcommodity.opkit._build.flags import CXX_FLAGS, NVCC_FLAGS


class BuildError(RuntimeError):
    """A source does not compile or link; the message starts with file, line and source line."""


@dataclass(frozen=True)
class Toolchain:
    """Commands of the C++ compiler, nvcc and the linker, with additional flags for each, and folders of headers."""

    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    gencode: tuple[str, ...] = ()
    cuda: bool = False  # whether there are .cu files
    verbose: bool = False

    def compile_command(self, source: Path, target: Path) -> list[str]:
        headers = [f"-I{folder}" for folder in (INCLUDE, *self.include)]
        headers += [word for folder in _torch_headers() for word in ("-isystem", str(folder))]  # nvcc wants two words
        if source.suffix == ".cu":
            host = ["-Xcompiler", "-fPIC"]
            compiler = [nvcc(), *NVCC_FLAGS, *self.gencode, *host, *self.cuda_cflags]
        else:
            compiler = [cxx(), *CXX_FLAGS, "-fPIC", *self.cflags]
        return [*compiler, *headers, "-c", str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path) -> list[str]:
        mac = sys.platform == "darwin"
        shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
        linker = nvcc() if self.cuda else cxx()  # nvcc knows the path of CUDA's runtime
        libraries = [f"-L{_torch_folder() / 'lib'}", *_libraries(self.cuda)]
        ldflags = map(_for_nvcc, self.ldflags) if self.cuda else self.ldflags
        return [linker, *shared, *map(str, objects), *libraries, *ldflags, "-o", str(target)]

    def commands(self) -> list[list[str]]:
        """All that decides what a library holds but the sources: part of its key in the cache."""
        sources = [Path("source.cpp"), *([Path("source.cu")] if self.cuda else [])]
        target = Path("target")
        return [*(self.compile_command(source, target) for source in sources), self.link_command([], target)]

    def build(self, sources: Sequence[Path], folder: Path, target: Path) -> None:
        """Compile the sources in parallel, with object files in `folder`, and link them into `target`."""
        objects = [folder / f"{i}.o" for i in range(len(sources))]
        with ThreadPoolExecutor(max_workers=min(len(sources), os.cpu_count() or 1)) as pool:
            list(pool.map(lambda pair: self._run(self.compile_command(*pair), folder), zip(sources, objects)))
        self._run(self.link_command(objects, target), folder)

    def _run(self, command: list[str], folder: Path) -> None:
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise BuildError(f"{command[0]}: no such compiler") from None
        if self.verbose:
            sys.stdout.write(f"{shlex.join(command)}\n{process.stdout}{process.stderr}")
        if process.returncode:
            output = (process.stderr or process.stdout).replace(f"{folder}{os.sep}", "")
            raise BuildError(_first_error(output, command[0]))


def make_toolchain(
    operation: str,
    cuda: bool,
    *,
    extra_cflags: Sequence[str],
    extra_cuda_cflags: Sequence[str],
    extra_ldflags: Sequence[str],
    extra_include_paths: Sequence[str | Path],
    architectures: Sequence[str] | None,
    verbose: bool,
) -> Toolchain:
    """The toolchain of an operation that users call with these arguments."""
    return Toolchain(
        cflags=_sequence(operation, "extra_cflags", extra_cflags),
        cuda_cflags=_sequence(operation, "extra_cuda_cflags", extra_cuda_cflags),
        ldflags=_sequence(operation, "extra_ldflags", extra_ldflags),
        include=tuple(Path(f).resolve() for f in _sequence(operation, "extra_include_paths", extra_include_paths)),
        gencode=tuple(gencode(architectures, operation, extra_cuda_cflags)) if cuda else (),
        cuda=cuda,
        verbose=verbose,
    )


def _sequence(operation: str, argument: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(values, (str, Path)):
        raise TypeError(f"{operation}: {argument} must be a list of strings, such as [{str(values)!r}]; got {values!r}")
    return tuple(values)


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


def _for_nvcc(flag: str) -> str:
    """A linker flag as users write it for the C++ compiler, for nvcc, which knows -l, -L, -X and files only."""
    if flag.startswith("-Wl,"):
        return f"-Xlinker={flag.removeprefix('-Wl,')}"
    known = flag.startswith(("-l", "-L", "-X")) or not flag.startswith("-")
    return flag if known else f"-Xcompiler={flag}"


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


def _first_error(output: str, compiler: str) -> str:
    """The first error with its source line, followed by the full output."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)), 0)
    return "\n".join([*lines[first : first + 3], "", f"Full output of {Path(compiler).name}:", output.strip()])

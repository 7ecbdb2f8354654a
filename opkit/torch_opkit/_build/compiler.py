"""Compile and link one shared library, with errors that start at the source line."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from torch_opkit._build.architectures import gencode
from torch_opkit._build.cache import digest

INCLUDE = Path(__file__).parent.parent / "include"
REGISTRATION = ("-include", str(INCLUDE / "opkit_registration.h"))  # a mistake in a schema does not end the process
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
    compiler: tuple[str, ...] = ()  # command of the C++ compiler; default: CXX, or c++
    torch: Path | None = None  # folder of torch's headers and libraries; default: the installed torch
    libraries: tuple[str, ...] = ("torch", "torch_cpu", "c10")
    platform: str = sys.platform  # that the library is for
    precompiled: Path | None = None  # a header to compile once, which then begins every .cpp

    def compile_command(self, source: Path, target: Path) -> list[str]:
        headers = [f"-I{folder}" for folder in (INCLUDE, *self.include)]
        of_torch = self._torch_folder() / "include"
        for folder in (of_torch, of_torch / "torch/csrc/api/include"):
            headers += ["-isystem", str(folder)]  # two words, for nvcc
        if source.suffix == ".cu":
            host = ["-Xcompiler", "-fPIC"]
            compiler = [nvcc(), *NVCC_FLAGS, *self.gencode, *host, *self.cuda_cflags]
        else:
            compiler = [*(self.compiler or cxx()), *CXX_FLAGS, "-fPIC", *self.cflags]
        language = ["-x", "c++-header"] if source.suffix == ".h" else ["-c"]
        return [*compiler, *headers, *language, str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path) -> list[str]:
        mac = self.platform == "darwin"
        shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
        linker = [nvcc()] if self.cuda else self.compiler or cxx()  # nvcc knows the path of CUDA's runtime
        folder = self._torch_folder() / "lib"
        # torch without CUDA has no libtorch_cuda to link; loading the library then fails with an explanation
        has_cuda = self.cuda and list(folder.glob("libtorch_cuda.*"))
        names = [*self.libraries, *(["torch_cuda"] if has_cuda else [])]
        libraries = [f"-L{folder}", *map("-l{}".format, names)]
        ldflags = map(_for_nvcc, self.ldflags) if self.cuda else self.ldflags
        gpus = self.gencode if is_relocatable(self.cuda_cflags) else ()  # nvcc links device code too, for these GPUs
        return [*linker, *gpus, *shared, *map(str, objects), *libraries, *ldflags, "-o", str(target)]

    def without_path(self, folder: Path) -> "Toolchain":
        """The same commands; a check that fails when the operator runs names its source without this folder."""
        flag = f"-fmacro-prefix-map={folder}{os.sep}="
        return replace(self, cflags=(*self.cflags, flag), cuda_cflags=(*self.cuda_cflags, "-Xcompiler", flag))

    def commands(self) -> list[list[str]]:
        """All that decides what a library holds but the sources: part of its key in the cache."""
        sources = [Path("source.cpp"), *([Path("source.cu")] if self.cuda else [])]
        target = Path("target")
        return [*(self.compile_command(source, target) for source in sources), self.link_command([], target)]

    def build(self, sources: Sequence[Path], folder: Path, target: Path) -> None:
        """Compile the sources in parallel, with object files in `folder`, and link them into `target`.

        A source that was compiled into `folder` before is compiled again only if it, one of its headers, the command
        or torch has changed. Object files that no longer belong to the library are deleted.
        """
        folder.mkdir(parents=True, exist_ok=True)
        header = self._write_header(self.precompiled, folder) if self.precompiled else None
        toolchain = replace(self, cflags=(*self.cflags, "-include", str(header))) if header else self
        objects = [folder / f"{source.name}-{toolchain._key(source)}.o" for source in sources]
        missing = [pair for pair in dict(zip(sources, objects)).items() if not pair[1].exists()]
        jobs = int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)  # MAX_JOBS: as for torch's own builds
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            precompilation = None
            if header and not (precompiled := header.with_suffix(".h.gch")).exists():
                precompilation = pool.submit(self._compile, header, precompiled)
            # All but the first wait for the precompiled header: a second processor would have no work meanwhile.
            waits = chain([None], repeat(precompilation))
            compilations = [pool.submit(toolchain._compile, *pair, wait) for pair, wait in zip(missing, waits)]
            try:
                for compilation in as_completed(filter(None, [precompilation, *compilations])):
                    compilation.result()
            except BuildError:
                pool.shutdown(cancel_futures=True)  # of several errors, the first
                raise
        for stale in set(folder.glob("*.o")) - set(objects):
            stale.unlink()
        _run(self.link_command(objects, target), folder, self.verbose)

    def _write_header(self, source: Path, folder: Path) -> Path:
        """The header with which every .cpp begins; its text is read where there is no compiled one that fits."""
        header = folder / f"precompiled-{self._key(source)}.h"
        if not header.exists():
            for stale in folder.glob("precompiled-*"):
                stale.unlink()
            header.write_text(f'#include "{source.resolve()}"\n')
        return header

    def _compile(self, source: Path, target: Path, after: Future[None] | None = None) -> None:
        if after:
            after.result()
        partial = target.with_suffix(".partial")  # an interrupted compilation leaves no object file
        _run(self.compile_command(source, partial), target.parent, self.verbose)
        os.replace(partial, target)

    def _key(self, source: Path) -> str:
        version = (self._torch_folder() / "version.py").read_text()
        return digest([source], (INCLUDE, *self.include), version, *self.compile_command(source, Path("target")))

    def _torch_folder(self) -> Path:
        return self.torch or torch_folder()


def _run(command: list[str], folder: Path, verbose: bool) -> None:
    """Run a compiler; of its output, an error shows the first error with its source line, then everything."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: no such compiler") from None
    if verbose:
        sys.stdout.write(f"{shlex.join(command)}\n{process.stdout}{process.stderr}")
    if process.returncode:
        output = (process.stderr or process.stdout).replace(f"{folder}{os.sep}", "")
        lines = output.splitlines()
        first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)), 0)
        full = f"Full output of {Path(command[0]).name}:"
        raise BuildError("\n".join([*lines[first : first + 3], "", full, output.strip()]))


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
        cflags=(*REGISTRATION, *_sequence(operation, "extra_cflags", extra_cflags)),
        cuda_cflags=(*REGISTRATION, *_sequence(operation, "extra_cuda_cflags", extra_cuda_cflags)),
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


def cxx() -> tuple[str, ...]:
    """Command of the C++ compiler. CXX may hold arguments: "ccache g++"."""
    command = shlex.split(os.environ.get("CXX", "")) or [shutil.which("c++") or ""]
    if not command[0]:
        raise BuildError("no C++ compiler: install g++ or clang++, or set the environment variable CXX")
    return tuple(command)


def nvcc() -> str:
    """Path of nvcc: in CUDA_HOME, on the path, or in the usual folder."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    usual = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    path = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else usual
    if not path:
        raise BuildError("no nvcc for the CUDA sources: install the CUDA toolkit, or set CUDA_HOME to its folder")
    return path


def is_relocatable(cuda_cflags: Sequence[str]) -> bool:
    """Whether nvcc leaves calls between .cu files to the linker, which then needs a step for device code."""
    flags = ("-rdc=true", "--relocatable-device-code=true", "-dc", "--device-c", "-dlto")
    return any(flag in flags for flag in cuda_cflags)


def _for_nvcc(flag: str) -> str:
    """A linker flag as users write it for the C++ compiler, for nvcc, which knows -l, -L, -X and files only."""
    if flag.startswith("-Wl,"):
        return f"-Xlinker={flag.removeprefix('-Wl,')}"
    known = flag.startswith(("-l", "-L", "-X")) or not flag.startswith("-")
    return flag if known else f"-Xcompiler={flag}"


def torch_folder() -> Path:
    """Folder of the installed torch."""
    torch = find_spec("torch")
    if not torch or not torch.origin:
        raise BuildError("torch is not installed: a native build needs its headers")
    return Path(torch.origin).parent

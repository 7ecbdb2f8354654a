"""Compile and link one shared library, and say where a source is wrong."""

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
from torchcommodity.opkit._build.flags import DEVICE, HOST, gencode


class BuildError(RuntimeError):
    """A source that does not compile or link; the message begins with the place and the line."""


@dataclass(frozen=True)
class Recipe:
    """Everything but the sources that decides what comes out of a build."""

    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()

    def compile_command(self, source: Path, target: Path) -> list[str]:
        headers = [f"-I{folder}" for folder in (INCLUDE, *self.include)]
        headers += [part for folder in _torch_headers() for part in ("-isystem", str(folder))]  # nvcc wants two words
        if source.suffix == ".cu":
            host = ["-Xcompiler", "-fPIC"]
            return [nvcc(), *DEVICE, *gencode(), *host, *self.flags, *headers, "-c", str(source), "-o", str(target)]
        return [cxx(), *HOST, "-fPIC", *self.flags, *headers, "-c", str(source), "-o", str(target)]

    def link_command(self, objects: Sequence[Path], target: Path, cuda: bool = False) -> list[str]:
        mac = sys.platform == "darwin"
        shared = ["-dynamiclib", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
        linker = nvcc() if cuda else cxx()  # nvcc knows where CUDA's runtime lies
        libraries = [f"-L{_torch_folder() / 'lib'}", *_libraries(cuda)]
        return [linker, *shared, *map(str, objects), *libraries, "-o", str(target)]

    def build(self, sources: Sequence[Path], folder: Path, target: Path) -> None:
        """Compile the sources, two or more at a time, into `folder`, and link them into `target`."""
        objects = [folder / f"{i}.o" for i in range(len(sources))]
        with ThreadPoolExecutor(max_workers=min(len(sources), os.cpu_count() or 1)) as pool:
            list(pool.map(lambda pair: _run(self.compile_command(*pair), folder), zip(sources, objects)))
        _run(self.link_command(objects, target, any(source.suffix == ".cu" for source in sources)), folder)


def cxx() -> str:
    found = os.environ.get("CXX") or shutil.which("c++")
    if not found:
        raise BuildError("no C++ compiler: install g++ or clang++, or name one in the environment variable CXX")
    return found


def nvcc() -> str:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    found = shutil.which("nvcc", path=str(Path(home) / "bin")) if home else shutil.which("nvcc")
    if not found:
        raise BuildError("no nvcc for the CUDA sources: install the CUDA toolkit, or set CUDA_HOME to its folder")
    return found


def _torch_folder() -> Path:
    import torch

    return Path(torch.__file__).parent


def _torch_headers() -> list[Path]:
    include = _torch_folder() / "include"
    return [include, include / "torch/csrc/api/include"]


def _libraries(cuda: bool) -> list[str]:
    built_for_cuda = cuda and list((_torch_folder() / "lib").glob("libtorch_cuda.*"))  # else it is refused when loaded
    return [f"-l{name}" for name in ("torch", "torch_cpu", "c10", *(["torch_cuda"] if built_for_cuda else []))]


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]}: no such compiler") from None
    if done.returncode:
        raise BuildError(_in_words((done.stderr or done.stdout).replace(f"{folder}{os.sep}", ""), command[0]))


def _in_words(output: str, compiler: str) -> str:
    """The first error, with the source line that the compiler shows below it, before everything that it said."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b|undefined reference", line)), 0)
    return "\n".join([*lines[first : first + 3], "", f"The whole output of {Path(compiler).name}:", output.strip()])

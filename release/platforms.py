"""The platforms of the wheels: how zig's clang builds the native library for each, and against which libtorch.

The library is linked with a stub of libtorch_cpu that has exactly the functions of the stable ABI in the oldest torch
that the package takes. So no torch of another platform is downloaded, and a function of a newer torch is an error of
the linker. The list of these functions is that of torch-abi-audit, which reads it from torch's own sources.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_abi_audit.torch_versions import stable_shim_versions

OLDEST_TORCH = (2, 10, 0)  # as in pyproject.toml and in STABLE_ABI of opkit/torch_opkit/_build/compiler.py


@dataclass(frozen=True)
class Platform:
    """A platform: the tag of its wheel, and the target of the compiler with the oldest version of its C library."""

    tag: str
    target: str
    # folder of a library in the package -> flags of the compiler. clang cannot compile a template for several
    # instruction sets in one library, as g++ does for a local build; torch_opkit chooses when the package is imported
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"": ()})

    @property
    def system(self) -> str:
        return "darwin" if "macos" in self.target else "linux"

    def compiler(self, language: str) -> tuple[str, ...]:
        return sys.executable, "-m", "ziglang", language, "-target", self.target

    def build(self, library: Any, folder: Path, torch: Path) -> dict[str, Path]:
        """Build the libraries in `folder`; returns their paths by their names in the package.

        Args:
            library: the module `native.library` of the sources to build.
            folder: folder of the object files.
            torch: folder of an installed torch, for its headers.
        """
        stub, ldflags = self._write_torch(torch, folder / "torch"), self._ldflags(folder)
        libraries = dict[str, Path]()
        for name, flags in self.libraries.items():
            settings = {"compiler": self.compiler("c++"), "cflags": flags, "ldflags": ldflags, "platform": self.system}
            path = libraries[f"{name}/{library.NAME}".lstrip("/")] = folder / (name or "default") / library.NAME
            library.build_library(path, path.parent / "objects", torch=stub, **settings)
        return libraries

    def _ldflags(self, folder: Path) -> tuple[str, ...]:
        every = "-O3", "-Wl,-s"  # without -O3 zig adds a library that reports undefined behavior
        if self.system == "darwin":
            return *every, "-Wl,-install_name,@rpath/_C.so"  # otherwise the path where it was built
        exports = folder / "exports"  # none: they could stand in for symbols of another C++ library
        exports.write_text("{ local: *; };")
        return *every, "-Wl,-z,defs", f"-Wl,--version-script={exports}"

    def _write_torch(self, torch: Path, folder: Path) -> Path:
        """Write a folder like that of an installed torch: headers and a stub of libtorch_cpu."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "lib").mkdir(parents=True)
        (folder / "include").symlink_to(torch / "include", target_is_directory=True)
        shutil.copy(torch / "version.py", folder)
        suffix, name = (
            ("dylib", "-Wl,-install_name,@rpath/libtorch_cpu.dylib")
            if self.system == "darwin"
            else ("so", "-Wl,-soname,libtorch_cpu.so")
        )
        source = folder / "stub.c"
        source.write_text("".join(f"void {function}(void) {{}}\n" for function in stable_functions()))
        stub = folder / "lib" / f"libtorch_cpu.{suffix}"
        command = [*self.compiler("cc"), "-O3", "-nostdlib", "-shared", name, str(source), "-o", str(stub)]
        subprocess.run(command, check=True)
        for other in ("torch", "c10"):  # the command of a local build names them too
            shutil.copy(stub, stub.with_name(f"lib{other}.{suffix}"))
        return folder


def stable_functions() -> list[str]:
    """Names of the functions of the stable ABI in the oldest torch."""
    return sorted(name for name, version in stable_shim_versions().items() if version <= OLDEST_TORCH)


PLATFORMS = (
    Platform(
        "manylinux_2_28_x86_64",
        "x86_64-linux-gnu.2.28",
        {"": (), "x86-64-v3": ("-march=x86_64_v3",)},
    ),
    Platform("manylinux_2_28_aarch64", "aarch64-linux-gnu.2.28"),
    Platform("macosx_11_0_arm64", "aarch64-macos.11.0"),
)

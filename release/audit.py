"""Checks of a built library: what it needs from the system and torch, and that it names no folder of its builder."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import lief
from platforms import Platform, stable_functions

CPP_OR_PYTHON = re.compile(r"_Z|_?Py[A-Z_]")  # C++ symbols depend on a compiler's library, Python's on a version
SYSTEM = re.compile(r"lib(c|m|dl|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d|/usr/lib/libSystem\.B\.dylib")
TORCH = re.compile(r"(@rpath/)?libtorch_cpu\.(so|dylib)")


def check_library(path: Path, platform: Platform) -> None:
    """Raise a RuntimeError that lists every fault."""
    binary = lief.parse(str(path))
    if not isinstance(binary, lief.ELF.Binary | lief.MachO.Binary):
        raise RuntimeError(f"{path} of {platform.tag} is no library for Linux or macOS")
    faults = [*_symbol_faults(binary), *_dependency_faults(binary), *_folder_faults(path)]
    if faults:
        raise RuntimeError(f"{path.name} of {platform.tag} would not run everywhere: " + "; ".join(faults))


def undefined_symbols(binary: lief.ELF.Binary | lief.MachO.Binary) -> list[str]:
    """Names of the symbols that the library takes from others, as in C."""
    if isinstance(binary, lief.MachO.Binary):
        return sorted({str(symbol.name).removeprefix("_") for symbol in binary.imported_symbols})
    # not lief's imported_symbols, which lacks symbols without a type
    undefined = (str(symbol.name) for symbol in binary.dynamic_symbols if symbol.shndx == 0)
    return sorted({name.partition("@")[0] for name in undefined} - {""})  # without the version


def _symbol_faults(binary: lief.ELF.Binary | lief.MachO.Binary) -> Iterator[str]:
    stable = set(stable_functions())
    for name in undefined_symbols(binary):
        if CPP_OR_PYTHON.match(name):
            yield f"it needs the C++ or Python symbol {name}"
        elif name.startswith(("aoti_torch_", "torch_")) and name not in stable:
            yield f"it needs {name}, which the oldest torch does not have"
    if isinstance(binary, lief.MachO.Binary):  # on Linux the linker refuses what no library has
        for binding in binary.bindings:
            weak = binding.binding_class == lief.MachO.DyldBindingInfo.CLASS.WEAK  # defined here too
            if binding.symbol and not binding.library and not weak:
                yield f"no library has {binding.symbol.name}"


def _dependency_faults(binary: lief.Binary) -> Iterator[str]:
    names = [str(getattr(library, "name", library)) for library in binary.libraries]
    names = [name for name in names if name != "@rpath/_C.so"]  # a library of macOS lists its own name
    if not any(TORCH.fullmatch(name) for name in names):
        yield "it does not load libtorch_cpu"
    for name in names:
        if not TORCH.fullmatch(name) and not SYSTEM.fullmatch(name):
            yield f"it loads {name}"
    if isinstance(binary, lief.MachO.Binary):
        yield from (f"it has the run path {command.path}" for command in binary.rpaths)
    else:
        tags = lief.ELF.DynamicEntry.TAG
        yield from (
            f"it has the run path {entry.runpath if entry.tag == tags.RUNPATH else entry.rpath}"
            for entry in binary.dynamic_entries
            if entry.tag in (tags.RPATH, tags.RUNPATH)
        )


def _folder_faults(path: Path) -> Iterator[str]:
    content = path.read_bytes()
    for folder in {Path(__file__).resolve().parent.parent, Path(sys.prefix).resolve(), Path.home()}:
        if f"{folder}/".encode() in content:
            yield f"it names the folder {folder}"

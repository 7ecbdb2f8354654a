"""Native libraries: load each once, and explain how to fix one that does not load."""

import ctypes
import os
import re
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch


@dataclass(frozen=True)
class Native:
    """A native library: its `path`, or the `reason` why it is not loaded. True if it is loaded."""

    path: Path | None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.path is not None


_NATIVE: dict[Path, Native] = {}
_LIBRARIES: list[Path] = []  # in the order in which they were loaded


def load_native_library(folder: str | Path, stem: str = "_C") -> Native:
    """Load `stem*.so` from `folder`; of several, the newest. If the processor has AVX2, `folder/x86-64-v3` comes first.

    Call it before creating the records of the library's operators: the library declares their schemas. With
    `MINE_NATIVE=0` in the environment no library is loaded from a folder `mine`, and its operators run through their
    references.

    Args:
        folder: folder of the library.
        stem: start of its file name.

    Returns:
        A `Native`: true if the library is loaded, otherwise false with the reason, which is also issued as a warning.

    Raises:
        ValueError: the library registers an operator wrongly: its schema has a mistake, or other types than the C++
            function, or it exists already.
    """
    folder = Path(folder)
    if folder not in _NATIVE:
        _NATIVE[folder] = _load(folder, stem)
        if not _NATIVE[folder] and not _disabled(folder):
            reason = _NATIVE[folder].reason
            warnings.warn(f"operators run through their references, many times slower: {reason}", stacklevel=2)
    return _NATIVE[folder]


def _disabled(folder: Path) -> str:
    """The setting that keeps the library of this folder from being loaded, or ""."""
    variable = f"{folder.name.upper()}_NATIVE"
    return f"{variable}=0" if os.environ.get(variable) == "0" else ""


def _load(folder: Path, stem: str) -> Native:
    if setting := _disabled(folder):
        return Native(None, f"disabled by {setting}")
    avx2 = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    places = [*([folder / "x86-64-v3"] if avx2 else []), folder]
    libraries = ([*place.glob(f"{stem}*.so"), *place.glob(f"{stem}*.pyd")] for place in places)
    newest = next((max(paths, key=lambda path: path.stat().st_mtime) for paths in libraries if paths), None)
    if not newest:
        command = "pip install -e . --no-build-isolation"
        return Native(None, f"no {stem}*.so in {folder}; build it with a C++ compiler, in the sources: {command}")
    try:
        load_library(newest)
    except OSError as error:
        return Native(None, str(error))
    return Native(newest)


def load_library(path: Path) -> None:
    """`torch.ops.load_library`, with an error that explains how to fix a library built for another torch."""
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        fix = _explain(str(error.__cause__ or error))
        raise OSError(f"{path.name} does not load with torch {torch.__version__}: {fix}") from error
    _check_registrations(path)
    _LIBRARIES.append(path)


def _check_registrations(path: Path) -> None:
    """Refuse a library with a wrong registration, and undo all that it registered: see opkit_registration.h."""
    library = ctypes.CDLL(str(path))  # which is loaded already
    if not hasattr(library, "opkit_registrations"):  # built without that header
        return
    library.opkit_registrations.restype = ctypes.c_char_p
    lines = [line.split("\t") for line in library.opkit_registrations().decode().splitlines()]
    if problems := [problem for line in lines if (problem := _find_problem(*line))]:
        library.opkit_unregister()
        raise ValueError("\n".join(problems))
    declared = {f"{namespace}::{_operator(text)}" for kind, namespace, text, _ in lines if kind == "def"}
    kernels = {f"{namespace}::{_operator(text)}" for kind, namespace, text, _ in lines if kind == "impl"}
    for name in sorted(kernels - declared) if declared else ():
        expected = f"m.impl names {name}, which no m.def declares; this library declares {', '.join(sorted(declared))}"
        warnings.warn(f"{path.name}: {expected}", stacklevel=4)


def _operator(text: str) -> str:
    """Name of an operator in its schema."""
    return text.partition("(")[0].strip()


def _find_problem(kind: str, namespace: str, text: str, result: str) -> str:
    """What is wrong with one registration: of a namespace, or of the operator that `text` declares or names."""
    from torch_opkit import _torch_private as private

    name = f"{namespace}::{_operator(text)}"
    if kind == "def" and result == "failed":
        if reason := find_schema_mistake(text):
            return f"{name}: {reason}"
        return (
            f"{name}: an operator must be declared once; got a second declaration, "
            "beside that of another library or of an Op: load a library before the Op, or take another namespace"
        )
    if kind == "impl" and result == "failed":
        return f"{name}: m.impl must name an operator of the namespace {namespace}; got {text!r}"
    if result == "failed":
        need = "a dispatch key, such as CPU or CUDA" if kind == "IMPL" else "a namespace that no other block declares"
        macro = {"IMPL": "STABLE_TORCH_LIBRARY_IMPL", "DEF": "STABLE_TORCH_LIBRARY"}.get(kind, kind)
        return f"{macro}({namespace}): the block must have {need}; got {text or namespace}"
    if kind == "impl" and (schema := private.find_schema(name)):
        types = [", ".join(str(value.type) for value in values) for values in (schema.arguments, schema.returns)]
        expected = " -> ".join(types).replace("SymInt", "int")
        if not re.fullmatch(re.escape(result).replace(r"\?", ".*"), expected):
            return f"{name}: the C++ function must have the types of its schema, {expected}; got {result}"
    return ""


def find_schema_mistake(schema: str) -> str:
    """What is wrong with the schema "name(arguments) -> results", in PyTorch's words; "" if it is right."""
    from torch_opkit import _torch_private as private

    try:
        private.parse_schema(schema)
    except RuntimeError as error:
        return f'the schema must be as in "f(Tensor x, int k=1) -> Tensor"; got "{schema}": {str(error).strip()}'
    return ""


def _explain(error: str) -> str:
    """Explain an error of the dynamic linker, with the fix."""
    missing = re.search(r"undefined symbol: (\S+)", error)
    if missing and "cuda" in missing[1].lower():
        return (
            f"it was built for CUDA, this torch was not (no {missing[1]}); rebuild it here, or install torch for CUDA"
        )
    if missing and missing[1].startswith(("aoti_torch_", "torch_")):
        return f"it was built for a newer torch (no {missing[1]}); upgrade torch, or rebuild it here"
    if missing:
        return f"it was built against another torch's C++ library (no {missing[1]}); rebuild it on the stable ABI"
    return f"{error}; rebuild it here"


def native_libraries() -> tuple[Path, ...]:
    """Paths of the native libraries that this process has loaded, if the files still exist."""
    return tuple(path for path in _LIBRARIES if path.exists())


def has_kernel(name: str, device: str | torch.device) -> bool:
    """Whether a native library has a kernel of the operator `namespace::name` for this kind of device."""
    device = torch.device(device) if isinstance(device, str) else device
    return _has_kernel(name, device.type)


@cache
def _has_kernel(name: str, device: str) -> bool:
    namespace, _, operator = name.partition("::")
    declared = device in ("cpu", "cuda") and hasattr(getattr(torch.ops, namespace), operator)
    return declared and torch._C._dispatch_has_kernel_for_dispatch_key(name, device.upper())

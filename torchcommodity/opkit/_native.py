"""The compiled kernels: load a library once, and say why where it cannot be."""

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Native:
    """What became of a native library: `path` if it was loaded, else `reason` why not."""

    path: Path | None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.path is not None


_LOADED: dict[Path, Native] = {}
_LIBRARIES: list[Path] = []  # in the order in which they were loaded


def load_native_library(folder: Path, stem: str = "_C") -> Native:
    """Load `stem*.so` of `folder`, before the records of its operators are made: the library owns their schemas.

    `TORCHCOMMODITY_NATIVE=0` in the environment leaves it out, and every operator runs through its reference.
    """
    if folder not in _LOADED:
        _LOADED[folder] = _load(folder, stem)
        if not _LOADED[folder] and _wanted():
            reason = _LOADED[folder].reason
            warnings.warn(f"operators run through their references, many times slower: {reason}", stacklevel=2)
    return _LOADED[folder]


def _wanted() -> bool:
    return os.environ.get("TORCHCOMMODITY_NATIVE") != "0"


def _load(folder: Path, stem: str) -> Native:
    if not _wanted():
        return Native(None, "switched off by TORCHCOMMODITY_NATIVE=0")
    found = sorted([*folder.glob(f"{stem}*.so"), *folder.glob(f"{stem}*.pyd")])
    if not found:
        return Native(None, f"no {stem}*.so in {folder}; build it with: pip install -e . --no-build-isolation")
    try:
        load_library(found[0])
    except OSError as error:
        return Native(None, str(error))
    return Native(found[0])


def load_library(path: Path) -> None:
    """`torch.ops.load_library`, which says what to do where the library was built for another torch or machine."""
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        remedy = _remedy(str(error.__cause__ or error))
        raise OSError(f"{path.name} does not load with torch {torch.__version__}: {remedy}") from error
    _LIBRARIES.append(path)


def _remedy(error: str) -> str:
    """In place of "undefined symbol", what it means."""
    missing = re.search(r"undefined symbol: (\S+)", error)
    if missing and "cuda" in missing[1].lower():
        return f"it was built for CUDA and this torch has none ({missing[1]}); build it here, or install torch for CUDA"
    if missing and missing[1].startswith(("aoti_torch_", "torch_")):
        return f"it was built for a newer torch ({missing[1]} is absent); upgrade torch, or build it again here"
    if missing:
        return f"it was built against another torch's C++ library ({missing[1]}); build it again, on the stable ABI"
    return f"{error}; build it again here"


def native_libraries() -> tuple[Path, ...]:
    """The native libraries that this process has loaded, by whatever build, and that are still there."""
    return tuple(path for path in _LIBRARIES if path.exists())

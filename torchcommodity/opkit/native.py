"""The compiled kernels: load a library once, and say why where it cannot be."""

import os
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


def load(folder: Path, stem: str = "_C") -> Native:
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
        torch.ops.load_library(str(found[0]))
    except OSError as error:
        return Native(None, f"{found[0].name} does not load with torch {torch.__version__} ({error}); build it again")
    return Native(found[0])


def libraries() -> tuple[Path, ...]:
    """The native libraries that this process has loaded."""
    return tuple(native.path for native in _LOADED.values() if native.path)

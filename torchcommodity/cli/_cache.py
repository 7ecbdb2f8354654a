"""What takes long is kept, by data, settings, seed and code: a fitted forecaster, the evidence of a walk-forward."""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

import torchcommodity
from torchcommodity.data import Panel, default_cache, write_atomic
from torchcommodity.forecast import Forecaster
from torchcommodity.report import Evidence
from torchcommodity.training import FitConfig, to_toml

T = TypeVar("T")


def data_hash(panel: Panel) -> str:
    """sha256 of the numbers, dates, symbols, contracts and curve; where they came from does not count."""
    digest = hashlib.sha256(json.dumps([panel.symbols, panel.contracts, *map(str, panel.dates)]).encode())
    for numbers in (panel.values, panel.curve):
        if numbers is not None:
            digest.update(numbers.plain().numpy().tobytes())
    return digest.hexdigest()


def key(panel: Panel, config: FitConfig, seed: int, what: str) -> str:
    """Of everything that the result depends on."""
    parts = [data_hash(panel), to_toml(config), seed, what, torch.__version__, code_hash()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@cache
def code_hash() -> str:
    """sha256 of the package's own sources and native library: a changed version trains anew."""
    package = Path(torchcommodity.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in {".py", ".so"}):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()


def kept_forecaster(name: str, make: Callable[[], Forecaster]) -> tuple[Forecaster, bool]:
    """The forecaster of this key and whether it was kept; made and kept if not."""
    return _kept(_place(f"{name}.safetensors"), Forecaster.load, make, Forecaster.to_bytes)


def kept_evidence(name: str, make: Callable[[], Evidence]) -> tuple[Evidence, bool]:
    """The evidence of this key and whether it was kept; made and kept if not."""

    def read(path: Path) -> Evidence:
        return Evidence.from_json(path.read_text("utf-8"))

    return _kept(_place(f"{name}.json"), read, make, lambda found: found.to_json().encode())


def _place(name: str) -> Path:
    return default_cache() / "models" / name


def _kept(
    path: Path, read: Callable[[Path], T], make: Callable[[], T], content: Callable[[T], bytes]
) -> tuple[T, bool]:
    try:
        return read(path), True
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        pass  # absent or damaged: it is made anew, which gives the same
    made = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content(made))
    except OSError:
        pass  # a cache that cannot be written only costs time the next time
    return made, False

"""Disk cache of fitted forecasters and backtest summaries, keyed by data, settings, seed and code."""

import hashlib
import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch

import torchcommodity
from torchcommodity.data import Panel, cache_dir, write_atomic
from torchcommodity.training import FitConfig, to_toml

MAX_FILES = 200
MAX_BYTES = 500 * 2**20
KINDS = {".safetensors": "forecaster", ".json": "backtest"}

T = TypeVar("T")


class CacheEntry(NamedTuple):
    """One cached result."""

    path: Path
    kind: str  # "forecaster" or "backtest"
    size: int  # bytes
    last_used: datetime  # UTC


def cache_entries() -> list[CacheEntry]:
    """List the cached results in `data.cache_dir() / "models"`, least recently used first."""
    entries = []
    for path in _folder().glob("*"):
        if path.suffix in KINDS:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # removed by another process
            used = datetime.fromtimestamp(status.st_mtime, timezone.utc)
            entries.append(CacheEntry(path, KINDS[path.suffix], status.st_size, used))
    return sorted(entries, key=lambda entry: (entry.last_used, entry.path))


def clear_cache() -> int:
    """Remove every cached result; return how many were removed. Cached downloads are kept."""
    return _remove(cache_entries())


def load_or_compute(
    name: str,
    load: Callable[[Path], T],
    compute: Callable[[], T],
    dump: Callable[[T], bytes],
) -> tuple[T, bool]:
    """Return the cached result of that file name and True, or compute and store it and return False.

    A missing or damaged file is computed again. A cache that cannot be written is ignored. After each write the least
    recently used results beyond `MAX_FILES` files or `MAX_BYTES` bytes are removed.
    """
    path = _folder() / name
    try:
        result = load(path)
        os.utime(path)  # time of last use
        return result, True
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        pass
    result = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, dump(result))
        _remove(_excess(cache_entries()))
    except OSError:
        pass
    return result, False


def cache_key(panel: Panel, config: FitConfig, seed: int, purpose: str) -> str:
    """Hash everything that a result depends on: prices, settings, seed, purpose, torch version and code."""
    parts = [data_hash(panel), to_toml(config), seed, purpose, torch.__version__, code_hash()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def data_hash(panel: Panel) -> str:
    """sha256 of prices, dates, symbols, contracts, averages, curve and deliveries; provenance is ignored."""
    averages = [panel.averages] if any(panel.averages) else []
    digest = hashlib.sha256(json.dumps([panel.symbols, panel.contracts, *averages, *map(str, panel.dates)]).encode())
    for values in (panel.values, panel.curve):
        if values is not None:
            digest.update(values.plain().numpy().tobytes())
    if panel.deliveries is not None:
        digest.update(panel.deliveries.tobytes())
    return digest.hexdigest()


@cache
def code_hash() -> str:
    """sha256 of the sources and the native library of this package: another version does not share its cache."""
    package = Path(torchcommodity.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in {".py", ".so"}):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()


def _folder() -> Path:
    return cache_dir() / "models"


def _excess(entries: list[CacheEntry]) -> list[CacheEntry]:
    """Least recently used entries beyond the limits; the latest entry is always kept."""
    count, size = len(entries), sum(entry.size for entry in entries)
    excess = []
    for entry in entries[:-1]:
        if count <= MAX_FILES and size <= MAX_BYTES:
            break
        excess.append(entry)
        count, size = count - 1, size - entry.size
    return excess


def _remove(entries: list[CacheEntry]) -> int:
    for entry in entries:
        entry.path.unlink(missing_ok=True)
    return len(entries)

"""Where this library keeps its files: the cache and the store of prices."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$TORCHCOMMODITY_CACHE`, or `torchcommodity` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`)."""
    return _folder("TORCHCOMMODITY_CACHE", "XDG_CACHE_HOME", ".cache")


def store_path() -> Path:
    """`$TORCHCOMMODITY_STORE`, or `torchcommodity/prices.duckdb` in the user's data folder (`$XDG_DATA_HOME`)."""
    if path := os.environ.get("TORCHCOMMODITY_STORE"):
        return Path(path)
    return _folder("", "XDG_DATA_HOME", ".local/share") / "prices.duckdb"


def _folder(variable: str, base: str, below_home: str) -> Path:
    if path := os.environ.get(variable):
        return Path(path)
    return Path(os.environ.get(base) or Path.home() / below_home) / "torchcommodity"

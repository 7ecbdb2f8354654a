"""Locations of the cache and of the price store."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Folder of cached files.

    It is `$TORCHCOMMODITY_CACHE`, or `torchcommodity` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`).
    """
    return _folder("TORCHCOMMODITY_CACHE", "XDG_CACHE_HOME", ".cache")


def store_path() -> Path:
    """Default file of the price store.

    It is `$TORCHCOMMODITY_STORE`, or `torchcommodity/prices.duckdb` in the user's data folder (`$XDG_DATA_HOME`,
    `~/.local/share`).
    """
    if path := os.environ.get("TORCHCOMMODITY_STORE"):
        return Path(path)
    return _folder("", "XDG_DATA_HOME", ".local/share") / "prices.duckdb"


def _folder(variable: str, base: str, below_home: str) -> Path:
    if path := os.environ.get(variable):
        return Path(path)
    return Path(os.environ.get(base) or Path.home() / below_home) / "torchcommodity"

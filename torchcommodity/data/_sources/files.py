"""Files that this library writes: the folders of cache and store, and how no reader ever sees one half-written."""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
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


def write_atomic(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a temporary file in the same folder, flush it to disk, and rename it to `path`.

    A reader sees the old file or the new one, never part of one; so does the next process after a power failure.

    Raises:
        OSError: the file cannot be written; the old one is unchanged.

    >>> write_atomic(getfixture("tmp_path") / "prices.csv", b"date,WTI").read_bytes()
    b'date,WTI'
    """
    path = Path(path)
    return write_files_atomic(path.parent, {path.name: content})[0]


def write_files_atomic(folder: str | os.PathLike[str], files: Mapping[str, bytes]) -> list[Path]:
    """Write several files to one folder as `write_atomic` does: all temporary files first, then all renames.

    An error before the first rename leaves every old file unchanged.

    Raises:
        OSError: a file cannot be written.

    >>> [path.name for path in write_files_atomic(getfixture("tmp_path"), {"a.csv": b"1", "b.csv": b"2"})]
    ['a.csv', 'b.csv']
    """
    folder, token = Path(folder), secrets.token_hex(4)
    partial = {folder / name: folder / f".{name}.{token}.part" for name in files}
    try:
        for path, content in zip(partial.values(), files.values()):
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, part in partial.items():
            os.replace(part, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(
            f"{folder}: expected a folder where {', '.join(files)} can be written; got {reason}"
        ) from None
    finally:
        for part in partial.values():
            with suppress(OSError):
                part.unlink()
    with suppress(OSError):  # a file system that cannot flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the renames
        finally:
            os.close(handle)
    return list(partial)

"""Files that this library writes: the folders of cache and store, and how no reader ever sees one half-written."""

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from torchcommodity.data._sources.outputs import check_output


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

    A reader sees the old file or the new one, never part of one; so does the next process after a power failure. A
    symbolic link is kept: the file that it points to is replaced. The new file has the mode of the one that it
    replaces, and its owner where the system allows it.

    Raises:
        ValueError: the path is an input, see `protect_inputs`, or no regular file.
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
        ValueError: a path is an input, see `protect_inputs`, or no regular file.
        OSError: a file cannot be written.

    >>> [path.name for path in write_files_atomic(getfixture("tmp_path"), {"a.csv": b"1", "b.csv": b"2"})]
    ['a.csv', 'b.csv']
    """
    folder, token = Path(folder), secrets.token_hex(4)
    for name in files:
        check_output(folder / name)
        if (path := folder / name).exists() and not path.is_file() and not path.is_dir():
            raise ValueError(f"{path}: expected a regular file to replace; got a device or pipe")
    targets = [Path(os.path.realpath(folder / name)) for name in files]  # behind symbolic links
    partial = {target: target.parent / f".{target.name[:200]}.{token}.part" for target in targets}
    try:
        for (target, part), content in zip(partial.items(), files.values()):
            with part.open("xb") as file:
                _keep_owner(target, file.fileno())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for target, part in partial.items():
            os.replace(part, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(
            f"{folder}: expected a folder where {', '.join(files)} can be written; got {reason}"
        ) from None
    finally:
        for part in partial.values():
            with suppress(OSError):
                part.unlink()
    for parent in {target.parent for target in targets}:
        with suppress(OSError):  # a file system that cannot flush a folder
            handle = os.open(parent, os.O_RDONLY)
            try:
                os.fsync(handle)  # the renames
            finally:
                os.close(handle)
    return [folder / name for name in files]


def _keep_owner(target: Path, handle: int) -> None:
    """Give a new file the owner, group and mode of the one that it will replace, if there is one."""
    with suppress(OSError):  # there is none, or another user's file in a shared folder
        status = target.stat()
        os.fchmod(handle, stat.S_IMODE(status.st_mode) & 0o777)  # before anything is written
        if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, status.st_uid, status.st_gid)

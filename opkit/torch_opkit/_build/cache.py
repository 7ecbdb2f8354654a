"""Cache of built libraries, keyed by a hash of everything they are built from. Safe for concurrent processes."""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

INCLUDED = re.compile(rb"""^\s*#\s*include\s*["<]([^">]+)[">]""", re.MULTILINE)


def cache_folder(build_directory: str | Path | None = None) -> Path:
    """Folder of the built libraries: the argument, TORCH_OPKIT_CACHE, or the user's cache folder."""
    override = build_directory or os.environ.get("TORCH_OPKIT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(override).expanduser().resolve() if override else base / "torch_opkit"


def digest(sources: Sequence[Path], include: Sequence[Path], *texts: str) -> str:
    """Hash of the sources, of the texts (settings and source text), and of the headers in `include` that both include."""
    content = hashlib.sha256("\0".join(texts).encode())
    files, queue = set[Path](), [*sources, *(path for text in texts for path in _headers(text.encode(), include))]
    while queue:
        path = queue.pop(0)
        if path not in files:
            files.add(path)
            text = path.read_bytes()
            content.update(path.name.encode() + b"\0" + text + b"\0")
            queue += _headers(text, (path.parent, *include))
    return content.hexdigest()[:16]


def _headers(content: bytes, folders: Sequence[Path]) -> list[Path]:
    """The headers that the content includes, each from the first folder that has it."""
    names = [name.decode() for name in INCLUDED.findall(content)]
    matches = [[folder / name for folder in folders if (folder / name).is_file()] for name in names]
    return [paths[0].resolve() for paths in matches if paths]


def get_or_build(folder: Path, name: str, key: str, build: Callable[[Path, Path], None]) -> Path:
    """Path of the library with this key, built by `build(temporary folder, target)` if it is not in `folder`.

    The library is built in a temporary folder and then renamed, so that an interrupted build leaves no partial library.
    A file lock keeps other processes from building the same library; it ends with the process that holds it.
    """
    library = folder / key / f"{name}{'.dylib' if sys.platform == 'darwin' else '.so'}"
    library.parent.mkdir(parents=True, exist_ok=True)
    _check_owner(folder)
    _check_owner(library.parent)
    if library.exists():
        _check_owner(library)
        return library
    with _locked(library.parent / "lock"):
        if not library.exists():
            temporary = Path(tempfile.mkdtemp(prefix="building-", dir=library.parent))
            try:
                build(temporary, temporary / library.name)
                os.replace(temporary / library.name, library)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return library


def _check_owner(path: Path) -> None:
    """A library is machine code: who may write to it, or to its folder, would run their own in this process."""
    info = path.stat()
    writable = info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX  # sticky: nobody replaces files of others
    if hasattr(os, "getuid") and (info.st_uid not in {os.getuid(), 0} or writable):
        raise PermissionError(
            f"{path}: the cache of native libraries must be yours, and not writable by others; got owner {info.st_uid}, "
            f"mode {stat.S_IMODE(info.st_mode):o}; remove it, or set TORCH_OPKIT_CACHE to a folder of your own"
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: two processes may both build; the rename is atomic all the same
        yield
        return
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""Cache of built libraries, keyed by a hash of everything they are built from. Safe for concurrent processes."""

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

QUOTED_INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def cache_folder() -> Path:
    """Folder of the built libraries: TORCHCOMMODITY_CACHE, or the user's cache folder."""
    override = os.environ.get("TORCHCOMMODITY_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(override) if override else base / "torchcommodity" / "native"


def digest(sources: Sequence[Path], include: Sequence[Path], *settings: str) -> str:
    """Hash of the sources, the headers that they include in quotes, and the settings of the build."""
    content = hashlib.sha256("\0".join(settings).encode())
    for path in _with_headers(sources, include):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()[:16]


def _with_headers(sources: Sequence[Path], include: Sequence[Path]) -> list[Path]:
    files, queue = list[Path](), list(sources)
    while queue:
        path = queue.pop(0)
        if path in files:
            continue
        files.append(path)
        for name in QUOTED_INCLUDE.findall(path.read_bytes()):
            candidates = [base / name.decode() for base in (path.parent, *include)]
            queue += [candidate.resolve() for candidate in candidates if candidate.is_file()][:1]
    return files


def get_or_build(name: str, key: str, build: Callable[[Path, Path], None]) -> Path:
    """Path of the library with this key, built by `build(temporary folder, target)` if it is not in the cache.

    The library is built in a temporary folder and then renamed, so that an interrupted build leaves no partial library.
    A file lock keeps other processes from building the same library; it ends with the process that holds it.
    """
    library = cache_folder() / key / f"{name}{'.dylib' if sys.platform == 'darwin' else '.so'}"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    with _locked(library.parent / "lock"):
        if not library.exists():
            temporary = Path(tempfile.mkdtemp(prefix="building-", dir=library.parent))
            try:
                build(temporary, temporary / library.name)
                os.replace(temporary / library.name, library)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return library


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

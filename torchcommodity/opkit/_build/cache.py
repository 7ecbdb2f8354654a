"""Libraries that were built before, found by what they are made of. Any number of processes may ask at once."""

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

QUOTED = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def folder() -> Path:
    """Where libraries are kept: TORCHCOMMODITY_CACHE, or the user's cache folder."""
    named = os.environ.get("TORCHCOMMODITY_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "torchcommodity" / "native"


def digest(sources: Sequence[Path], include: Sequence[Path], *settings: str) -> str:
    """A hash over the sources, the headers that they quote, and everything else that decides the outcome."""
    content = hashlib.sha256("\0".join(settings).encode())
    for path in _with_headers(sources, include):
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()[:16]


def _with_headers(sources: Sequence[Path], include: Sequence[Path]) -> list[Path]:
    found, left = list[Path](), list(sources)
    while left:
        path = left.pop(0)
        if path in found:
            continue
        found.append(path)
        for name in QUOTED.findall(path.read_bytes()):
            candidates = [base / name.decode() for base in (path.parent, *include)]
            left += [candidate.resolve() for candidate in candidates if candidate.is_file()][:1]
    return found


def kept(name: str, key: str, build: Callable[[Path, Path], None]) -> Path:
    """The library of this key; built, if it is not there, by `build(workplace, target)`.

    It is built in a folder of its own and moved into place whole: who is interrupted leaves nothing that another
    process could load. A lock keeps others from building the same meanwhile, and ends with the process that holds it.
    """
    library = folder() / key / f"{name}{'.dylib' if sys.platform == 'darwin' else '.so'}"
    if library.exists():
        return library
    library.parent.mkdir(parents=True, exist_ok=True)
    with _alone(library.parent / "lock"):
        if not library.exists():
            workplace = Path(tempfile.mkdtemp(prefix="building-", dir=library.parent))
            try:
                build(workplace, workplace / library.name)
                os.replace(workplace / library.name, library)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
    return library


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: two processes may both build; the move into place is whole all the same
        yield
        return
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

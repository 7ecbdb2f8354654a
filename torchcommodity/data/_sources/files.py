"""Files: the tables that a source names, folders of cache and store, outputs that are whole and replace no input."""

import glob
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from torchcommodity._extras import extra

if TYPE_CHECKING:
    import duckdb

_NAME = re.compile(
    r"(?P<file>.+\.(?:(?P<duckdb>duckdb|ddb|db)|sqlite|sqlite3|xlsx?|xlsm)):(?P<table>[^:/\\]+)", re.IGNORECASE
)
NOT_FILES = re.compile(r"(store|fred|eia):|\w+://|(embedded|monthly|auto|none)$")
Opened = TypeVar("Opened")
OutputKind = Literal["file", "folder", "database"]
SQL_NAME = re.compile(r"'((?:[^']|'')*)'|\"([^\"]*)\"|\$\$(.*?)\$\$|([\w./~-]+\.\w+)", re.DOTALL)  # may name a file
DUCKDB_OPENING = threading.Lock()  # opening a file and closing it ends all locks of the process, in other threads too
_handles = dict[Path, int]()  # of DuckDB files; they stay open, since to close one ends the locks of the process
_inputs: ContextVar[tuple[str, ...]] = ContextVar("inputs", default=())


class TableName(NamedTuple):
    """A table of a database, or a sheet of a workbook.

    Args:
        file: path of the file.
        table: name of the table or sheet.
        is_duckdb: whether the file is named as one of DuckDB.
    """

    file: str
    table: str
    is_duckdb: bool


def parse_table_name(source: str) -> TableName | None:
    """Parse the name of a table in a file; None for any other source.

    >>> parse_table_name("oil.duckdb:spot"), parse_table_name("oil.xlsx")
    (TableName(file='oil.duckdb', table='spot', is_duckdb=True), None)
    """
    match = _NAME.fullmatch(source)
    return TableName(match["file"], match["table"], match["duckdb"] is not None) if match else None


@contextmanager
def protect_inputs(*sources: str | os.PathLike[str]) -> Iterator[None]:
    """Within this context, `write_atomic` and `check_output` reject an output that would replace one of the sources.

    >>> from torchcommodity.data import write_atomic
    >>> path = getfixture("tmp_path") / "prices.csv"
    >>> path = write_atomic(path, b"date,WTI")
    >>> with protect_inputs(path):
    ...     path = write_atomic(path, b"")
    Traceback (most recent call last):
    ValueError: ...prices.csv: expected an output apart from the inputs; got a path that is the input ...prices.csv
    """
    token = _inputs.set((*_inputs.get(), *(os.fspath(source) for source in sources)))
    try:
        yield
    finally:
        _inputs.reset(token)


def check_output(
    output: str | os.PathLike[str],
    *sources: str | os.PathLike[str],
    kind: OutputKind = "file",
    label: str = "",
) -> None:
    """Reject an output that is one of the sources, lies in one, or contains one, by what their paths resolve to.

    A source is a file, a folder, a glob pattern, `FILE:TABLE`, or `sql:` with files in the query; any other is ignored.

    Args:
        output: path to write.
        sources: inputs, in addition to those of `protect_inputs`.
        kind: "file", which is replaced; "folder", to which files are added; "database", to which tables are added, so
            that a named table of the same file is another one.
        label: start of the message, such as the name of an option; default: the output.

    Raises:
        ValueError: the output is an input or lies in one; a folder contains an input.
    """
    target = Path(os.path.realpath(output))
    for source in (*(os.fspath(source) for source in sources), *_inputs.get()):
        paths = _source_paths(source)
        if kind == "database" and source not in paths and not source.startswith("sql:"):
            paths = [path for path in paths if Path(os.path.realpath(path)) != target]  # another table of the file
        for path in paths:
            if relation := _relation(target, path, kind == "folder"):
                received = f"{output}, which" if label else "a path that"
                expected = "expected an output apart from the inputs"
                raise ValueError(f"{label or output}: {expected}; got {received} {relation} {source}")


def _source_paths(source: str) -> list[str]:
    """Existing paths, and glob patterns, that a source names."""
    if NOT_FILES.match(source):
        return []
    if os.path.exists(source):
        return [source]
    if source.startswith("sql:"):
        groups = SQL_NAME.findall(source.removeprefix("sql:"))
        names = [next(filter(None, names), "").removeprefix("file://") for names in groups]
        return [name for name in names if os.path.isfile(name) or glob.has_magic(name)]
    table = parse_table_name(source)
    names = [table.file if table else source]
    return [name for name in names if os.path.exists(name) or glob.has_magic(name)]


def _relation(target: Path, source: str, is_folder: bool) -> str:
    """How a resolved output is related to a path or glob pattern, in words; empty if it is apart."""
    path = Path(os.path.realpath(source))
    if os.path.exists(source):
        if path == target or (target.exists() and path.samefile(target)):
            return "is the input"
        if path.is_dir() and path in target.parents:
            return "lies in the input"
        return "contains the input" if is_folder and target in path.parents else ""
    files = [Path(os.path.realpath(name)) for name in glob.glob(source, recursive=True)]
    if target in files or (is_folder and any(target in file.parents for file in files)):
        return "is or contains files of the input"
    results = (target, target / "run=0" / "results.parquet")[: 1 + is_folder]
    return "would be read as part of the input" if any(_matches(x.parts, path.parts) for x in results) else ""


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether `glob.glob` finds a path by a pattern, both in parts."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or (bool(parts) and _matches(parts[1:], pattern))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


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


def create_duckdb(
    path: Path,
    fill: "Callable[[duckdb.DuckDBPyConnection], None] | None" = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Create a DuckDB file unless it exists: under another name first, so that a crash or full disk leaves all or none.

    Args:
        path: the file.
        fill: creates the first tables; default: there are none.
        config: settings of the connection.

    Raises:
        OSError, duckdb.Error: the file cannot be written.
    """
    with extra("forecast"):
        import duckdb

    if path.exists():
        return
    part = path.absolute().with_name(f".{secrets.token_hex(4)}.part")
    try:
        with duckdb.connect(str(part), config=dict(config or {})) as connection:
            if fill is not None:
                fill(connection)
        try:
            os.link(part, path)
        except FileExistsError:
            pass  # another process was faster
        except OSError:  # a file system without hard links
            part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def open_duckdb(path: Path, opening: Callable[[], Opened], closing: Callable[[Opened], object]) -> Opened:
    """`opening()`, which makes DuckDB open the file, once no other process has changed the file meanwhile.

    DuckDB reads the headers of a file before it locks the file, and trusts them afterwards: what another process
    commits in between would be lost. `closing` takes what was opened too early.
    """
    while True:
        with DUCKDB_OPENING:
            headers = _duckdb_headers(path)
            opened = opening()
            if _duckdb_headers(path) == headers:
                return opened
            closing(opened)


def connect_duckdb(path: Path, **settings: Any) -> "duckdb.DuckDBPyConnection":
    """`duckdb.connect` to a file, by `open_duckdb`."""
    with extra("forecast"):
        import duckdb

    return open_duckdb(path, lambda: duckdb.connect(str(path.absolute()), **settings), lambda opened: opened.close())


def _duckdb_headers(path: Path) -> bytes:
    """The headers of a file and of its last two checkpoints; none if it cannot be opened, which DuckDB reports."""
    try:
        status, handle = path.stat(), _handles.get(path)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if handle is None or not os.path.samestat(status, os.fstat(handle)):  # new, or replaced by another file
            new = os.open(path, os.O_RDONLY)
            if handle is not None:
                os.close(handle)
            handle = _handles[path] = new
        return os.pread(handle, 3 * 4096, 0)
    except (OSError, ValueError):
        return b""


def _keep_owner(target: Path, handle: int) -> None:
    """Give a new file the owner, group and mode of the one that it will replace, if there is one."""
    with suppress(OSError):  # there is none, or another user's file in a shared folder
        status = target.stat()
        os.fchmod(handle, stat.S_IMODE(status.st_mode) & 0o777)  # before anything is written
        if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, status.st_uid, status.st_gid)

"""From the name of a file, an object, a database table or a query to its `Table`, told apart by content."""

import glob
import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.names import printable
from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.lake.objects import is_remote, list_objects, local_copy, public_address
from torchcommodity.data._sources.table_name import parse_table_name
from torchcommodity.data._sources.tables.compression import decompress, is_workbook, strip_ending
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.table import Origin, Table

MAX_BYTES = 2**30  # of a file, compressed and decompressed
PARQUET, ARROW = "Parquet, which begins with PAR1", "an Arrow file, which begins with ARROW1"
BINARY = {".parquet": PARQUET, ".pq": PARQUET, ".feather": ARROW, ".arrow": ARROW}  # by ending
FOREIGN = {  # by the first bytes
    b"%PDF": "a PDF", b"\x93NUMPY": "an array of NumPy", b"\x89HDF": "HDF5", b"\x89PNG": "a picture",
    b"\x80\x03": "a pickle", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"RDX": "data of R",
    b"MATLAB 5.0": "a MAT file", b"ORC": "ORC", b"Obj\x01": "Avro",
}  # fmt: skip

PathLike = str | os.PathLike[str]


def open_table(source: PathLike, publisher: str = "not stated", license: str = "not stated") -> Table:
    """The table of a source; see `read` for the sources.

    Raises:
        DataError: a source that does not exist, cannot be read or holds no table; several tables and no name.
        ImportError: an extra is missing; the message says which.
    """
    name = os.fspath(source)
    label = printable(public_address(name) if is_remote(name) else os.fsdecode(name))
    origin = Origin(label, publisher, license, utc_now(), row_word="row")
    if isinstance(source, str) and name.startswith("sql:"):
        from torchcommodity.data._sources.tables.sql import read_query  # imports duckdb

        return _from_rows(read_query(name.removeprefix("sql:"), MAX_BYTES), origin, "query")
    named = None if os.path.exists(name) else parse_table_name(name)
    path, part = (named.file, named.table) if named else (name, "")
    origin = replace(origin, file=part or path)
    if files := find_files(path):
        return _from_files(files, origin)
    with local_copy(path, max_bytes=MAX_BYTES) as file:
        return _from_file(file, path, part, origin)


def find_files(name: str) -> list[str]:
    """The Parquet files of a folder or a glob pattern, in order of their names; none for any other source.

    Raises:
        DataError: a folder or pattern without Parquet files.
    """
    if is_remote(name):
        return list_objects(name)
    if os.path.isdir(name):
        files = sorted(str(path) for path in Path(name).rglob("*.parquet"))
    elif glob.has_magic(name) and not os.path.exists(name):
        files = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    else:
        return []
    if not files:
        got = "a directory without one" if os.path.isdir(name) else "a pattern of no file"
        raise DataError(f"{printable(name)}: expected a file, or Parquet files in a folder; got {got}")
    return files


def read_bytes(path: PathLike, max_bytes: int = MAX_BYTES) -> bytes:
    """The content of a regular file.

    Raises:
        DataError: the file does not exist, cannot be read, is larger than `max_bytes`, or is not a regular file.

    >>> read_bytes("no/such/file.csv")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: no/such/file.csv: expected a readable file; got No such file or directory
    """
    name = os.fspath(path)
    label = printable(os.fsdecode(name))
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{label}: expected a regular file; got {_file_type(status.st_mode)}")
        if status.st_size > max_bytes:
            raise DataError(f"{label}: expected at most {max_bytes} bytes; got {status.st_size}")
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(f"{label}: expected a readable file; got {reason}") from None


def _file_type(mode: int) -> str:
    kinds = {"a directory": stat.S_ISDIR, "a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((name for name, matches in kinds.items() if matches(mode)), "a device")


def _from_rows(rows: Any, origin: Origin, kind: str) -> Table:
    """The table of a `pyarrow.Table`; the checksum is that of the rows."""
    from torchcommodity.data._sources.lake.arrow import split_records
    from torchcommodity.data._sources.tables.arrow import checksum, read_arrow

    origin = replace(origin, sha256=checksum(rows))
    rows, records = split_records(rows)
    return replace(read_arrow(rows, origin, kind), records=records)


def _from_files(files: list[str], origin: Origin) -> Table:
    from torchcommodity.data._sources.tables.arrow import read_parquet_files

    bodies: dict[str, bytes] = {}
    for name in files:
        with local_copy(name, max_bytes=MAX_BYTES) as file:
            bodies[name] = read_bytes(file, MAX_BYTES - sum(len(body) for body in bodies.values()))
    digests = "\n".join(hashlib.sha256(body).hexdigest() for body in bodies.values())
    origin = replace(origin, sha256=hashlib.sha256(digests.encode()).hexdigest())
    return read_parquet_files(bodies, origin)


def _from_file(file: Path, path: str, part: str, origin: Origin) -> Table:
    if kind := _database_kind(file):
        return _from_database(file, part, origin, kind)
    body = read_bytes(file)
    if not body:
        raise DataError(f"{origin.label}: expected a header and rows; got an empty file")
    origin = replace(origin, sha256=hashlib.sha256(body).hexdigest())
    body, findings = decompress(body, path, MAX_BYTES)
    table = _read_body(body, path, part, origin)
    return replace(table, findings=(*findings, *table.findings))


def _from_database(file: Path, part: str, origin: Origin, kind: str) -> Table:
    from torchcommodity.data._sources.tables import databases as databases  # imports duckdb

    read = databases.read_duckdb if kind == "DuckDB" else databases.read_sqlite
    return _from_rows(read(file, part, origin.label, MAX_BYTES), origin, kind)


def _database_kind(file: Path) -> str:
    """`DuckDB` or `SQLite` by the first bytes of a file, or ""."""
    if not os.path.isfile(file):
        return ""
    with file.open("rb") as stream:
        head = stream.read(16)
    return "DuckDB" if head[8:12] == b"DUCK" else "SQLite" if head.startswith(b"SQLite format 3\0") else ""


def _read_body(body: bytes, path: str, part: str, origin: Origin) -> Table:
    if is_workbook(body):
        from torchcommodity.data._sources.tables.excel import read_workbook

        return read_workbook(body, part, origin, MAX_BYTES)
    if body.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        from torchcommodity.data._sources.tables import arrow as arrow  # imports pyarrow

        return arrow.read_parquet(body, origin) if body.startswith(b"PAR1") else arrow.read_ipc(body, origin)
    ending = Path(strip_ending(path)).suffix
    if kind := next((kind for magic, kind in FOREIGN.items() if body.startswith(magic)), ""):
        raise DataError(
            f"{origin.label}: expected CSV, Parquet, Arrow, Excel or a database; got {kind}; convert it to CSV"
        )
    if ending in BINARY:
        raise DataError(f"{origin.label}: expected {BINARY[ending]}; got {body[:4]!r}")
    return read_delimited(body, replace(origin, row_word="line"))

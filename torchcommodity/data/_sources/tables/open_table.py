"""`open_table`: the table of any source, told apart and unpacked by its content, not its name."""

import bz2
import glob
import gzip
import hashlib
import io
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError, Finding, make_finding, printable
from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.files import parse_table_name
from torchcommodity.data._sources.locations import is_remote, list_objects, local_copy, public_address
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.table import Origin, Table

CHUNK = 2**22  # bytes
ERRORS = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
    NotImplementedError,
)


class Codec(NamedTuple):
    """A compression: its name, the file endings that announce it, its first bytes, and how a stream of it is opened."""

    name: str
    endings: tuple[str, ...]
    magic: bytes
    open: Callable[[io.BytesIO], Any]


def _open_zstd(stream: io.BytesIO) -> Any:
    with extra("forecast"):
        import pyarrow as pa  # imports slowly

    return pa.input_stream(stream, compression="zstd")


def _open_member(stream: io.BytesIO) -> Any:
    archive = zipfile.ZipFile(stream)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5])
        raise ValueError(f"one with {len(members)} files ({names}); unpack it and name one of them")
    return archive.open(members[0])


CODECS = (
    Codec("gzip", (".gz", ".gzip"), b"\x1f\x8b", gzip.open),
    Codec("zstd", (".zst", ".zstd"), b"\x28\xb5\x2f\xfd", _open_zstd),
    Codec("bzip2", (".bz2",), b"BZh", bz2.open),
    Codec("xz", (".xz",), b"\xfd7zXZ\x00", lzma.open),
    Codec("zip", (".zip",), b"PK\x03\x04", _open_member),
)


def decompress(body: bytes, label: str, max_bytes: int) -> tuple[bytes, tuple[Finding, ...]]:
    """The content of a compressed file, or `body` itself; a finding where the ending of `label` says otherwise.

    gzip, zstd, bzip2 and xz are recognized, and a zip archive of one file. An Excel workbook, which is a zip archive
    too, is not unpacked.

    Raises:
        DataError: a damaged or incomplete file, more than `max_bytes` unpacked, an archive of several files.

    >>> decompress(gzip.compress(b"date,WTI"), "wti.csv.gz", 100)
    (b'date,WTI', ())
    """
    codec = None if is_workbook(body) else next((codec for codec in CODECS if body.startswith(codec.magic)), None)
    # a text may begin with BZh; a bzip2 stream goes on with its level and the magic number of a block, or of its end
    if codec and codec.name == "bzip2" and body[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
        codec = None
    announced = next((codec for codec in CODECS if label.lower().endswith(codec.endings)), None)
    if codec is None:
        plain = [make_finding("ending without compression", value=f"named as {announced.name}")] if announced else []
        return body, tuple(plain)
    chunks, size = [], 0
    try:
        with codec.open(io.BytesIO(body)) as stream:
            while size <= max_bytes and (chunk := stream.read(CHUNK)):  # one `read` of the limit would allocate it
                chunks.append(chunk)
                size += len(chunk)
    except ERRORS as error:
        reason = str(error) or type(error).__name__
        got = reason if reason.startswith("one with") else f"one that cannot be unpacked: {reason}"
        raise DataError(f"{label}: expected a complete {codec.name} file; got {got}") from None
    if size > max_bytes:
        raise DataError(f"{label}: expected at most {max_bytes} bytes unpacked; got more")
    if not size:
        raise DataError(f"{label}: expected a header and rows; got an empty file")
    findings = () if codec is announced else (make_finding("compressed without ending", value=codec.name),)
    return b"".join(chunks), findings


def strip_ending(label: str) -> str:
    """The name without the ending of a compression, in lower case.

    >>> strip_ending("prices.CSV.gz")
    'prices.csv'
    """
    name = label.lower()
    return next(
        (name.removesuffix(ending) for codec in CODECS for ending in codec.endings if name.endswith(ending)), name
    )


def is_workbook(body: bytes) -> bool:
    """Whether the content is an Excel workbook: `.xlsx`, which is a zip archive, or the older `.xls`."""
    if body.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return True
    if not body.startswith(b"PK\x03\x04"):
        return False
    try:
        return any(name.startswith("xl/workbook.") for name in zipfile.ZipFile(io.BytesIO(body)).namelist())
    except ERRORS:
        return False


MAX_BYTES = 2**30  # of a file, compressed and decompressed
PARQUET, ARROW = "Parquet, which begins with PAR1", "an Arrow file, which begins with ARROW1"
BINARY = {".parquet": PARQUET, ".pq": PARQUET, ".feather": ARROW, ".arrow": ARROW}  # by ending
FOREIGN = {  # by the first bytes
    b"%PDF": "a PDF", b"\x93NUMPY": "an array of NumPy", b"\x89HDF": "HDF5", b"\x89PNG": "a picture",
    b"\x80\x03": "a pickle", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"RDX": "data of R",
    b"MATLAB 5.0": "a MAT file", b"ORC": "ORC", b"Obj\x01": "Avro",
}  # fmt: skip

PathLike = str | os.PathLike[str]


def open_table(
    source: PathLike,
    publisher: str = "not stated",
    license: str = "not stated",
    encoding: str | None = None,
    query_timeout: float | None = None,
) -> Table:
    """The table of a source; see `read` for the sources, `decode` for the encoding of a text, and `run_query`.

    Raises:
        DataError: a source that does not exist, cannot be read or holds no table; several tables and no name.
        ImportError: an extra is missing; the message says which.
    """
    name = os.fspath(source)
    label = public_address(name) if is_remote(name) else os.fsdecode(name)
    origin = Origin(label, publisher, license, utc_now(), row_word="row")
    if isinstance(source, str) and name.startswith("sql:"):
        from torchcommodity.data._sources.tables.databases import read_query  # imports duckdb

        return _from_rows(read_query(name.removeprefix("sql:"), MAX_BYTES, query_timeout), origin, "query")
    named = None if os.path.exists(name) else parse_table_name(name)
    path, part = (named.file, named.table) if named else (name, "")
    origin = replace(origin, file=part or path)
    if files := find_files(path):
        return _from_files(files, origin)
    with local_copy(path, max_bytes=MAX_BYTES) as file:
        if kind := _database_kind(file):
            from torchcommodity.data._sources.tables.databases import read_duckdb, read_sqlite  # imports duckdb

            read = read_duckdb if kind == "DuckDB" else read_sqlite
            return _from_rows(read(file, part, origin.label, MAX_BYTES, query_timeout), origin, kind)
        body = read_bytes(file)
    if not body:
        raise DataError(f"{origin.label}: expected a header and rows; got an empty file")
    origin = replace(origin, sha256=hashlib.sha256(body).hexdigest())
    body, findings = decompress(body, path, MAX_BYTES)
    table = _read_body(body, path, part, origin, encoding)
    return replace(table, findings=(*findings, *table.findings))


def open_frame(frame: Any, label: str) -> Table | None:
    """The table of a pandas, polars, DuckDB or Arrow frame; None for any other object. `label` opens its messages."""
    from torchcommodity.data._sources.tables.frames import read_frame

    return read_frame(frame, Origin(label, location="memory", retrieved=utc_now(), row_word="row"))


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
            kinds = {"a directory": stat.S_ISDIR, "a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
            got = next((kind for kind, matches in kinds.items() if matches(status.st_mode)), "a device")
            raise DataError(f"{label}: expected a regular file; got {got}")
        if status.st_size > max_bytes:
            raise DataError(f"{label}: expected at most {max_bytes} bytes; got {status.st_size}")
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(f"{label}: expected a readable file; got {reason}") from None


def _from_rows(rows: Any, origin: Origin, kind: str) -> Table:
    """The table of a `pyarrow.Table`; the checksum is that of the rows."""
    from torchcommodity.data._sources.tables.frames import checksum, read_arrow, split_records

    origin = replace(origin, sha256=checksum(rows))
    rows, records = split_records(rows)
    return replace(read_arrow(rows, origin, kind), records=records)


def _from_files(files: list[str], origin: Origin) -> Table:
    from torchcommodity.data._sources.tables.frames import read_parquet_files

    bodies: dict[str, bytes] = {}
    for name in files:
        with local_copy(name, max_bytes=MAX_BYTES) as file:
            bodies[name] = read_bytes(file, MAX_BYTES - sum(len(body) for body in bodies.values()))
    digests = "\n".join(hashlib.sha256(body).hexdigest() for body in bodies.values())
    origin = replace(origin, sha256=hashlib.sha256(digests.encode()).hexdigest())
    return read_parquet_files(bodies, origin)


def _database_kind(file: Path) -> str:
    """`DuckDB` or `SQLite` by the first bytes of a file, or ""."""
    if not os.path.isfile(file):
        return ""
    with file.open("rb") as stream:
        head = stream.read(16)
    return "DuckDB" if head[8:12] == b"DUCK" else "SQLite" if head.startswith(b"SQLite format 3\0") else ""


def _read_body(body: bytes, path: str, part: str, origin: Origin, encoding: str | None) -> Table:
    if is_workbook(body):
        from torchcommodity.data._sources.tables.excel import read_workbook

        return read_workbook(body, part, origin, MAX_BYTES)
    if body.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        from torchcommodity.data._sources.tables.frames import read_ipc, read_parquet  # imports pyarrow

        return read_parquet(body, origin) if body.startswith(b"PAR1") else read_ipc(body, origin)
    ending = Path(strip_ending(path)).suffix
    if kind := next((kind for magic, kind in FOREIGN.items() if body.startswith(magic)), ""):
        raise DataError(
            f"{origin.label}: expected CSV, Parquet, Arrow, Excel or a database; got {kind}; convert it to CSV"
        )
    if ending in BINARY:
        raise DataError(f"{origin.label}: expected {BINARY[ending]}; got {body[:4]!r}")
    return read_delimited(body, replace(origin, row_word="line"), encoding)

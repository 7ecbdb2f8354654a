"""Decompress a file by its content, not its name, within a limit on memory."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from torchcommodity.data._core.errors import DataError, Finding, make_finding

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
    codec = _detect(body)
    announced = next((codec for codec in CODECS if label.lower().endswith(codec.endings)), None)
    if codec is None:
        plain = [make_finding("ending without compression", value=f"named as {announced.name}")] if announced else []
        return body, tuple(plain)
    findings = () if codec is announced else (make_finding("compressed without ending", value=codec.name),)
    return _unpack(body, codec, label, max_bytes), findings


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


def _detect(body: bytes) -> Codec | None:
    if is_workbook(body):
        return None
    codec = next((codec for codec in CODECS if body.startswith(codec.magic)), None)
    # a text may begin with BZh; a bzip2 stream goes on with its level and the magic number of a block, or of its end
    if codec and codec.name == "bzip2" and body[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
        return None
    return codec


def _read(stream: Any, max_bytes: int) -> bytes:
    """The content, or the first bytes of it that exceed `max_bytes`; one `read` of the limit would allocate it."""
    chunks, size = [], 0
    while size <= max_bytes and (chunk := stream.read(CHUNK)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _unpack(body: bytes, codec: Codec, label: str, max_bytes: int) -> bytes:
    try:
        with codec.open(io.BytesIO(body)) as stream:
            unpacked = _read(stream, max_bytes)
    except ERRORS as error:
        reason = str(error) or type(error).__name__
        got = reason if reason.startswith("one with") else f"one that cannot be unpacked: {reason}"
        raise DataError(f"{label}: expected a complete {codec.name} file; got {got}") from None
    if len(unpacked) > max_bytes:
        raise DataError(f"{label}: expected at most {max_bytes} bytes unpacked; got more")
    if not unpacked:
        raise DataError(f"{label}: expected a header and rows; got an empty file")
    return unpacked

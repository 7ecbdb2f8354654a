"""CSV and Parquet files, long or wide, plain or gzipped."""

import gzip
import hashlib
import io
import os
import stat
import zlib
from pathlib import Path

import torch

from torchcommodity.data._assemble import assemble
from torchcommodity.data._curve import Curve
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Origin
from torchcommodity.data._names import printable
from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import utc_now
from torchcommodity.data._tables import Table, read_delimited
from torchcommodity.data._to_grid import to_grid

MAX_BYTES = 2**30  # of a file, compressed and decompressed

PathLike = str | os.PathLike[str]


def read_file(path: PathLike, *, publisher: str, license: str) -> Panel:
    """Read prices from a CSV or Parquet file, told apart by the first bytes. See `read`."""
    return _panel(path, publisher, license)


def read_curve(path: PathLike) -> Curve:
    """Read a futures curve, the closes of nearby contracts, from a CSV or Parquet file, plain or gzipped.

    The file is a long table with columns `date,symbol,nth,close`: `nth` is 1 for the front contract, 2 for the next.
    Other columns, such as `contract`, are ignored and reported. Dates, numbers and missing values are as for `read`.

    Args:
        path: the file; its first bytes determine whether it is read as Parquet.

    Returns:
        Closes `(T, N, C)` float64 in the units of the file, C the largest `nth`, NaN = missing; `Curve.findings` lists
        data-quality warnings. `Panel.with_curve` aligns it with a panel.

    Raises:
        DataError: data that cannot be trusted, with file, line and value.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,symbol,nth,close\\n2020-04-20,WTI,1,-37.63\\n2020-04-20,WTI,2,20.43\\n")
    ...     file.flush()
    ...     curve = read_curve(file.name)
    >>> curve.values.tolist(), curve.symbols
    ([[[-37.63, 20.43]]], ('WTI',))
    """
    panel = _panel(path, "not stated", "not stated", curve=True)
    pairs = [name.rsplit(" ", 1) for name in panel.symbols]  # see `nearby_symbol`
    symbols = tuple(dict.fromkeys(symbol for symbol, _ in pairs))
    values = torch.full((len(panel), len(symbols), max(int(nth) for _, nth in pairs)), torch.nan, dtype=torch.float64)
    for column, (symbol, nth) in enumerate(pairs):
        values[:, symbols.index(symbol), int(nth) - 1] = panel.values.plain()[:, column]
    return Curve(values, panel.dates, symbols, panel.findings)


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


def _panel(path: PathLike, publisher: str, license: str, *, curve: bool = False) -> Panel:
    name = os.fspath(path)
    body = read_bytes(name)
    if not body:
        raise DataError(f"{name}: expected a header and rows; got an empty file")
    digest = hashlib.sha256(body).hexdigest()
    body = _unpack(body, name)
    row_word = "row" if body.startswith(b"PAR1") else "line"
    origin = Origin(name, publisher, license, utc_now(), digest, row_word)
    return assemble(to_grid(_table(body, origin), origin, curve=curve), origin)


def _file_type(mode: int) -> str:
    kinds = {"a directory": stat.S_ISDIR, "a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((name for name, matches in kinds.items() if matches(mode)), "a device")


def _unpack(body: bytes, name: str) -> bytes:
    """Decompress a gzip file; return any other content unchanged."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            unpacked = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: expected a complete gzip file; got one that cannot be unpacked: {error}") from None
    if len(unpacked) > MAX_BYTES:
        raise DataError(f"{name}: expected at most {MAX_BYTES} bytes unpacked; got more")
    if not unpacked:
        raise DataError(f"{name}: expected a header and rows; got an empty file")
    return unpacked


def _table(body: bytes, origin: Origin) -> Table:
    if body.startswith(b"PAR1"):
        from torchcommodity.data._tables._arrow import read_parquet  # imports pyarrow

        return read_parquet(body, origin)
    name = origin.label.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        raise DataError(f"{origin.label}: expected Parquet, which begins with PAR1; got {body[:4]!r}")
    if body.startswith(b"PK\x03\x04"):
        raise DataError(f"{origin.label}: expected CSV or Parquet; got a zip archive or an Excel file")
    return read_delimited(body, origin)

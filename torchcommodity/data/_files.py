"""CSV and Parquet files, long or wide."""

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
from torchcommodity.data._delimited import read_delimited
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Grid, Origin
from torchcommodity.data._panel import Panel, utc_now
from torchcommodity.data._parquet import read_parquet

LARGEST = 2**30  # bytes, as they are and unpacked


def read_file(path: str | os.PathLike[str], *, publisher: str, license: str) -> Panel:
    """Prices from a CSV or Parquet file; the first bytes say which. See `read`."""
    return _panel(path, publisher, license)


def read_curve(path: str | os.PathLike[str]) -> Curve:
    """Closes of nearby contracts from a CSV or Parquet file, plain or gzipped: the curve of several products.

    A long table with columns `date,symbol,nth,close`: `nth` is 1 for the front contract, 2 for the next. Other columns,
    such as `contract`, are reported and left out; dates, numbers and missing marks as for `read`.

    Args:
        path: the file; what it is, is read from its first bytes.

    Returns:
        `Curve`: closes `(T, N, C)` float64 in the file's units, C the largest `nth`, NaN = missing; with everything
        doubtful in `findings`. `Panel.with_curve` aligns it.

    Raises:
        DataError: what cannot be trusted, with file, line and value.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,symbol,nth,close\\n2020-04-20,WTI,1,-37.63\\n2020-04-20,WTI,2,20.43\\n")
    ...     file.flush()
    ...     curve = read_curve(file.name)
    >>> curve.values.tolist(), curve.symbols
    ([[[-37.63, 20.43]]], ('WTI',))
    """
    panel = _panel(path, "not stated", "not stated", curve=True)
    pairs = [name.rsplit(" ", 1) for name in panel.symbols]  # as `nearby` wrote them
    symbols = tuple(dict.fromkeys(symbol for symbol, _ in pairs))
    values = torch.full((len(panel), len(symbols), max(int(nth) for _, nth in pairs)), torch.nan, dtype=torch.float64)
    for column, (symbol, nth) in enumerate(pairs):
        values[:, symbols.index(symbol), int(nth) - 1] = panel.values.plain()[:, column]
    return Curve(values, panel.dates, symbols, panel.findings)


def _panel(path: str | os.PathLike[str], publisher: str, license: str, *, curve: bool = False) -> Panel:
    location = os.fspath(path)
    body = _bytes(location)
    digest = hashlib.sha256(body).hexdigest()
    body = _unpacked(body, location)
    row_word = "row" if body.startswith(b"PAR1") else "line"
    origin = Origin(location, publisher, license, utc_now(), digest, row_word)
    return assemble(_grid(body, origin, curve), origin)


def _bytes(location: str) -> bytes:
    try:
        status = os.stat(location)
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{location}: expected a regular file; got {_kind(status.st_mode)}")
        if status.st_size > LARGEST:
            raise DataError(f"{location}: expected at most {LARGEST} bytes; got {status.st_size}")
        body = Path(location).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise DataError(f"{location}: expected a readable file; got {reason}") from None
    if not body:
        raise DataError(f"{location}: expected a header and rows; got an empty file")
    return body


def _kind(mode: int) -> str:
    kinds = {"a directory": stat.S_ISDIR, "a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((name for name, holds in kinds.items() if holds(mode)), "a device")


def _unpacked(body: bytes, location: str) -> bytes:
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as stream:
            unpacked = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{location}: expected a whole gzip file; got one that cannot be unpacked: {error}") from None
    if len(unpacked) > LARGEST:
        raise DataError(f"{location}: expected at most {LARGEST} bytes unpacked; got more")
    if not unpacked:
        raise DataError(f"{location}: expected a header and rows; got an empty file")
    return unpacked


def _grid(body: bytes, origin: Origin, curve: bool) -> Grid:
    if body.startswith(b"PAR1"):
        return read_parquet(body, origin, curve=curve)
    named = origin.place.lower().removesuffix(".gz")
    if named.endswith((".parquet", ".pq")):
        raise DataError(f"{origin.place}: expected Parquet, which begins with PAR1; got {body[:4]!r}")
    if body.startswith(b"PK\x03\x04"):
        raise DataError(f"{origin.place}: expected CSV or Parquet; got a zip archive or an Excel file")
    return read_delimited(body, origin, curve=curve)

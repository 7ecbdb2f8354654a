"""Decode the bytes of a text file, and split it into the rows of its header and its body."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.tables.table import Origin

SEPARATORS = ",;\t|"
SAMPLE = 200  # rows from which separator and header are decided
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}

DATE_NAME = re.compile(
    r"(.*[ _<])?(date|time|datetime|day|month|period|ds|datum|fecha|ts_event|origin|cutoff)>?", re.IGNORECASE
)

Row = tuple[int, list[str]]  # line number, cells


def decode(body: bytes, origin: Origin) -> tuple[str, str]:
    """The text and its encoding: UTF-8, UTF-16 with a byte order mark, otherwise Windows-1252 (as Latin-1).

    Raises:
        DataError: binary data, or text in none of them.
    """
    encoding = next((name for mark, name in BYTE_ORDER_MARKS.items() if body.startswith(mark)), "utf-8")
    if encoding != "utf-16" and (nul := body.find(b"\0")) >= 0:
        line = body.count(b"\n", 0, nul) + 1
        got = "a NUL byte (binary data, or UTF-16 without a byte order mark: save it as UTF-8)"
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got {got}")
    try:
        return body.decode(encoding), encoding
    except UnicodeDecodeError as error:
        wrong = error
    try:
        if encoding != "utf-8":
            raise wrong
        return body.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        line = body.count(b"\n", 0, wrong.start) + 1
        got = f"byte 0x{body[wrong.start]:02x} (save it as UTF-8)"
        raise DataError(f"{origin.at(line)}: expected text in UTF-8 or Windows-1252; got {got}") from None


def read_rows(text: str, separator: str, origin: Origin) -> Iterator[Row]:
    """The rows of CSV text that are not blank, with their line numbers."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(f"{origin.at(line)}: expected well-formed CSV; got {error}") from None
        if cells is None:
            return
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = reader.line_num + 1


def find_separator(text: str, origin: Origin) -> str:
    """The separator that splits most rows into the same number of fields.

    Raises:
        DataError: HTML or JSON, or two separators that split the rows equally well.
    """
    lines = [line for line in islice(io.StringIO(text), SAMPLE) if line.strip()]
    if lines and re.match(r"\s*([{[]|<(?![A-Z]+>[,;\t]))", lines[0]):  # <TICKER>, is a column of Stooq's
        got = f"{lines[0].strip()[:60]!r} (HTML or JSON); convert it to CSV or Parquet"
        raise DataError(f"{origin.at(1)}: expected a CSV header; got {got}")
    scores = {separator: _regular_rows(lines, separator, strict=True) for separator in SEPARATORS}
    if not any(scores.values()):  # a quote that is never closed, perhaps: whoever reads the rows says in which line
        scores = {separator: _regular_rows(lines, separator, strict=False) for separator in SEPARATORS}
    best = max(scores.values())
    separators = [separator for separator, score in scores.items() if score == best > 0]
    if len(separators) > 1:
        got = " and ".join(map(repr, separators))
        raise DataError(f"{origin.at(1)}: expected one separator among , ; tab |; got {got} (quote the names)")
    return separators[0] if separators else ","


def _regular_rows(lines: list[str], separator: str, *, strict: bool) -> int:
    """How many rows have the most common number of fields above one; 0 if a quoted cell does not end there."""
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=strict))
    except csv.Error:
        rows = []
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return max(widths.values(), default=0)


def has_date(cells: list[str]) -> bool:
    """Whether a cell of a row is a date, and none names a column of dates."""
    if any(DATE_NAME.fullmatch(cell.strip()) for cell in cells):
        return False
    return any(any(map(str.isdigit, cell)) and find_style(cell) is not None for cell in cells)

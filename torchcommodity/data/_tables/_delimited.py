"""Read CSV text to a `Table` of text columns; every error names the line and the value."""

import csv
import io
from collections.abc import Iterator

import numpy as np

from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Origin
from torchcommodity.data._tables._table import Column, Table

SEPARATORS = ",;\t"

Row = tuple[int, list[str]]  # line number, cells


def read_delimited(body: bytes, origin: Origin) -> Table:
    """The table of a text in UTF-8 (with or without BOM), separated by comma, semicolon or tab.

    Lines end in LF, CRLF or CR; fields may be quoted; blank lines are skipped. Anything else is a `DataError`.

    >>> read_delimited(b"date,WTI\\n2020-04-20,-37.63\\n", Origin("wti.csv")).names
    ('date', 'WTI')
    """
    rows = _rows(_decode(body, origin), origin)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{origin.label}: expected a header and rows; got only blank lines")
    line, header = first
    lines, cells = zip(*_check_widths(rows, len(header), origin))
    columns = tuple(Column(name.strip(), list(column)) for name, column in zip(header, zip(*cells)))
    return Table(columns, np.array(lines), origin.at(line), "CSV")


def _decode(body: bytes, origin: Origin) -> str:
    if (nul := body.find(b"\0")) >= 0:
        line = body.count(b"\n", 0, nul) + 1
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got a NUL byte (binary data or UTF-16)")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got byte 0x{body[error.start]:02x}") from None


def _rows(text: str, origin: Origin) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text, origin), strict=True)
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


def _separator(text: str, origin: Origin) -> str:
    header = next((line for line in text.splitlines() if line.strip()), "")
    if header.lstrip()[:1] in ("<", "{", "["):
        raise DataError(f"{origin.at(1)}: expected a CSV header; got {header.strip()[:60]!r} (HTML or JSON)")
    unquoted = "".join(header.split('"')[::2])
    separators = [separator for separator in SEPARATORS if separator in unquoted]
    if len(separators) > 1:
        got = " and ".join(map(repr, separators))
        raise DataError(f"{origin.at(1)}: expected one separator among , ; tab; got {got}")
    return separators[0] if separators else ","


def _check_widths(rows: Iterator[Row], width: int, origin: Origin) -> Iterator[Row]:
    """Yield the rows; a row without `width` fields is a `DataError`, and so is a table without rows."""
    line = 0
    for line, cells in rows:
        if len(cells) != width:
            hint = " (a decimal comma or an unquoted separator?)" if len(cells) > width else ""
            got = f"{len(cells)}{hint}: {','.join(cells)[:60]!r}"
            raise DataError(f"{origin.at(line)}: expected {width} fields as in the header; got {got}")
        yield line, cells
    if not line:
        raise DataError(f"{origin.label}: expected rows after the header; got none")

"""CSV text to a grid, line by line, so that every refusal names the line and the value."""

import csv
import io
from collections.abc import Iterator
from datetime import date

import numpy as np

from torchcommodity.data._cells import parse_price, parse_prices
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, Days, Grid, Names, Origin, long_grid, nearby
from torchcommodity.data._layout import Layout, layout

SEPARATORS = ",;\t"


def read_delimited(body: bytes, origin: Origin, *, curve: bool = False) -> Grid:
    """The grid of a long or wide table in UTF-8 (with or without BOM), separated by comma, semicolon or tab.

    Lines may end in LF, CRLF or CR; fields may be quoted; blank lines are skipped. Everything else that does not fit is
    a `DataError` with line and value.

    >>> read_delimited(b"date,WTI\\n2020-04-20,-37.63\\n", Origin("wti.csv")).values.tolist()
    [[-37.63]]
    """
    rows = _rows(_text(body, origin), origin)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{origin.place}: expected a header and rows; got nothing but blank lines")
    line, header = first
    columns = layout(header, origin.at(line), curve=curve)
    body_rows = _counted(rows, len(header), origin)
    return _wide(columns, body_rows, origin) if columns.symbol is None else _long(columns, body_rows, origin)


def _text(body: bytes, origin: Origin) -> str:
    if (nul := body.find(b"\0")) >= 0:
        line = body.count(b"\n", 0, nul) + 1
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got a NUL byte (binary data or UTF-16)")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise DataError(f"{origin.at(line)}: expected text in UTF-8; got byte 0x{body[error.start]:02x}") from None


def _rows(text: str, origin: Origin) -> Iterator[tuple[int, list[str]]]:
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
    outside = "".join(header.split('"')[::2])  # what stands between quotes separates nothing
    used = [mark for mark in SEPARATORS if mark in outside]
    if len(used) > 1:
        raise DataError(f"{origin.at(1)}: expected one separator among , ; tab; got {' and '.join(map(repr, used))}")
    return used[0] if used else ","


def _counted(rows: Iterator[tuple[int, list[str]]], width: int, origin: Origin) -> Iterator[tuple[int, list[str]]]:
    line = 0
    for line, cells in rows:
        if len(cells) != width:
            hint = " (a decimal comma or an unquoted separator?)" if len(cells) > width else ""
            got = f"{len(cells)}{hint}: {','.join(cells)[:60]!r}"
            raise DataError(f"{origin.at(line)}: expected {width} fields as in the header; got {got}")
        yield line, cells
    if not line:
        raise DataError(f"{origin.place}: expected rows after the header; got none")


def _wide(columns: Layout, rows: Iterator[tuple[int, list[str]]], origin: Origin) -> Grid:
    days, lines, values = [], [], []
    calendar = Days(origin)
    for line, cells in rows:
        days.append(calendar.read(cells.pop(columns.date), line))
        lines.append(line)
        values.append(_numbers(cells, columns.names, line, origin))
    return Grid(
        np.array(days, dtype="datetime64[D]"),
        np.array(lines),
        np.array(values),
        columns.names,
        findings=columns.findings,
    )


def _numbers(cells: list[str], names: tuple[str, ...], line: int, origin: Origin) -> Array:
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        for cell, name in zip(cells, names):
            _number(cell, name, line, origin)
        raise


def _number(cell: str, name: str, line: int, origin: Origin) -> float:
    try:
        return parse_price(cell)
    except ValueError as error:
        raise DataError(f"{origin.at(line)}: {name!r}: expected {error}") from None


def _long(columns: Layout, rows: Iterator[tuple[int, list[str]]], origin: Origin) -> Grid:
    days: list[date] = []
    lines, codes, prices = [], [], []
    calendar, names = Days(origin), Names(origin)
    (price,) = columns.prices
    for line, cells in rows:
        symbol = cells[columns.symbol or 0].strip()
        symbol = symbol if columns.nth is None else nearby(symbol, cells[columns.nth], line, origin)
        unit = "" if columns.unit is None else cells[columns.unit].strip()
        source = "" if columns.source is None else cells[columns.source].strip()
        days.append(calendar.read(cells[columns.date], line))
        codes.append(names.code(symbol, unit, source, line))
        prices.append(_number(cells[price], symbol, line, origin))
        lines.append(line)
    return long_grid(columns, names, days, lines, codes, np.array(prices))

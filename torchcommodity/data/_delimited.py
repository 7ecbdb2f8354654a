"""Read CSV text row by row, so that every error names the line and the value."""

import csv
import io
from collections.abc import Iterator
from datetime import date

import numpy as np

from torchcommodity.data._cells import parse_price, parse_prices
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, DateParser, Grid, Origin, SymbolTable, long_grid, nearby_symbol
from torchcommodity.data._layout import Layout, detect_layout

SEPARATORS = ",;\t"

Row = tuple[int, list[str]]  # line number, cells


def read_delimited(body: bytes, origin: Origin, *, curve: bool = False) -> Grid:
    """The grid of a long or wide table in UTF-8 (with or without BOM), separated by comma, semicolon or tab.

    Lines end in LF, CRLF or CR; fields may be quoted; blank lines are skipped. Anything else is a `DataError`.

    >>> read_delimited(b"date,WTI\\n2020-04-20,-37.63\\n", Origin("wti.csv")).values.tolist()
    [[-37.63]]
    """
    rows = _rows(_decode(body, origin), origin)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{origin.label}: expected a header and rows; got only blank lines")
    line, header = first
    columns = detect_layout(header, origin.at(line), curve=curve)
    body_rows = _check_widths(rows, len(header), origin)
    return _wide(columns, body_rows, origin) if columns.symbol is None else _long(columns, body_rows, origin)


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


def _wide(columns: Layout, rows: Iterator[Row], origin: Origin) -> Grid:
    days, lines, values = [], [], []
    dates = DateParser(origin)
    for line, cells in rows:
        days.append(dates.parse(cells.pop(columns.date), line))
        lines.append(line)
        values.append(_prices(cells, columns.names, line, origin))
    return Grid(
        np.array(days, dtype="datetime64[D]"),
        np.array(lines),
        np.array(values),
        columns.names,
        findings=columns.findings,
    )


def _long(columns: Layout, rows: Iterator[Row], origin: Origin) -> Grid:
    days: list[date] = []
    lines, codes, prices = [], [], []
    dates, symbols = DateParser(origin), SymbolTable(origin)
    (price,) = columns.prices
    for line, cells in rows:
        symbol = cells[columns.symbol or 0].strip()
        symbol = symbol if columns.nth is None else nearby_symbol(symbol, cells[columns.nth], line, origin)
        unit = "" if columns.unit is None else cells[columns.unit].strip()
        source = "" if columns.source is None else cells[columns.source].strip()
        days.append(dates.parse(cells[columns.date], line))
        codes.append(symbols.code(symbol, unit, source, line))
        prices.append(_price(cells[price], symbol, line, origin))
        lines.append(line)
    return long_grid(columns, symbols, days, lines, codes, np.array(prices))


def _prices(cells: list[str], names: tuple[str, ...], line: int, origin: Origin) -> Array:
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        for cell, name in zip(cells, names):
            _price(cell, name, line, origin)
        raise


def _price(cell: str, name: str, line: int, origin: Origin) -> float:
    try:
        return parse_price(cell)
    except ValueError as error:
        raise DataError(f"{origin.at(line)}: {name!r}: expected {error}") from None

"""Read CSV text to a `Table` of text columns; every error names the line and the value."""

import io
import re
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding, make_finding
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.tables.regular import LARGE, split_regular
from torchcommodity.data._sources.tables.table import Column, Origin, Table
from torchcommodity.data._sources.tables.text import DATE_NAME, SAMPLE, Row, decode, find_separator, has_date, read_rows


def read_delimited(body: bytes, origin: Origin) -> Table:
    """The table of a text, separated by comma, semicolon, tab or bar, in UTF-8, UTF-16 or Windows-1252.

    Lines end in LF, CRLF or CR; fields may be quoted; blank lines are skipped. The header is the row above the first
    row with a date. What stands above it, and notes below the last row, are kept as titles.

    Raises:
        DataError: binary data, two separators, no header or no rows, rows of different lengths.

    >>> read_delimited(b"Source: EIA\\ndate,WTI\\n2020-04-20,-37.63\\n", Origin("wti.csv")).titles
    ('Source: EIA',)
    """
    text, encoding = decode(body, origin)
    text, first_line = _skip_separator_line(text)
    separator = find_separator(text, origin)
    table = _read_large(text, separator, origin, first_line)
    if table is None:
        rows = [(line + first_line, cells) for line, cells in read_rows(text, separator, origin)]
        table = _read_rows(rows, origin)
    if encoding == "Windows-1252":
        table = replace(table, findings=(*table.findings, make_finding("encoding", value="not UTF-8")))
    return _drop_empty_columns(table)


def _read_large(text: str, separator: str, origin: Origin, first_line: int) -> Table | None:
    """A large table whose rows all have the same form; None for all others."""
    if len(text) < LARGE or '"' in text or text.startswith("#") or "\n#" in text:
        return None
    head = "".join(islice(io.StringIO(text), 2 * SAMPLE))
    rows = list(read_rows(head, separator, origin))
    if len(rows) <= SAMPLE:
        return None
    first, top = _find_header(rows, origin)
    line, names = rows[first - 1]
    columns = split_regular(text, separator, rows[first][0], len(names))
    if columns is None or _is_note([column[-1] for column in columns], len(names)):
        return None
    lines = np.arange(len(columns[0])) + rows[first][0] + first_line
    return _table(rows[top:first], rows[:top], lines, columns, origin, line + first_line)


def _read_rows(rows: list[Row], origin: Origin) -> Table:
    comments = [",".join(cells) for _, cells in rows if cells[0].startswith("#")]
    rows = [row for row in rows if not row[1][0].startswith("#")] if comments else rows
    if not rows:
        raise DataError(f"{origin.label}: expected a header and rows; got only blank lines")
    first, top = _find_header(rows, origin)
    line, names = rows[first - 1]
    table_rows, notes = _split_notes(rows[first:])
    lines, cells = _check_widths(table_rows, len(names), origin)
    columns = list(map(list, zip(*cells)))
    table = _table(rows[top:first], rows[:top], np.array(lines), columns, origin, line)
    titles = (*comments, *table.titles, *(text for _, text in notes))
    return replace(table, titles=titles, findings=_notes(notes))


def _table(
    header: list[Row], titles: list[Row], lines: Array, columns: list[list[str]], origin: Origin, line: int
) -> Table:
    named = tuple(Column(name.strip(), column) for name, column in zip(header[-1][1], columns))
    levels = tuple(tuple(cell.strip() for cell in row) for _, row in header) if len(header) > 1 else ()
    above = tuple(" ".join(filter(None, row)) for _, row in titles)
    return Table(named, lines, origin, origin.at(line), "CSV", levels, above)


def _skip_separator_line(text: str) -> tuple[str, int]:
    """The text without a first line `sep=;`, which Excel writes, and the number of lines skipped."""
    match = re.match(r"sep=.\r?\n", text)
    return (text[match.end() :], 1) if match else (text, 0)


def _find_header(rows: list[Row], origin: Origin) -> tuple[int, int]:
    """The number of the first row below the header, and of the first row of the header."""
    dated = [n for n, (_, cells) in enumerate(rows[:SAMPLE]) if has_date(cells)]
    if not dated:  # whoever gives the columns their roles says so
        first = next((n for n, (_, cells) in enumerate(rows[:SAMPLE]) if len(cells) > 1), 0) + 1
        return first, first - 1
    width = Counter(len(rows[n][1]) for n in dated).most_common(1)[0][0]
    first = next(n for n in dated if len(rows[n][1]) == width)
    if first == 0:
        line, cells = rows[0]
        if sum(has_date([cell]) for cell in cells) > 1:
            got = "dates in its columns; transpose the table, e.g. frame.T"
            raise DataError(f"{origin.at(line)}: expected a row for each date; got {got}")
        got = f"a row of data: {','.join(cells)[:60]!r}"
        raise DataError(f"{origin.at(line)}: expected a header with names such as date,WTI above the data; got {got}")
    first = _below_named_header(rows, first, width, origin)
    top = first - 1
    if not _is_full(rows[top][1]) or _has_twins(
        rows[top][1]
    ):  # a header of several rows: `Date,,` below `Ticker,CL=F,CL=F`, or a row of units
        while top > 0 and len(rows[top - 1][1]) == width > 1:
            top -= 1
    return first, top


def _below_named_header(rows: list[Row], first: int, width: int, origin: Origin) -> int:
    """The row below the lowest header that names its dates: rows in between are data, whose dates cannot be read."""
    above = [n for n in range(first) if len(rows[n][1]) == width]
    named = [n for n in above if _names_dates(rows[n][1])]
    if not named:
        _check_header(rows[first - 1], origin)
        return first
    has_cells = any(cells[0].strip() for _, cells in rows[named[-1] + 1 : first])  # a row of units has none
    return named[-1] + 1 if has_cells else first


def _names_dates(cells: list[str]) -> bool:
    """Whether a cell is the name of a column of dates, and none a date, as in a title `End Date,6/30/2023`."""
    return any(DATE_NAME.fullmatch(cell.strip()) for cell in cells) and all(find_style(cell) is None for cell in cells)


def _check_header(row: Row, origin: Origin) -> None:
    """A row of prices above the first date that can be read is no header."""
    line, cells = row
    if any(re.fullmatch(r"[+-]?[0-9]*[.,][0-9]+", cell.strip()) for cell in cells):
        got = f"{','.join(cells)[:60]!r}; check its date"
        raise DataError(f"{origin.at(line)}: expected a header above the first row with a date; got {got}")


def _has_twins(cells: list[str]) -> bool:
    """Whether a name stands for several columns, as `PX_LAST` below a row of tickers."""
    return len(set(cells)) < len(cells)


def _is_full(cells: list[str]) -> bool:
    return all(cell.strip() for cell in cells[:-1])


def _split_notes(rows: list[Row]) -> tuple[list[Row], list[tuple[int, str]]]:
    """The rows, and the notes below the last one: text in one cell, or nothing at all."""
    end = len(rows)
    while end and _is_note(rows[end - 1][1], len(rows[0][1])):
        end -= 1
    return rows[:end], [(line, " ".join(filter(None, cells)).strip()) for line, cells in rows[end:]]


def _is_note(cells: list[str], width: int) -> bool:
    texts = [cell.strip() for cell in cells if cell.strip()]
    if not texts:
        return True
    return len(texts) == 1 and width > 1 and bool(re.search("[^\\W\\d]{3}", texts[0])) and not has_date(cells)


def _notes(notes: list[tuple[int, str]]) -> tuple[Finding, ...]:
    return tuple(make_finding("ignored line", line=line, value=text or "an empty row") for line, text in notes)


def _check_widths(rows: list[Row], width: int, origin: Origin) -> tuple[tuple[int, ...], tuple[list[str], ...]]:
    """Lines and cells; a row without `width` fields is a `DataError`, and so is a table without rows."""
    if not rows:
        raise DataError(f"{origin.label}: expected rows after the header; got none")
    for line, cells in rows:
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if len(cells) != width:
            hint = " (a decimal comma or an unquoted separator?)" if len(cells) > width else ""
            got = f"{len(cells)}{hint}: {','.join(cells)[:60]!r}"
            raise DataError(f"{origin.at(line)}: expected {width} fields as in the header; got {got}")
    lines, cells_of_rows = zip(*rows)
    return lines, cells_of_rows


def _drop_empty_columns(table: Table) -> Table:
    """Drop the last columns if they have neither a name nor a cell: separators at the end of every line."""
    end = len(table.columns)
    while end > 1 and not table.columns[end - 1].name and not any(map(str.strip, table.columns[end - 1].cells)):
        end -= 1
    return table if end == len(table.columns) or table.levels else table.select(range(end))

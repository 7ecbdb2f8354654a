"""Tables with a series in each row and dates in the names of the columns, turned into a column for each series."""

import re
from dataclasses import replace

import numpy as np

from torchcommodity.data._core.errors import DataError, ignored_columns, make_finding
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats import OTHER_SYMBOLS, SYMBOLS, key
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.tables.table import Column, Table

YEAR = re.compile(r"[12][0-9]{3}(\.0)?")
QUARTER = re.compile(r"[12][0-9]{3}[ -]?Q[1-4]")
SHORT_MONTH = re.compile(r"([^\W\d_]{3,9})[ '-]+([0-9]{2})")  # Jan-97
CODES = ("source key", "series id", "series code", "commodity code", "indicator code", "commodity", "commodity name")


def turn_sideways(table: Table, options: ReadOptions) -> Table:
    """A table with a row for each date, of one with a row for each series; any other table unchanged.

    Months and days in the names of the columns are the dates; years and quarters beside them are left out. The symbols
    are the stated column, or the texts that differ in every row, by preference those of a name such as `source key`,
    else the shortest. Rows without a number are titles.

    Raises:
        DataError: only years or quarters; no column of names.
    """
    names = [_month(name) for name in table.names]
    dated = [n for n, name in enumerate(names) if any(map(str.isdigit, name)) and find_style(name) is not None]
    periods = [n for n, name in enumerate(names) if YEAR.fullmatch(name) or QUARTER.fullmatch(name)]
    rest = [n for n in range(len(names)) if n not in dated and n not in periods]
    count = len(dated) + len(periods)
    if (count < 3 and count < max(2, len(rest))) or any(table.columns[n].holds_dates(by_name=False) for n in rest):
        return table
    if len(dated) < 2:
        if len(periods) < 3 or options.date is not None:
            return table
        got = f"{names[periods[0]]}, {names[periods[1]]}, ... in the names of columns"
        raise DataError(
            f"{table.header}: expected daily, weekly or monthly prices, in a row for each date; got {got}: yearly and "
            "quarterly prices are not supported"
        )
    values = [table.columns[n] for n in dated]
    has_number = np.array([any(map(_is_filled, row)) for row in zip(*(column.texts for column in values))])
    rows = np.flatnonzero(has_number)
    if not rows.size:
        raise DataError(f"{table.origin.label}: expected prices; got only missing ones in {len(table)} rows")
    symbol = _find_names(table, rest, rows, options)
    labels = [table.columns[symbol].texts[row] for row in rows]
    units = next((table.columns[n].texts for n in rest if key(names[n]) in ("unit", "units", "unit name")), None)
    columns = [Column("date", [names[n] for n in dated])]
    for label, row in zip(labels, rows):
        unit = "" if units is None else units[row]
        if all(column.is_number for column in values):
            columns.append(
                Column(label, np.array([column.cells[row] for column in values], dtype=np.float64), unit=unit)
            )
        else:
            columns.append(Column(label, [column.texts[row] for column in values], unit=unit))
    ignored = ignored_columns(names[n] or "''" for n in (*rest, *periods) if n != symbol)
    titles = np.flatnonzero(~has_number)
    if titles.size:
        text = " ".join(filter(None, (table.columns[n].texts[titles[0]] for n in rest))) or "an empty row"
        ignored += (make_finding("ignored line", line=int(table.lines[titles[0]]), value=text, count=len(titles)),)
    return replace(
        table,
        columns=tuple(columns),
        lines=np.array(dated) + 1,
        origin=replace(table.origin, row_word="column"),
        findings=(*table.findings, *ignored),
    )


def _month(name: str) -> str:
    """`Jan 1997` for `Jan-97`; any other name unchanged."""
    match = SHORT_MONTH.fullmatch(name)
    if match is None:
        return name
    return f"{match[1]} {'19' if int(match[2]) > 68 else '20'}{match[2]}"  # as POSIX reads years


def _is_filled(text: str) -> bool:
    return any(map(str.isdigit, text))


def _find_names(table: Table, columns: list[int], rows: np.ndarray, options: ReadOptions) -> int:
    """The column of the symbols among the columns without dates."""
    if options.symbol is not None:
        symbol = table.find(options.symbol, "symbol", by=key)
        texts = [table.columns[symbol].texts[row] for row in rows]
        if len(set(texts)) == len(texts) and all(texts):
            return symbol
        got = next(text for text in texts if texts.count(text) > 1 or not text)
        raise DataError(
            f"{table.header}: expected a row for each symbol in {options.symbol!r}; got {got!r} twice or empty"
        )
    matches = []
    for n in columns:
        texts = [table.columns[n].texts[row] for row in rows]
        if all(texts) and len(set(texts)) == len(texts) and any(re.search(r"[^\W\d_]", text) for text in texts):
            matches.append((key(table.names[n]) not in (*CODES, *SYMBOLS, *OTHER_SYMBOLS), sum(map(len, texts)), n))
    if not matches:
        got = ", ".join(table.names[n] or "''" for n in columns) or "none"
        raise DataError(
            f"{table.header}: expected a column of names beside the dates in the header, different in every row; got "
            f"{got}; leave one row for each series, or name the column with --symbol NAME (symbol=)"
        )
    return min(matches)[2]

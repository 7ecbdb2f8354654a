"""Names of columns in several rows, in one as `Close CL=F`, or of series in the rows of a table turned sideways."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from torchcommodity.data._core.errors import DataError, ignored_columns, make_finding
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats import (
    DATES,
    FIELDS,
    HIGHS,
    INTERESTS,
    LOWS,
    OPENS,
    OTHER_SYMBOLS,
    PRICES,
    SYMBOLS,
    UNIT,
    VOLUMES,
    is_bar,
    key,
)
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.tables.table import Column, Table

BAR_FIELDS = {"open": OPENS, "high": HIGHS, "low": LOWS, "volume": VOLUMES, "open_interest": INTERESTS}

_TUPLE = re.compile(r"""\(\s*['"](.*?)['"],\s*['"](.*?)['"]\s*\)""")  # a label of two levels as pandas writes it
_GENERIC = re.compile(
    "prices?|data|dataset|table|export|download|file|histor(y|ical)|test|bars|ohlcv?|close|series|output|input|sample|"
    "untitled|new|daily|weekly|monthly|eod|quotes|book|sheet|csv|xlsx|parquet|te?mp|"
)
_ENDING = re.compile(r"\.(csv|txt|tsv|dat|parquet|pq|feather|arrow|xlsx?|gz|zst|bz2|xz|zip)$", re.IGNORECASE)
YEAR = re.compile(r"[12][0-9]{3}(\.0)?")
QUARTER = re.compile(r"[12][0-9]{3}[ -]?Q[1-4]")
SHORT_MONTH = re.compile(r"([^\W\d_]{3,9})[ '-]+([0-9]{2})")  # Jan-97
CODES = ("source key", "series id", "series code", "commodity code", "indicator code", "commodity", "commodity name")


def read_header_rows(table: Table) -> Table:
    """A frame of `pd.read_csv` of yfinance's file, in which the rows `Ticker` and `Date` are data, gets levels."""
    cells = [column.cells for column in table.columns]
    if (
        len(table) < 3
        or not all(isinstance(column, list) for column in cells)
        or cells[0][0] not in ("Ticker", "Price")
    ):
        return table
    names = tuple(re.sub(r"\.[0-9]+$", "", name) for name in table.names)
    first = 2 if find_style(cells[0][1]) is None else 1
    columns = tuple(replace(column, cells=column.cells[first:]) for column in table.columns)
    levels = (names, tuple(str(column[0]) for column in cells))
    dates = replace(columns[0], name="date")
    return replace(table, columns=(dates, *columns[1:]), lines=table.lines[first:], levels=levels)


def split_names(table: Table) -> Table:
    """A table whose names are `('Close', 'CL=F')`, or `Close CL=F`, `CL=F_Close` for bars, gets levels for them."""
    if table.levels:
        return table
    pairs = [_TUPLE.fullmatch(name) for name in table.names]
    if sum(pair is not None for pair in pairs) > 1:
        levels = zip(*((pair[1], pair[2]) if pair else (name, "") for pair, name in zip(pairs, table.names)))
        return replace(table, levels=tuple(levels))
    split = [_field_and_symbol(name) for name in table.names]
    fields = {key(field) for field, symbol in split if symbol}
    if not is_bar(fields) or sum(bool(symbol) for _, symbol in split) < len(split) - 1:
        return table
    return replace(table, levels=tuple(zip(*split)))


def pick_field(table: Table, column: str | None, prices: tuple[str, ...]) -> tuple[Table, str]:
    """The table with the chosen field of every symbol, named by its symbol, and the field.

    A header of several rows without fields is a row of names above a row of units, or titles above a row of names.

    Raises:
        DataError: no field that is a price, or `column` is none of them.
    """
    fields = []  # levels that name fields of bars: at least as many as other names, a price among them
    for n, names in enumerate(table.levels):
        keys = {key(name) for name in names}
        others = keys - FIELDS - set(DATES) - {"", "price", "ticker"}
        if len(keys & FIELDS) >= max(1, len(others)) and keys & {*PRICES} - {"price"}:
            fields.append(n)
    if not fields:
        return _without_levels(table), ""
    level = table.levels[fields[0]]
    known = {key(name): name for name in level if key(name) in FIELDS}
    wanted = key(column) if column else next((name for name in (*prices, *PRICES) if name in known), None)
    if wanted not in known:
        got = column or "none of " + ", ".join(PRICES[:4])
        raise DataError(f"{table.header}: expected a price column among {', '.join(known.values())}; got {got}")
    dates = [n for n, parts in enumerate(zip(*table.levels)) if any(key(part) in DATES for part in parts)]
    if len(dates) > 1 and table.kind != "DataFrame":
        got = f"{len(dates)}, of tables side by side"
        raise DataError(f"{table.header}: expected one column of dates; got {got}; save each table in its own file")
    date = next(iter(dates), 0)
    columns = [n for n, name in enumerate(level) if key(name) == wanted and n != date]
    rest = [names for n, names in enumerate(table.levels) if n != fields[0]]
    filled = [names for names in rest if any(names[1:])] or rest[:1]
    different = [names for names in filled if len({names[n] for n in columns}) == len(columns)]
    symbols = (different or filled)[0]
    chosen = ["date", *(symbols[n] or known[wanted] for n in columns)]
    return table.select([date, *columns], chosen), known[wanted]


def _field_and_symbol(name: str) -> tuple[str, str]:
    """Field and symbol of `Close CL=F` or `CL=F_Close`; no symbol in any other name."""
    for pattern, field, symbol in ((r"(.+?)[ _|:.-]+(.+)", 1, 2), (r"(.+)[ _|:.-]+(.+?)", 2, 1)):
        if (match := re.fullmatch(pattern, name)) and key(match[field]) in FIELDS:
            return match[field], match[symbol]
    return name, ""


def _without_levels(table: Table) -> Table:
    """One row of names: the first, if the second is a row of units, or of other texts without a name for the dates."""
    first, *rest = table.levels
    has_units = len(rest) == 1 and all(first[1:]) and not rest[0][0]
    if has_units and (first[0] or all(map(UNIT.fullmatch, rest[0][1:]))):
        columns = tuple(
            replace(column, name=name, unit=unit.strip("()"))
            for column, name, unit in zip(table.columns, first, rest[0])
        )
        return replace(table, columns=columns, levels=())
    if table.kind == "DataFrame":
        raise DataError(
            f"{table.origin.label}: expected one level of column names, or a level of fields such as Close; got "
            f"{len(table.levels)} (select one first, such as frame['Close'])"
        )
    titles = tuple(" ".join(filter(None, level)) for level in table.levels[:-1])
    return replace(table, levels=(), titles=table.titles + titles)


def field_names(table: Table, fields: Sequence[str] = tuple(BAR_FIELDS)) -> dict[str, str]:
    """Field -> the name of its column, or of its columns in a header of several rows; only those that are there.

    >>> from torchcommodity.data._sources.tables.delimited import read_delimited
    >>> from torchcommodity.data._sources.tables.table import Origin
    >>> field_names(read_delimited(b"Date,Open,Vol.,Price\\n2024-01-02,71.7,293361,70.38\\n", Origin("bars.csv")))
    {'open': 'Open', 'volume': 'Vol.'}
    """
    levels = split_names(read_header_rows(table)).levels or (table.names,)
    names = {key(name): name for level in levels for name in level}
    matches = {field: next((names[word] for word in BAR_FIELDS[field] if word in names), None) for field in fields}
    return {field: name for field, name in matches.items() if name is not None}


def symbol_of_file(path: str, pattern: str = "") -> str:
    """The symbol in a file name, or "" where the name says nothing (`data.csv`).

    Args:
        path: the file; folders and endings do not count.
        pattern: of the vendor's file names; group 1 is the symbol.

    >>> symbol_of_file("in/CL=F.csv.gz"), symbol_of_file("prices.csv"), symbol_of_file("cl.f_d.csv", r"(.+)_d")
    ('CL=F', '', 'cl.f')
    """
    stem = re.split(r"[/\\]", path)[-1].strip()
    while (shorter := _ENDING.sub("", stem)) != stem:
        stem = shorter
    if pattern and (match := re.fullmatch(pattern, stem)):
        stem = match[1]
    is_generic = _GENERIC.fullmatch(re.sub(r"[\W_\d]+", "", stem.lower()))
    return "" if is_generic or not stem.isprintable() else stem.strip()


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

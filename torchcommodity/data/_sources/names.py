"""Names of columns that stand in several rows, or in one as `Close CL=F`, and the symbol in the name of a file."""

import re
from collections.abc import Sequence
from dataclasses import replace

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats import (
    DATES,
    FIELDS,
    HIGHS,
    INTERESTS,
    LOWS,
    OPENS,
    PRICES,
    VOLUMES,
    is_bar,
    key,
)
from torchcommodity.data._sources.tables.table import Table

BAR_FIELDS = {"open": OPENS, "high": HIGHS, "low": LOWS, "volume": VOLUMES, "open_interest": INTERESTS}

_TUPLE = re.compile(r"""\(\s*['"](.*?)['"],\s*['"](.*?)['"]\s*\)""")  # a label of two levels as pandas writes it
_GENERIC = re.compile(
    "prices?|data|dataset|table|export|download|file|histor(y|ical)|test|bars|ohlcv?|close|series|output|input|sample|"
    "untitled|new|daily|weekly|monthly|eod|quotes|book|sheet|csv|xlsx|parquet|te?mp|"
)
_ENDING = re.compile(r"\.(csv|txt|tsv|dat|parquet|pq|feather|arrow|xlsx?|gz|zst|bz2|xz|zip)$", re.IGNORECASE)


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
    rest = [names for n, names in enumerate(table.levels) if n != fields[0]]
    symbols = next((names for names in rest if any(names[1:])), rest[0])
    known = {key(name): name for name in level if key(name) in FIELDS}
    wanted = key(column) if column else next((name for name in (*prices, *PRICES) if name in known), None)
    if wanted not in known:
        got = column or "none of " + ", ".join(PRICES[:4])
        raise DataError(f"{table.header}: expected a price column among {', '.join(known.values())}; got {got}")
    date = next((n for n, parts in enumerate(zip(*table.levels)) if any(key(part) in DATES for part in parts)), 0)
    columns = [n for n, name in enumerate(level) if key(name) == wanted and n != date]
    chosen = ["date", *(symbols[n] or known[wanted] for n in columns)]
    return table.select([date, *columns], chosen), known[wanted]


def _field_and_symbol(name: str) -> tuple[str, str]:
    """Field and symbol of `Close CL=F` or `CL=F_Close`; no symbol in any other name."""
    for pattern, field, symbol in ((r"(.+?)[ _|:.-]+(.+)", 1, 2), (r"(.+)[ _|:.-]+(.+?)", 2, 1)):
        if (match := re.fullmatch(pattern, name)) and key(match[field]) in FIELDS:
            return match[field], match[symbol]
    return name, ""


def _without_levels(table: Table) -> Table:
    """One row of names: the first, if the second is a row of units without a name for the dates."""
    first, *rest = table.levels
    if len(rest) == 1 and all(first) and not rest[0][0]:
        columns = tuple(
            replace(column, name=name, unit=unit) for column, name, unit in zip(table.columns, first, rest[0])
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

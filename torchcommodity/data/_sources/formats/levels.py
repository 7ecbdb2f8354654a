"""Tables with a field and a symbol in every column name, reduced to one column per symbol."""

import re
from dataclasses import replace

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats.names import DATES, FIELDS, PRICES, is_bar, key
from torchcommodity.data._sources.tables.table import Table

_TUPLE = re.compile(r"""\(\s*['"](.*?)['"],\s*['"](.*?)['"]\s*\)""")  # a label of two levels as pandas writes it


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
    split = [_split(name) for name in table.names]
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
    fields = [n for n, level in enumerate(table.levels) if _is_fields(level)]
    if not fields:
        return _without_levels(table), ""
    level = table.levels[fields[0]]
    others = [names for n, names in enumerate(table.levels) if n != fields[0]]
    symbols = next((names for names in others if _distinct(names) and not _is_index(names)), others[0])
    known = {key(name): name for name in level if key(name) in FIELDS}
    wanted = key(column) if column else next((name for name in (*prices, *PRICES) if name in known), None)
    if wanted not in known:
        got = column or "none of " + ", ".join(PRICES[:4])
        raise DataError(f"{table.header}: expected a price column among {', '.join(known.values())}; got {got}")
    date = next((n for n, parts in enumerate(zip(*table.levels)) if any(key(part) in DATES for part in parts)), 0)
    columns = [n for n, name in enumerate(level) if key(name) == wanted and n != date]
    names = ["date", *(symbols[n] or known[wanted] for n in columns)]
    return table.select([date, *columns], names), known[wanted]


def _is_fields(level: tuple[str, ...]) -> bool:
    keys = {key(name) for name in level}
    return len(keys & FIELDS) >= max(1, len(keys - FIELDS - set(DATES) - {"", "price", "ticker"})) and bool(
        keys & {*PRICES} - {"price"}
    )


def _is_index(level: tuple[str, ...]) -> bool:
    return not any(level[1:])


def _distinct(level: tuple[str, ...]) -> bool:
    return any(level[1:])


def _split(name: str) -> tuple[str, str]:
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

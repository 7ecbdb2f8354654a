"""Convert the columns of a `Table` at once to days, prices and names; an error names the row and the value."""

from collections.abc import Sequence

import numpy as np

from torchcommodity.data._cells import expected_range, overflows, parse_price, parse_prices
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, DateParser, Origin, check_years
from torchcommodity.data._tables import Column, Table


def to_days(column: Column, table: Table, origin: Origin) -> Array:
    """The calendar days `(R,)` of a column of dates; a time counts as the day as written.

    Raises:
        DataError: a missing or impossible date, or a column of something else.
    """
    if isinstance(column.cells, list):
        dates = DateParser(origin)
        days = [dates.parse(text, int(line)) for text, line in zip(column.cells, table.lines)]
        return np.array(days, dtype="datetime64[D]")
    if not column.is_time:
        got = f"{column.dtype} {column.cells.tolist()[0]!r}"
        raise DataError(f"{origin.at(int(table.lines[0]))}: expected dates in {column.name!r}; got {got}")
    if (missing := np.flatnonzero(np.isnat(column.cells))).size:
        raise DataError(f"{origin.at(int(table.lines[missing[0]]))}: expected a date; got a missing one")
    check_years(column.cells, table.lines, origin)
    return column.cells.astype("datetime64[D]")


def to_prices(column: Column, table: Table, origin: Origin, names: Sequence[str] = ()) -> Array:
    """The prices `(R,)` of a column, NaN = missing; `names` of the rows open the messages, default: the column's.

    Raises:
        DataError: a cell that is not a finite price.
    """
    prices = _numbers(column, table, origin, names)
    if (unusable := np.flatnonzero(overflows(prices))).size:
        row = int(unusable[0])
        name, where = names[row] if names else column.name, origin.at(int(table.lines[row]))
        raise DataError(f"{where}: {name!r}: expected {expected_range(float(prices[row]))}")
    return prices


def _numbers(column: Column, table: Table, origin: Origin, names: Sequence[str]) -> Array:
    if isinstance(column.cells, list):
        return _parse(column, column.cells, table, origin, names)
    if not column.is_number:
        got = f"{column.dtype} {column.cells.tolist()[0]!r}"
        raise DataError(f"{origin.at(int(table.lines[0]))}: {column.name!r}: expected prices; got {got}")
    return column.cells.astype(np.float64)


def to_texts(column: Column | None, table: Table) -> list[str]:
    """The text `(R,)` of a column, "" = missing; all "" for an optional column that the table does not have."""
    if column is None:
        return [""] * len(table)
    if isinstance(column.cells, list):
        return [text.strip() for text in column.cells]
    return ["" if cell is None or cell != cell else str(cell) for cell in column.cells.tolist()]


def _parse(column: Column, cells: list[str], table: Table, origin: Origin, names: Sequence[str]) -> Array:
    try:
        return np.array(parse_prices(cells))
    except ValueError:
        for row, cell in enumerate(cells):  # again, cell by cell, to name the first bad one
            try:
                parse_price(cell)
            except ValueError as error:
                name = names[row] if names else column.name
                raise DataError(f"{origin.at(int(table.lines[row]))}: {name!r}: expected {error}") from None
        raise

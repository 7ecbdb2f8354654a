"""Convert the columns of a `Table` at once to times, prices and names; an error names the row and the value."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import expected_range, overflows
from torchcommodity.data._sources.columns.cells import parse_prices
from torchcommodity.data._sources.columns.dates import parse_dates
from torchcommodity.data._sources.columns.numbers import (
    could_prove_another,
    decimal_evidence,
    grouped_by_points,
    has_comma,
    parse_number,
    with_point,
    without_currency,
)
from torchcommodity.data._sources.grid import check_years
from torchcommodity.data._sources.tables.table import Column, Table

FIXED_POINT = 10**9  # units of a price in Databento's integers
UNDEFINED = 2**63 - 1  # its missing price


def to_times(column: Column, table: Table, order: str | None = None) -> Array:
    """The local times `(R,) datetime64` of a column of dates; integers are YYYYMMDD, YYYYMM or times since 1970.

    Raises:
        DataError: a missing or impossible date, or a column of something else.
    """
    if isinstance(column.cells, list):
        return parse_dates(column.cells, table.lines, table.origin, order)
    if column.is_number:
        missing = np.flatnonzero(np.isnan(column.cells.astype(np.float64)))
        if not missing.size:
            return parse_dates([str(int(cell)) for cell in column.cells.tolist()], table.lines, table.origin)
    elif not column.is_time:
        got = f"{column.dtype} {column.cells.tolist()[0]!r}"
        raise DataError(f"{table.at(0)}: expected dates in {column.name!r}; got {got}")
    else:
        missing = np.flatnonzero(np.isnat(column.cells))
    if missing.size:
        raise DataError(f"{table.at(missing[0])}: expected a date; got a missing one")
    check_years(column.cells, table.lines, table.origin)
    return column.cells


def to_days(column: Column, table: Table, order: str | None = None) -> Array:
    """The calendar days `(R,)` of a column of dates; a time counts as the day as written. See `to_times`."""
    return to_times(column, table, order).astype("datetime64[D]")


def to_prices(column: Column, table: Table, decimal: str | None = None, names: Sequence[str] = ()) -> Array:
    """The prices `(R,)` of a column; see `to_price_matrix`."""
    return to_price_matrix([column], table, decimal, names)[:, 0]


def to_price_matrix(
    columns: Sequence[Column], table: Table, decimal: str | None = None, names: Sequence[str] = ()
) -> Array:
    """The prices `(R, K)` of K columns, NaN = missing; `names` of the rows open the messages, default: the columns'.

    Where text is not plain numbers, decimal mark and thousands separators are decided from all the columns.

    Raises:
        DataError: a cell that is not a finite price.
    """
    columns = [_plain(column) for column in columns]
    texts = [(column.name, column.cells) for column in columns if isinstance(column.cells, list)]
    plain = decimal != "," and not any(has_comma(cells) for _, cells in texts)
    if plain and decimal is None:
        _check_points(texts, table.origin.label)
    mark = "" if plain else decimal or _decide_decimal(texts, table)
    return np.stack([_convert(column, table, mark, names) for column in columns], axis=1)


def _check_points(columns: list[tuple[str, list[str]]], label: str) -> None:
    """A `DataError` if 1.021 beside 985 may be a thousand."""
    for name, cells in columns:
        if cell := grouped_by_points(cells):
            raise DataError(
                f"{label}: {name!r}: expected a decimal point; got {cell!r} beside whole numbers, whose point "
                "can separate thousands; say which with --decimal , or --decimal . (decimal=)"
            )


def _plain(column: Column) -> Column:
    """The column without the sign of a currency."""
    return replace(column, cells=without_currency(column.cells)) if isinstance(column.cells, list) else column


def _convert(column: Column, table: Table, mark: str, names: Sequence[str]) -> Array:
    if isinstance(column.cells, list):
        prices = _parse(column, column.cells, table, mark, names)
    elif column.is_number:
        prices = column.cells.astype(np.float64)
    else:
        got = f"{column.dtype} {column.cells.tolist()[0]!r}"
        raise DataError(f"{table.at(0)}: {column.name!r}: expected prices; got {got}")
    if (unusable := np.flatnonzero(overflows(prices))).size:
        row = int(unusable[0])
        name, where = names[row] if names else column.name, table.at(row)
        raise DataError(f"{where}: {name!r}: expected {expected_range(float(prices[row]))}")
    return prices


def fixed_point(column: Column, prices: Array) -> Array:
    """Databento's prices are integers in units of 1e-9 unless they were converted; 2**63 - 1 is missing."""
    texts = isinstance(column.cells, list)
    is_integer = not any("." in cell for cell in column.cells) if texts else bool((prices == np.floor(prices)).all())
    missing = prices >= UNDEFINED
    return np.where(missing, np.nan, prices / FIXED_POINT) if is_integer else prices


def to_texts(column: Column | None, table: Table) -> list[str]:
    """The text `(R,)` of a column, "" = missing; all "" for an optional column that the table does not have."""
    if column is None:
        return [""] * len(table)
    if isinstance(column.cells, list):
        stripped = {text: text.strip() for text in set(column.cells)}
        return [stripped[text] for text in column.cells]
    return ["" if cell is None or cell != cell else str(cell) for cell in column.cells.tolist()]


def _parse(column: Column, cells: list[str], table: Table, mark: str, names: Sequence[str]) -> Array:
    try:
        return np.array(parse_prices(with_point(cells, mark)))
    except ValueError:
        pass  # again, cell by cell: with spaces as thousands separators, or to name the first bad one
    prices = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            prices[row] = parse_number(cell, mark or ".")
        except ValueError as error:
            name = names[row] if names else column.name
            raise DataError(f"{table.at(row)}: {name!r}: expected {error}") from None
    return prices


def _decide_decimal(columns: list[tuple[str, list[str]]], table: Table) -> str:
    """The decimal mark that the cells of all columns, by name, prove.

    Raises:
        DataError: cells that prove different marks, or none.
    """
    proofs: dict[str, tuple[int, str, str]] = {}
    for name, cells in columns:
        if len(proofs) == 1 and not could_prove_another(cells, *proofs):
            continue
        for row, cell in enumerate(cells):
            if (mark := decimal_evidence(cell)) and (mark not in proofs or row < proofs[mark][0]):
                proofs[mark] = (row, cell, name)
                if not could_prove_another(cells, mark):
                    break
    if len(proofs) == 2:
        (early, first, _), (row, cell, name) = sorted(proofs.values())
        raise DataError(
            f"{table.at(row)}: {name!r}: expected one decimal mark in the file, as in {first!r} "
            f"({table.origin.row_word} {table.lines[early]}); got {cell!r}; state it with --decimal . or --decimal ,"
        )
    if proofs:
        return next(iter(proofs))
    undecided = ((row, cell, name) for name, cells in columns for row, cell in enumerate(cells) if has_comma([cell]))
    row, cell, name = next(undecided)
    raise DataError(
        f"{table.at(row)}: {name!r}: expected a decimal point; got {cell!r}, whose comma can be a "
        "decimal mark or separate thousands; say which with --decimal , or --decimal . (decimal=)"
    )

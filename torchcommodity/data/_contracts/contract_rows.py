"""Rows of single contracts, from a table: the contract of each row, its prices, and what is left out."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from torchcommodity.data._contracts.contract_roles import Roles
from torchcommodity.data._core.arrays import Array, Dates, Months
from torchcommodity.data._core.contract_codes import ContractCode, delivery_months, find_product, parse_contract
from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.errors import DataError, Finding, make_finding
from torchcommodity.data._sources.columns.column import Column, fixed_point
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.formats.names import key
from torchcommodity.data._sources.tables.table import Table

AUTOMATIC = ReadOptions()
Products = Mapping[str, str | None]


class Rows(NamedTuple):
    """The rows of single contracts; arrays of length R."""

    lines: Array
    dates: Dates
    symbols: Array  # numbers of `names`
    deliveries: Months
    expiries: Dates  # as stated; NaT = not stated
    prices: Array
    volume: Array | None
    open_interest: Array | None

    def take(self, rows: Array) -> "Rows":
        """These rows."""
        return Rows(*(None if x is None else x[rows] for x in self))  # type: ignore[arg-type]


class Parsed(NamedTuple):
    """Rows with the names of their symbols, each with its product and unit."""

    rows: Rows
    names: tuple[str, ...]
    products: tuple[str | None, ...]
    units: tuple[str, ...]
    findings: list[Finding]


def parse_rows(table: Table, roles: Roles, products: Products, options: ReadOptions = AUTOMATIC) -> Parsed:
    """Parse the rows; those of spreads, options and combinations, and those without a price, are left out.

    Raises:
        DataError: a cell that cannot be read, a contract without a product, an unknown symbol in `products`.
    """
    days = table.days(roles.date, options.date_order)
    expiries = np.full(len(table), np.datetime64("NaT", "D"), dtype="datetime64[D]")
    if roles.expiry is not None:
        expiries = table.days(roles.expiry, options.date_order)
    codes = _codes(table, roles)
    outright = np.array([code is not None for code in codes])
    names, roots, numbers = _symbols(table, roles, codes)
    if unknown := [name for name in products if name not in names]:
        raise DataError(f"contracts: expected symbols among {', '.join(names[:20])}; got {', '.join(unknown)}")
    listed = tuple(products.get(name, find_product(root) or find_product(name)) for name, root in zip(names, roots))
    _ = [get_contract(code) for code in listed if code is not None]  # raises for an unknown code
    prices = table.prices([roles.price], options.decimal)[:, 0]
    if any(key(name) == "instrument id" for name in table.names):
        prices = fixed_point(roles.price, prices)
    keep = np.flatnonzero(outright & ~np.isnan(prices))
    if not keep.size:
        raise DataError(f"{table.origin.label}: expected prices of single contracts; got none in {len(table)} rows")
    deliveries = _deliveries([codes[row] for row in keep], days[keep], expiries[keep], numbers[keep], listed)
    volume, open_interest = (
        None if column is None else table.prices([column], options.decimal)[keep, 0]
        for column in (roles.volume, roles.open_interest)
    )
    rows = Rows(
        table.lines[keep], days[keep], numbers[keep], deliveries, expiries[keep], prices[keep], volume, open_interest
    )
    units = _units(table, roles.unit, numbers, len(names))
    return Parsed(rows, names, listed, units, _left_out(table, roles, outright))


def _codes(table: Table, roles: Roles) -> list[ContractCode | None]:
    """The contract of each row: None for a spread or an option; year 0 where only the expiry tells."""
    column = roles.contract or roles.delivery
    if column is None:
        return [ContractCode("", 1, 0, 0)] * len(table)
    parsed: dict[str, ContractCode | None] = {}
    texts = _texts(column, table)
    for row, text in enumerate(texts):
        if text not in parsed:
            try:
                parsed[text] = parse_contract(text)
            except ValueError as error:
                raise DataError(f"{table.at(row)}: {column.name!r}: expected {error}") from None
    return [parsed[text] for text in texts]


def _texts(column: Column, table: Table) -> list[str]:
    """Codes as text; months that pandas made timestamps or floating-point numbers as `2024-12` and `202412`."""
    if column.is_time:
        return np.asarray(column.cells).astype("datetime64[M]").astype(str).tolist()  # type: ignore[no-any-return]
    return [text.removesuffix(".0") for text in table.texts(column)]


def _symbols(table: Table, roles: Roles, codes: list[ContractCode | None]) -> tuple[tuple[str, ...], list[str], Array]:
    """Names of the symbols in order of appearance, the product in their codes, and the symbol of each row."""
    roots = [code.root if code else "" for code in codes]
    texts = table.texts(roles.symbol)
    names = roots if roles.symbol is None or _repeats_code(texts, codes) else texts
    numbers: dict[str, int] = {}
    own_roots: list[str] = []
    column = np.full(len(names), -1)
    for row, (name, code) in enumerate(zip(names, codes)):
        if code is None:
            continue
        if not name or not name.isprintable():
            raise DataError(
                f"{table.at(row)}: expected the product of the contract, in its code (CLZ24) or in "
                f"a column symbol; got {name!r}"
            )
        if name not in numbers:
            numbers[name] = len(numbers)
            own_roots.append(roots[row])
        column[row] = numbers[name]
    return tuple(numbers), own_roots, column


def _repeats_code(texts: list[str], codes: list[ContractCode | None]) -> bool:
    """Whether the symbol of the first contract is its code again (`CLZ24` beside a delivery month)."""
    row, code = next(((row, code) for row, code in enumerate(codes) if code is not None), (0, None))
    try:
        again = parse_contract(texts[row])
    except ValueError:
        return False
    if again is None or code is None or not again.root or again.root != (code.root or again.root):
        return False
    return (again.month, again.year % 10) == (code.month, code.year % 10)  # `CORN0` is no contract of July


def _deliveries(
    codes: list[ContractCode | None], days: Dates, expiries: Dates, symbols: Array, products: tuple[str | None, ...]
) -> Months:
    known = [code for code in codes if code is not None]
    if known[0].digits:
        return delivery_months(known, days)
    months: Months = expiries.astype("datetime64[M]")
    for number, product in enumerate(products):
        if product is not None and (contract := get_contract(product)).last_day is not None:
            own = symbols == number
            unique, index = np.unique(expiries[own], return_inverse=True)
            around: Any = unique.astype("datetime64[M]")[:, None] + np.arange(-1, 4)
            last = contract.last_trading_days(around.ravel()).reshape(around.shape)
            listed = np.isin(around.astype(np.int64) % 12 + 1, contract.delivery_months())
            distance = np.where(listed, np.abs((last - unique[:, None]).astype(np.int64)), 999)
            months[own] = around[np.arange(len(unique)), distance.argmin(axis=1)][index]
    return months


def _units(table: Table, column: Column | None, numbers: Array, count: int) -> tuple[str, ...]:
    texts = table.texts(column)
    return tuple(texts[int(np.argmax(numbers == number))] for number in range(count))


def _left_out(table: Table, roles: Roles, outright: Array) -> list[Finding]:
    rows = np.flatnonzero(~outright)
    if not rows.size or (column := roles.contract or roles.delivery) is None:
        return []
    value = f"{_texts(column, table)[rows[0]]} is not one contract"
    return [make_finding("combined contract", line=int(table.lines[rows[0]]), value=value, count=len(rows))]

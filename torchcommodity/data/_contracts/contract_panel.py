"""Panels of tables in which each price belongs to a contract, told from other tables by their codes or columns."""

from dataclasses import replace

import numpy as np
import torch

from torchcommodity.data._contracts.continuous import RollRule, continuous_panel
from torchcommodity.data._contracts.contract_table import NAMES, contracts_of_table, find_roles, melt_contracts
from torchcommodity.data._core.contracts import ContractCode, delivery_months, numbers_months, parse_contract
from torchcommodity.data._core.errors import DataError, condense, ignored_columns, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array, Dates, Months
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.formats import key
from torchcommodity.data._sources.names import symbol_of_file
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.tables.table import Column, Table
from torchcommodity.opkit import MetadataTensor

COLUMNS = frozenset({"price", "price contract", "forward", "forward contract"})


def is_multiple_prices(table: Table) -> bool:
    """Whether a table has the columns of `multiple_prices`."""
    return {key(name) for name in table.names} >= COLUMNS


def multiple_prices(table: Table, symbol: str) -> Panel:
    """The panel of the price, with its delivery months and a curve of two contracts: the price and the forward.

    The forward is the contract into which the price rolls. Of several rows on one day, the last with a price counts.

    Raises:
        DataError: a cell that cannot be read, or a price that returns to an earlier contract.
    """
    columns = {key(column.name): column for column in table.columns}
    date = next((column for name, column in columns.items() if name in ("datetime", "date", "index", "")), None)
    if date is None:
        raise DataError(f"{table.header}: expected a column DATETIME; got {', '.join(table.names)}")
    times = table.times(date)
    prices = table.prices([columns["price"], columns["forward"]])
    rows = np.argsort(times, kind="stable")
    rows = rows[~np.isnan(prices[rows, 0])]
    if rows.size:  # the last one of each day
        rows = rows[np.append(np.diff(times[rows].astype("datetime64[D]")) > np.timedelta64(0, "D"), True)]
    if not rows.size:
        raise DataError(f"{table.origin.label}: expected prices; got only missing ones in {len(table)} rows")
    dates = times[rows].astype("datetime64[D]")
    held, following = (_months(columns[name], table, dates, rows) for name in ("price contract", "forward contract"))
    curve = prices[rows]
    other = np.flatnonzero((held[1:] != held[:-1]) & (held[1:] != following[:-1]))
    curve[other, 1] = np.nan
    origin = table.origin
    record = Provenance(
        origin.publisher, origin.location or origin.label, origin.license, origin.retrieved, origin.sha256, symbol
    )
    panel = Panel(
        MetadataTensor(torch.from_numpy(curve[:, :1].copy())),
        dates,
        (symbol,),
        ("",),
        (record,),
        curve=MetadataTensor(torch.from_numpy(curve[:, None])),
        deliveries=held[:, None],
        read_as="pysystemtrade, PRICE with its contract, 1 symbol",
    )
    carry = (name for name in table.names if key(name).startswith("carry"))
    findings = [*table.findings, *ignored_columns(carry, symbol, line=0)]
    if other.size:
        value = f"the price rolled into {held[other[0] + 1]}, which was not the forward"
        findings.append(make_finding("other forward", symbol, dates[other[0] + 1], value=value, count=len(other)))
    return replace(panel, findings=condense([*findings, *inspect(panel)]))


def _months(column: Column, table: Table, dates: Dates, rows: Array) -> Months:
    """Delivery months of contracts such as 20240200, NaT = missing."""
    texts = [text.removesuffix(".0") for text in np.array(table.texts(column), dtype=object)[rows]]
    months = np.full(len(rows), np.datetime64("NaT", "M"), dtype="datetime64[M]")
    known = [row for row, text in enumerate(texts) if text and text.lower() != "nan"]
    codes = []
    for row in known:
        try:
            codes.append(parse_contract(texts[row]))
        except ValueError as error:
            raise DataError(f"{table.at(rows[row])}: {column.name!r}: expected {error}") from None
    if known:
        months[known] = delivery_months([code for code in codes if code is not None], dates[known])
    return months


DATABENTO = ("ts event", "instrument id")  # whose codes have years of one digit


def panel_of_contracts(table: Table, options: ReadOptions) -> Panel | None:
    """The front month, rolled at expiry, of a table by contract; None for any other table."""
    stated = options.format == "contracts" or not (options.roll is options.adjustment is options.contract is None)
    if not stated and (table.levels or options.format not in (None, "pysystemtrade", "databento")):
        return None
    if not stated and options.column is None and is_multiple_prices(table):
        return multiple_prices(table, symbol_of_file(table.origin.file) or "PRICE")
    if not stated and not is_by_contract(table, options):
        return None
    rule, adjustment = RollRule.parse(options.roll or "expiry"), options.adjustment or "none"
    prices = contracts_of_table(table, options.contracts or {}, options)
    count, names = len(prices.deliveries), len(prices.symbols)
    adjusted = "" if adjustment == "none" else f", {adjustment} adjustment"
    words = f"contracts, front month by {rule} of {count} contracts{adjusted}, {names} symbol{'s' * (names > 1)}"
    return replace(continuous_panel(prices, rule, adjustment), read_as=words)


def is_by_contract(table: Table, options: ReadOptions) -> bool:
    """Whether a table has prices of several contracts of one product.

    Its contract or symbol column (or the names of its columns, if it is wide) are codes of contracts, at least two of
    one product; or a symbol has two prices on one day, for different delivery months or expiries. Codes with a year of
    one digit, which other names resemble (`NG1`), count in a column named as contract and in the layout of Databento;
    there, one other text in five is an error of the table, not another kind of table.
    """
    long = melt_contracts(table)
    try:
        roles = find_roles(long, options)
    except DataError:
        return False
    if roles.contract is None:  # whether a symbol has prices for several delivery months or expiries on one day
        months = roles.delivery or roles.expiry
        if roles.symbol is None or months is None:
            return False
        days, names = (list(map(str, column.cells)) for column in (roles.date, roles.symbol))
        return len(set(zip(days, names))) < len(set(zip(days, names, map(str, months.cells))))
    if not isinstance(roles.contract.cells, list):
        return False
    texts, codes = list(dict.fromkeys(roles.contract.cells)), []
    numbered = numbers_months(texts)
    for text in texts:
        try:  # a combination counts as a code that is no contract
            codes.append(parse_contract(text, numbered=numbered) or ContractCode(text, 0, 0, 2))
        except ValueError:
            continue
    named = {key(name) for name in table.names}
    is_named = named.issuperset(DATABENTO) or not named.isdisjoint(NAMES["contract"])
    others = len(texts) - len(codes)
    if others > (0.2 * len(texts) if is_named else 0) or (not is_named and any(code.digits == 1 for code in codes)):
        return False
    return len({(code.root, code.year, code.month) for code in codes}) > len({code.root for code in codes})

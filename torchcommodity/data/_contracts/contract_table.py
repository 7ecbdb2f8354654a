"""The prices by contract of a table: number the contracts, check them, sort the rows."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from torchcommodity.data._contracts.contract_roles import find_roles, melt_contracts
from torchcommodity.data._contracts.contract_rows import AUTOMATIC, Parsed, Products, parse_rows
from torchcommodity.data._core.arrays import Array, Dates, Months
from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.errors import DataError, Finding, condense, make_finding, summarize_names
from torchcommodity.data._core.provenance import Provenance, utc_now
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.tables.frames import read_frame
from torchcommodity.data._sources.tables.table import Origin, Table

MAX_DAYS_AFTER = 10  # calendar days after its last trading day on which a contract may have a price, left out


@dataclass(frozen=True, eq=False)
class ContractTable:
    """Prices of K contracts of N products, in R rows: the fields of `ContractPrices`."""

    symbols: tuple[str, ...]
    products: tuple[str | None, ...]
    units: tuple[str, ...]
    provenance: tuple[Provenance, ...]
    columns: Array
    deliveries: Months
    expiries: Dates
    contracts: Array
    dates: Dates
    prices: Array
    volume: Array | None = None
    open_interest: Array | None = None
    findings: tuple[Finding, ...] = ()

    def select(self, symbol: str) -> tuple[Array, Array]:
        """Numbers of a symbol's contracts and of its rows.

        Raises:
            DataError: an unknown symbol.
        """
        if symbol not in self.symbols:
            raise DataError(f"symbols: expected names among {summarize_names(self.symbols, 20)}; got {symbol!r}")
        own = self.columns == self.symbols.index(symbol)
        return np.flatnonzero(own), np.flatnonzero(own[self.contracts])


class Listing(NamedTuple):
    """The contracts of a table: `series (K,)` and `deliveries (K,)`, and the contract of each row `(R,)`."""

    parsed: Parsed
    series: Array
    deliveries: Months
    contracts: Array
    origin: Origin

    def at(self, row: int) -> str:
        """`prices.csv, line 7: CL 2024-12 on 2024-11-20`."""
        rows, contract = self.parsed.rows, self.contracts[row]
        name = f"{self.parsed.names[self.series[contract]]} {self.deliveries[contract]}"
        return f"{self.origin.at(int(rows.lines[row]))}: {name} on {rows.dates[row]}"


def contracts_from_frame(frame: Any, operation: str, products: Products) -> ContractTable:
    """See `ContractPrices.from_pandas`; polars and Arrow frames are accepted too."""
    origin = Origin(operation, location="memory", retrieved=utc_now(), row_word="row")
    if (table := read_frame(frame, origin)) is None:
        raise TypeError(f"{operation}: prices by contract must be a DataFrame; got {type(frame).__name__}")
    return contracts_of_table(table, products)


def contracts_of_table(table: Table, products: Products, options: ReadOptions = AUTOMATIC) -> ContractTable:
    """The prices by contract of a table, long or with a column per contract; see `read_contracts`."""
    if not len(table):
        raise DataError(f"{table.origin.label}: expected rows; got none")
    table, origin = melt_contracts(table), table.origin
    roles = find_roles(table, options.column)
    parsed = parse_rows(table, roles, products, options)
    rows = parsed.rows
    keys = np.stack([rows.symbols, rows.deliveries.astype(np.int64)])
    (series, months), contracts = np.unique(keys, axis=1, return_inverse=True)
    listing = Listing(parsed, series, months.astype("datetime64[M]"), contracts.ravel(), origin)
    expiries, stated = _expiries(listing)
    late, after = _after_expiry(listing, expiries)
    order, repeated = _order(listing, late)
    rows = rows.take(order)
    digest = origin.sha256 or hashlib.sha256(rows.prices.tobytes()).hexdigest()
    where = origin.location or origin.label
    record = Provenance(origin.publisher, where, origin.license, origin.retrieved, digest, "")
    return ContractTable(
        parsed.names,
        parsed.products,
        parsed.units,
        tuple(replace(record, series=name) for name in parsed.names),
        listing.series,
        listing.deliveries,
        expiries,
        listing.contracts[order],
        rows.dates,
        rows.prices,
        rows.volume,
        rows.open_interest,
        condense([*roles.findings, *parsed.findings, *stated, *after, *repeated]),
    )


def _expiries(listing: Listing) -> tuple[Dates, list[Finding]]:
    """Last trading days (K,): as stated, else by the exchange's rule."""
    by_rule = _rule_expiries(listing)
    stated = np.full(len(listing.series), np.datetime64("NaT", "D"), dtype="datetime64[D]")
    days = listing.parsed.rows.expiries
    stated[listing.contracts] = days
    if (other := np.flatnonzero((stated[listing.contracts] != days) & ~np.isnat(days))).size:
        got = f"{days[other[0]]} and {stated[listing.contracts[other[0]]]}"
        raise DataError(f"{listing.at(int(other[0]))}: expected one expiry per contract; got {got}")
    differs = np.flatnonzero(~np.isnat(stated) & ~np.isnat(by_rule) & (stated != by_rule))
    findings = []
    for number in np.unique(listing.series[differs]):
        own = differs[listing.series[differs] == number]
        value = f"{listing.deliveries[own[0]]} ends on {stated[own[0]]}, by the exchange's rule on {by_rule[own[0]]}"
        findings.append(make_finding("other expiry", listing.parsed.names[number], value=value, count=len(own)))
    return np.where(np.isnat(stated), by_rule, stated), findings


def _rule_expiries(listing: Listing) -> Dates:
    expiries = np.full(len(listing.series), np.datetime64("NaT", "D"), dtype="datetime64[D]")
    for number, product in enumerate(listing.parsed.products):
        own = listing.series == number
        if product is not None and get_contract(product).last_day is not None:
            expiries[own] = get_contract(product).last_trading_days(listing.deliveries[own])
    return expiries


def _after_expiry(listing: Listing, expiries: Dates) -> tuple[Array, list[Finding]]:
    """Rows after the last trading day of their contract: left out, or a `DataError` if they are long after it."""
    rows, ends = listing.parsed.rows, expiries[listing.contracts]
    days = np.where(np.isnat(ends), 0, (rows.dates - ends).astype(np.int64))
    if (far := np.flatnonzero(days > MAX_DAYS_AFTER)).size:
        row = int(far[0])
        name = listing.parsed.names[rows.symbols[row]]
        raise DataError(
            f"{listing.at(row)}: expected a price up to its last trading day, {ends[row]}; check the year of the "
            f"contract, or its product (--contracts {name}=CODE); {len(far)} such rows"
        )
    late = days > 0
    findings = []
    for number in np.unique(rows.symbols[late]):
        own = np.flatnonzero(late & (rows.symbols == number))
        value = f"{listing.deliveries[listing.contracts[own[0]]]} ended on {ends[own[0]]}"
        name, line = listing.parsed.names[number], rows.lines[own[0]]
        findings.append(make_finding("price after expiry", name, rows.dates[own[0]], line, value, len(own)))
    return late, findings


def _order(listing: Listing, late: Array) -> tuple[Array, list[Finding]]:
    """The rows sorted by contract and day, equal repetitions merged; two prices for one day are a `DataError`."""
    rows = listing.parsed.rows
    order = np.lexsort((rows.lines, rows.dates, listing.contracts))
    order = order[~late[order]]
    same = (np.diff(listing.contracts[order]) == 0) & (np.diff(rows.dates[order]) == np.timedelta64(0, "D"))
    again = np.flatnonzero(same) + 1
    conflicts = again[rows.prices[order[again]] != rows.prices[order[again - 1]]]
    if conflicts.size:
        first, second = order[conflicts[0] - 1], order[conflicts[0]]
        got = f"{rows.prices[first]:g} and {rows.prices[second]:g} ({listing.origin.row_word} {rows.lines[first]})"
        raise DataError(f"{listing.at(int(second))}: expected one price per contract and day; got {got}")
    findings = []
    if again.size:
        row = order[again[0]]
        value = f"{listing.deliveries[listing.contracts[row]]} is there twice"
        name = listing.parsed.names[rows.symbols[row]]
        findings.append(make_finding("duplicate", name, rows.dates[row], rows.lines[row], value, len(again)))
    return np.delete(order, again), findings

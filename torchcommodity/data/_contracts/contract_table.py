"""The prices by contract of a table: the roles of its columns, the contract of each row, what is left out, checks."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from torchcommodity.data._core.contracts import (
    ContractCode,
    delivery_months,
    find_product,
    get_contract,
    numbers_months,
    parse_contract,
)
from torchcommodity.data._core.errors import (
    DataError,
    Finding,
    condense,
    ignored_columns,
    make_finding,
    summarize_names,
)
from torchcommodity.data._core.prices import Array, Dates, Months
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.evidence import plain_numbers
from torchcommodity.data._sources.formats import (
    BY_NAME,
    CLOSES,
    DATES,
    HIGHS,
    INTERESTS,
    LOWS,
    OPENS,
    OTHER_SYMBOLS,
    SETTLES,
    SYMBOLS,
    VALUES,
    VOLUMES,
    key,
)
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.role_finder import RoleFinder
from torchcommodity.data._sources.tables.open_table import open_frame
from torchcommodity.data._sources.tables.table import Column, Origin, Table, fixed_point

# In order of preference, by their `key`.
NAMES = {
    "date": DATES,
    "contract": ("contract", "contract code", "contract symbol", "raw symbol", "contract name", "contract id",
                 "kontrakt", "合约", "合约代码", "合约名称", "合約", "品种月份", "合约月份"),
    "delivery": ("delivery", "delivery month", "contract month", "maturity month", "maturity month year",
                 "expiry month", "delivery date", "month", "maturity", "交割月份", "到期月份",
                 "到期月份(週別)", "限月"),
    "expiry": ("expiry", "expiration", "expiration date", "expiry date", "last trading day", "last trade date",
               "last trading date", "maturity date"),
    "symbol": (*SYMBOLS, *(name for name in OTHER_SYMBOLS if name not in ("contract", "contract code", "raw symbol")),
               "underlying"),
    "price": (*SETTLES, *CLOSES, *VALUES),
    "volume": VOLUMES,
    "open_interest": INTERESTS,
    "unit": ("unit", "units"),
}  # fmt: skip
AUTOMATIC = ReadOptions()
MONTH_STYLE = re.compile(r"[0-9]{4}[-/M]?[0-9]{1,2}|[^\W\d]{3,10}\.?[ -][0-9]{4}")  # a delivery month, not a day
BARS = {*OPENS, *HIGHS, *LOWS}
REQUIRED = "a date, a contract (CLZ24, or a delivery month beside a symbol, or an expiry), and a settlement or close"


@dataclass(frozen=True)
class Roles:
    """The columns of a long table by role; None = there is none."""

    date: Column
    price: Column
    contract: Column | None = None
    delivery: Column | None = None
    expiry: Column | None = None
    symbol: Column | None = None
    volume: Column | None = None
    open_interest: Column | None = None
    unit: Column | None = None
    findings: tuple[Finding, ...] = ()


def find_roles(table: Table, options: ReadOptions = AUTOMATIC) -> Roles:
    """The roles of the columns of a long table, as stated, else by their names; the price as in any long table.

    Raises:
        DataError: no date, contract or price column.
    """
    columns: dict[str, Column] = {}
    by_name = {key(column.name): column for column in reversed(table.columns)}
    stated = {"price": ("column", options.column), "date": ("date", options.date), "symbol": ("symbol", options.symbol)}
    for role, (option, name) in {**stated, "contract": ("contract", options.contract)}.items():
        if name is not None:
            column = table.columns[table.find(name, option, by=key)]
            is_month = bool(MONTH_STYLE.fullmatch(next(iter(column.sample), "")))
            is_day = column.holds_dates(by_name=False) and not is_month
            columns["expiry" if role == "contract" and is_day else role] = column
            by_name.pop(key(column.name), None)
    for role, names in NAMES.items():
        if role in columns or (options.contract is not None and role in ("contract", "delivery")):
            continue
        matches = [name for name in names if name in by_name]
        if role == "price" and len(matches) > 1:  # a settlement that is empty or zero is not the price
            finder = RoleFinder(table, BY_NAME["long"], options)
            usable, _ = finder.usable([table.columns.index(by_name[name]) for name in matches])
            matches = [key(table.names[usable[0]])]
        if matches:
            columns[role] = by_name.pop(matches[0])
    if "date" not in columns and "" in by_name:  # the index, as pandas writes it
        columns["date"] = by_name.pop("")
    has_contract = bool(columns.keys() & {"contract", "delivery", "expiry"})
    if "contract" not in columns and "delivery" not in columns and "symbol" in columns and options.symbol is None:
        cells = columns["symbol"].cells
        codes = [text for text in (cells if isinstance(cells, list) else []) if text.strip()][:50]
        if any(map(is_code, codes)):  # as Databento writes them
            columns["contract"], has_contract = columns.pop("symbol"), True
    if "date" in columns and has_contract and "price" not in columns:
        rest = [n for n, column in enumerate(table.columns) if column in by_name.values()]
        if rest:
            n, _, _ = RoleFinder(table, BY_NAME["long"], options).find_price(rest)
            columns["price"] = by_name.pop(key(table.names[n]))
    if "date" not in columns or "price" not in columns or not columns.keys() & {"contract", "delivery", "expiry"}:
        got = ", ".join(table.names[:12])
        hint = "; name them with --date, --contract, --symbol and --column (date=, contract=, symbol=, column=)"
        raise DataError(f"{table.header}: expected columns for prices by contract: {REQUIRED}; got {got}{hint}")
    ignored = [column.name or "the unnamed index" for name, column in by_name.items() if name not in BARS]
    return Roles(**columns, findings=(*table.findings, *ignored_columns(reversed(ignored))))


def melt_contracts(table: Table) -> Table:
    """A wide table with a column per contract (`CLZ24`, `CLF25`, ...) as a long one; any other table unchanged."""
    dates = [n for n, column in enumerate(table.columns) if not column.name or key(column.name) in NAMES["date"]]
    others = [column for n, column in enumerate(table.columns) if n not in dates]
    if len(dates) != 1 or len(others) < 2 or not all(is_code(column.name) for column in others):
        return table
    rows, date = len(table), table.columns[dates[0]]
    names = [column.name for column in others for _ in range(rows)]
    if all(column.is_number for column in others):
        prices = Column("settle", np.concatenate([np.asarray(column.cells, dtype=np.float64) for column in others]))
    else:
        prices = Column("settle", [str(cell) for column in others for cell in column.cells])
    days = list(date.cells) * len(others) if isinstance(date.cells, list) else np.tile(date.cells, len(others))
    lines = np.tile(table.lines, len(others))
    return replace(
        table, columns=(replace(date, name="date", cells=days), Column("contract", names), prices), lines=lines
    )


def is_code(text: str) -> bool:
    """Whether a text is the code of one contract with its product."""
    try:
        code = parse_contract(text)
    except ValueError:
        return False
    return code is not None and bool(code.root) and not code.root.isdigit()  # 2024M09 is a month


Products = Mapping[str, str | None]
LAST_NUMBERED = np.datetime64("2012-12-31")  # the last contract of a year of four digits that CU2001 to CU2012 can be


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
    column, texts = roles.contract or roles.delivery, list[str]()
    codes: list[ContractCode | None] = [ContractCode("", 1, 0, 0)] * len(table)  # where only the expiry tells
    if column is not None:  # None for a spread or an option
        if column.is_time:  # months that pandas made timestamps
            texts = np.asarray(column.cells).astype("datetime64[M]").astype(str).tolist()
        else:
            texts = [text.removesuffix(".0") for text in table.texts(column)]
        numbered = numbers_months(set(texts)) or bool(days.min() > LAST_NUMBERED)
        parsed: dict[str, ContractCode | None] = {}
        for row, text in enumerate(texts):
            try:
                parsed[text] = parsed[text] if text in parsed else parse_contract(text, numbered=numbered)
            except ValueError as error:
                raise DataError(f"{table.at(row)}: {column.name!r}: expected {error}") from None
        codes = [parsed[text] for text in texts]
    outright = np.array([code is not None for code in codes])
    names, roots, numbers = _symbols(table, roles, codes)
    if unknown := [name for name in products if name not in names]:
        raise DataError(f"contracts: expected symbols among {', '.join(names[:20])}; got {', '.join(unknown)}")
    listed = tuple(
        products.get(name, None if root is None else find_product(root) or find_product(name))
        for name, root in zip(names, roots)
    )
    _ = [get_contract(code) for code in listed if code is not None]  # raises for an unknown code
    amounts = [None if column is None else plain_numbers(column) for column in (roles.volume, roles.open_interest)]
    # all of them say which decimal mark there is
    values = iter(table.prices([roles.price, *filter(None, amounts)], options.decimal).T)
    prices = next(values)
    if any(key(name) == "instrument id" for name in table.names):
        prices = fixed_point(roles.price, prices)
    keep = np.flatnonzero(outright & ~np.isnan(prices))
    if not keep.size:
        raise DataError(f"{table.origin.label}: expected prices of single contracts; got none in {len(table)} rows")
    deliveries = _deliveries([codes[row] for row in keep], days[keep], expiries[keep], numbers[keep], listed)
    volume, open_interest = (None if column is None else next(values)[keep] for column in amounts)
    rows = Rows(
        table.lines[keep], days[keep], numbers[keep], deliveries, expiries[keep], prices[keep], volume, open_interest
    )
    units = table.texts(roles.unit)
    left_out, findings = np.flatnonzero(~outright), []
    if left_out.size:
        row = left_out[0]
        value, line = f"{texts[row]} is not one contract", int(table.lines[row])
        findings.append(make_finding("combined contract", line=line, value=value, count=len(left_out)))
    own_units = tuple(units[int(np.argmax(numbers == number))] for number in range(len(names)))
    return Parsed(rows, names, listed, own_units, findings)


def _symbols(
    table: Table, roles: Roles, codes: list[ContractCode | None]
) -> tuple[tuple[str, ...], list[str | None], Array]:
    """Names of the symbols in order of appearance, the product in their codes, and the symbol of each row.

    The product is None where a code such as RB2405 says that it is none of `CONTRACTS`.
    """
    roots = [code.root if code else "" for code in codes]
    texts = table.texts(roles.symbol)
    names = roots if roles.symbol is None or _repeats_code(texts, codes) else texts
    numbers: dict[str, int] = {}
    own_roots: list[str | None] = []
    column = np.full(len(names), -1)
    for row, (name, code) in enumerate(zip(names, codes)):
        if code is None:
            continue
        if not name or not name.isprintable():
            raise DataError(
                f"{table.at(row)}: expected the product of the contract, in its code (CLZ24) or in "
                f"a column symbol (--symbol, symbol=); got {name!r}"
            )
        if name not in numbers:
            numbers[name] = len(numbers)
            own_roots.append(None if code.is_numbered else roots[row])
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
    if (table := open_frame(frame, operation)) is None:
        raise TypeError(f"{operation}: prices by contract must be a DataFrame; got {type(frame).__name__}")
    return contracts_of_table(table, products)


def contracts_of_table(table: Table, products: Products, options: ReadOptions = AUTOMATIC) -> ContractTable:
    """The prices by contract of a table, long or with a column per contract; see `read_contracts`."""
    if not len(table):
        raise DataError(f"{table.origin.label}: expected rows; got none")
    table, origin = melt_contracts(table), table.origin
    roles = find_roles(table, options)
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
    by_rule = np.full(len(listing.series), np.datetime64("NaT", "D"), dtype="datetime64[D]")
    for number, product in enumerate(listing.parsed.products):
        own = listing.series == number
        if product is not None and get_contract(product).last_day is not None:
            by_rule[own] = get_contract(product).last_trading_days(listing.deliveries[own])
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

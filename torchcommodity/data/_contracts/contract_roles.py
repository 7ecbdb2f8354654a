"""Roles of the columns of a table of prices by contract, by their names and by the codes in them."""

from dataclasses import dataclass, replace

import numpy as np

from torchcommodity.data._core.contract_codes import parse_contract
from torchcommodity.data._core.errors import DataError, Finding, ignored_columns
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.formats.names import (
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
from torchcommodity.data._sources.tables.table import Table

# In order of preference, by their `key`.
NAMES = {
    "date": DATES,
    "contract": ("contract", "contract code", "contract symbol", "raw symbol", "contract name", "contract id",
                 "kontrakt"),
    "delivery": ("delivery", "delivery month", "contract month", "maturity month", "maturity month year",
                 "expiry month", "delivery date", "month", "maturity"),
    "expiry": ("expiry", "expiration", "expiration date", "expiry date", "last trading day", "last trade date",
               "last trading date", "maturity date"),
    "symbol": (*SYMBOLS, *(name for name in OTHER_SYMBOLS if name not in ("contract", "contract code", "raw symbol")),
               "underlying"),
    "price": (*SETTLES, *CLOSES, *VALUES),
    "volume": VOLUMES,
    "open_interest": INTERESTS,
    "unit": ("unit", "units"),
}  # fmt: skip
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


def find_roles(table: Table, price: str | None = None) -> Roles:
    """The roles of the columns of a long table; `price` names its price column.

    Raises:
        DataError: no date, contract or price column.
    """
    columns: dict[str, Column] = {}
    by_name = {key(column.name): column for column in reversed(table.columns)}
    if price is not None:
        if key(price) not in by_name:
            raise DataError(f"{table.header}: expected a column {price}; got {', '.join(table.names[:12])}")
        columns["price"] = by_name.pop(key(price))
    for role, names in NAMES.items():
        if role not in columns and (name := next((name for name in names if name in by_name), None)):
            columns[role] = by_name.pop(name)
    if "date" not in columns and "" in by_name:  # the index, as pandas writes it
        columns["date"] = by_name.pop("")
    if "contract" not in columns and "delivery" not in columns and "symbol" in columns:
        columns |= _contracts_as_symbols(columns)
    if "date" not in columns or "price" not in columns or not columns.keys() & {"contract", "delivery", "expiry"}:
        got = ", ".join(table.names[:12])
        raise DataError(f"{table.header}: expected columns for prices by contract: {REQUIRED}; got {got}")
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
    return code is not None and bool(code.root)


def _contracts_as_symbols(columns: dict[str, Column]) -> dict[str, Column]:
    """The symbol column as the contract column where its first cells are codes of contracts, as Databento writes."""
    cells = columns["symbol"].cells
    codes = [text for text in (cells if isinstance(cells, list) else []) if text.strip()][:50]
    if any(map(is_code, codes)):
        columns["contract"] = columns.pop("symbol")
    return columns

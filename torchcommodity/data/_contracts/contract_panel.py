"""Panels of tables in which each price belongs to a contract, told from other tables by their codes."""

from dataclasses import replace

from torchcommodity.data._contracts.continuous import continuous_panel
from torchcommodity.data._contracts.contract_roles import NAMES, Roles, find_roles, melt_contracts
from torchcommodity.data._contracts.contract_table import contracts_of_table
from torchcommodity.data._contracts.multiple_prices import is_multiple_prices, multiple_prices
from torchcommodity.data._contracts.roll_rule import RollRule
from torchcommodity.data._core.contract_codes import ContractCode, parse_contract
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.formats.header import symbol_of_file
from torchcommodity.data._sources.formats.names import key
from torchcommodity.data._sources.tables.table import Table

DATABENTO = ("ts event", "instrument id")  # whose codes have years of one digit


def panel_of_contracts(table: Table, options: ReadOptions) -> Panel | None:
    """The front month, rolled at expiry, of a table by contract; None for any other table."""
    stated = options.format == "contracts" or options.roll is not None or options.adjustment is not None
    if not stated and (table.levels or options.format not in (None, "pysystemtrade", "databento")):
        return None
    if not stated and options.column is None and is_multiple_prices(table):
        return multiple_prices(table, symbol_of_file(table.origin.file) or "PRICE")
    if not stated and not is_by_contract(table):
        return None
    rule, adjustment = RollRule.parse(options.roll or "expiry"), options.adjustment or "none"
    prices = contracts_of_table(table, options.contracts or {}, options)
    count, names = len(prices.deliveries), len(prices.symbols)
    adjusted = "" if adjustment == "none" else f", {adjustment} adjustment"
    words = f"contracts, front month by {rule} of {count} contracts{adjusted}, {names} symbol{'s' * (names > 1)}"
    return replace(continuous_panel(prices, rule, adjustment), read_as=words)


def is_by_contract(table: Table) -> bool:
    """Whether a table has prices of several contracts of one product.

    Its contract or symbol column (or the names of its columns, if it is wide) are codes of contracts, at least two of
    one product; or a symbol has two prices on one day, for different delivery months or expiries. Codes with a year of
    one digit, which other names resemble (`NG1`), count in a column named as contract and in the layout of Databento;
    there, one other text in five is an error of the table, not another kind of table.
    """
    long = melt_contracts(table)
    try:
        roles = find_roles(long)
    except DataError:
        return False
    if roles.contract is None:
        return _has_months(roles)
    if not isinstance(roles.contract.cells, list):
        return False
    texts = list(dict.fromkeys(roles.contract.cells))
    codes = _codes(texts)
    named = {key(name) for name in table.names}
    is_named = named.issuperset(DATABENTO) or not named.isdisjoint(NAMES["contract"])
    others = len(texts) - len(codes)
    if others > (0.2 * len(texts) if is_named else 0) or (not is_named and any(code.digits == 1 for code in codes)):
        return False
    return len({(code.root, code.year, code.month) for code in codes}) > len({code.root for code in codes})


def _has_months(roles: Roles) -> bool:
    """Whether a symbol has prices for several delivery months or expiries on one day."""
    months = roles.delivery or roles.expiry
    if roles.symbol is None or months is None:
        return False
    days, names = (list(map(str, column.cells)) for column in (roles.date, roles.symbol))
    return len(set(zip(days, names))) < len(set(zip(days, names, map(str, months.cells))))


def _codes(texts: list[str]) -> list[ContractCode]:
    """The codes of single contracts among the texts; a combination counts as a code that is no contract."""
    codes = []
    for text in texts:
        try:
            codes.append(parse_contract(text) or ContractCode(text, 0, 0, 2))
        except ValueError:
            continue
    return codes

"""Tables in which each price belongs to a contract, and the front month, curve and returns built from them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from typing_extensions import Unpack

from torch_opkit import MetadataTensor
from torchcommodity._choices import Adjustment
from torchcommodity.data._contracts.continuous import RollRule, continuous_panel
from torchcommodity.data._contracts.contract_table import (
    NAMES,
    ContractTable,
    contracts_from_frame,
    contracts_of_table,
    find_roles,
    melt_contracts,
)
from torchcommodity.data._core.contracts import ContractCode, delivery_months, numbers_months, parse_contract
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.errors import DataError, condense, ignored_columns, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array, Dates, Months
from torchcommodity.data._core.provenance import NOT_STATED, Provenance
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.formats import key
from torchcommodity.data._sources.headers import symbol_of_file
from torchcommodity.data._sources.read_arguments import ReadOptions, TableArguments, unpack_keywords
from torchcommodity.data._sources.tables.open_table import open_table
from torchcommodity.data._sources.tables.table import Column, Table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = frozenset({"price", "price contract", "forward", "forward contract"})
DATABENTO = ("ts event", "instrument id")  # whose codes have years of one digit


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
    one digit, which other names resemble (`NG1`, but not `CF405`), count in a column named as contract and in the
    layout of Databento; there, one other text in five is an error of the table, not another kind of table.
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
    if others > (0.2 * len(texts) if is_named else 0) or (not is_named and any(map(_is_doubtful, codes))):
        return False
    return len({(code.root, code.year, code.month) for code in codes}) > len({code.root for code in codes})


def _is_doubtful(code: ContractCode) -> bool:
    """Whether a code can be the name of something else: a year of one digit, not Zhengzhou's AB and YMM."""
    return code.digits == 1 and not (code.is_numbered and len(code.root) == 2)


@dataclass(frozen=True, eq=False)
class ContractPrices(ContractTable):
    """Prices of K contracts of N products, in R rows: one per contract and day with a price.

    Args:
        symbols: N names.
        products: N product codes, keys of `data.CONTRACTS`; None = no roll rule is known.
        units: N units, "" where not stated.
        provenance: N records.
        columns: symbol of each contract `(K,)`, a number below N.
        deliveries: delivery months `(K,) datetime64[M]`, increasing within a symbol.
        expiries: last trading days `(K,) datetime64[D]`: as stated in the source, else by the exchange's rule; NaT =
            neither is known.
        contracts: contract of each row `(R,)`, a number below K; rows are sorted by contract and day.
        dates: days `(R,) datetime64[D]`.
        prices: settlements or closes `(R,)` float64.
        volume: `(R,)` float64, NaN = missing; or None.
        open_interest: likewise.
        findings: data-quality warnings.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"date": ["2024-11-20", "2024-11-20", "2024-11-21"],
    ...                       "contract": ["CLZ24", "CLF25", "CLF25"], "settle": [69.39, 68.75, 70.10]})
    >>> wti = ContractPrices.from_pandas(table).continuous()
    >>> wti.values[:, 0].tolist(), wti.contracts, wti.deliveries[:, 0].astype(str).tolist()
    ([69.39, 70.1], ('CL',), ['2024-12', '2025-01'])
    """

    def continuous(self, roll: "str | RollRule" = "expiry", adjustment: Adjustment = "none") -> Panel:
        """Join the contracts of each symbol to one series.

        Args:
            roll: a `RollRule` or its text:

                - "expiry": after the last trading day. Where it is not known, on the first day without a price on which
                  a later contract has one; a finding says so.
                - "5d": 5 business days before the last trading day.
                - "volume", "open-interest": on the day after the next contract had more of it, at the latest at expiry.
                - "months=HKNUZ": only contracts of these months; default: those of the product in `data.CONTRACTS`.
                - several, separated by commas: "volume,5d,months=HKNUZ".
            adjustment: "none": prices as they were, with a gap at every roll. "panama" (differences) and "ratio" remove
                the gaps from all earlier prices; the last contract is unchanged.

        Returns:
            A panel over all days. Without adjustment, `deliveries` has the contract behind each price, `curve` the
            contracts from that one on (at most 12), and `contracts` the product, so that forecasts, returns and
            backtests treat rolls as rolls; row t depends on rows up to t only. An adjusted panel has no rolls: its
            differences ("panama") or log-returns ("ratio") are those of the contract held, but its levels depend on
            later rolls, and "panama" can make them negative.

        Raises:
            DataError: an unknown rule or adjustment, a rule that needs volume, open interest or last trading days that
                are not known, or no contract of the chosen months.
        """
        return continuous_panel(self, RollRule.parse(roll), adjustment)

    def curve(self, roll: "str | RollRule" = "expiry") -> Curve:
        """Prices of the contracts from the one held on, as `data.read_curve` gives them."""
        panel = self.continuous(roll)
        assert panel.curve is not None
        return Curve(panel.curve.plain(), panel.dates, panel.symbols, panel.findings)

    @classmethod
    def from_pandas(
        cls, table: "pd.DataFrame", *, contracts: Mapping[str, str | None] | None = None
    ) -> "ContractPrices":
        """Build from a long DataFrame: a row per contract and day. See `read_contracts`.

        Args:
            table: prices by contract.
            contracts: product codes of symbols whose names are not codes, such as {"WTI": "CL"}; None = no product.

        Raises:
            DataError: as for `read_contracts`.
        """
        return cls(**vars(contracts_from_frame(table, "from_pandas", contracts or {})))

    def __repr__(self) -> str:
        names = summarize_names(self.symbols)
        first, last = (self.dates.min(), self.dates.max())
        return f"ContractPrices({len(self.deliveries)} contracts of {names}; {first} to {last}, {len(self.dates)} rows)"


@unpack_keywords
def read_contracts(
    source: str | os.PathLike[str],
    *,
    contracts: Mapping[str, str | None] | None = None,
    publisher: str = NOT_STATED,
    license: str = NOT_STATED,
    **arguments: Unpack[TableArguments],
) -> ContractPrices:
    """Read prices by contract from a file, an object, a database table or a query.

    The table is long, with a row per contract and day, or wide, with a column per contract:

    | column | names, in any case | cells |
    |---|---|---|
    | date | `date`, `ts_event`, `trade_date`, ... | as for `read` |
    | contract | `contract`, `raw_symbol`, or `symbol` if its cells are codes | `CLZ24`, `CL Z24`, `CLZ4`, `CL-2024Z` |
    | or: delivery month | `delivery`, `delivery_month`, `contract_month`, ... | `2024-12`, `202412`, `Dec 2024` |
    | or: expiry | `expiry`, `expiration`, `last_trading_day`, ... | the last trading day |
    | symbol | `symbol`, `product`, `root`, ...; default: the product in the code | |
    | price | `settle`, `settlement`, else `close`, `last`, `price` | as for `read` |
    | optional | `volume`, `open_interest`, `unit` | |

    A year of one digit is the first such year that is not before the date. An expiry beside a code replaces that of the
    exchange's rule. Spreads, options and other combinations (`CLF4-CLG4`) are left out and counted in a finding, and so
    are prices up to 10 days after the last trading day.

    Args:
        source: as for `read`; not a publisher and not the store.
        contracts: product codes of symbols that are not codes themselves, such as {"WTI": "CL"}; None = no product.
        publisher: provenance.
        license: provenance.
        **arguments: how the source is read, see `TableArguments`.

    Raises:
        DataError: data that cannot be trusted, with file, line and value: an unknown month letter, two prices of a
            contract on one day, two expiries of one contract, a price long after the last trading day.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,contract,settle\\n2020-04-21,CLK20,10.01\\n2020-04-21,CLM20,11.57\\n")
    ...     file.flush()
    ...     prices = read_contracts(file.name)
    >>> prices, prices.expiries.astype(str).tolist()
    (ContractPrices(2 contracts of CL; 2020-04-21 to 2020-04-21, 2 rows), ['2020-04-21', '2020-05-19'])
    """
    table = open_table(source, publisher, license, arguments.get("encoding"), arguments.get("query_timeout"))
    return ContractPrices(**vars(contracts_of_table(table, contracts or {}, ReadOptions(**arguments))))

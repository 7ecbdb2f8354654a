"""Prices of single futures contracts, and the front month, the curve and the returns built from them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from torchcommodity._choices import Adjustment
from torchcommodity.data._contracts.continuous import RollRule, continuous_panel
from torchcommodity.data._contracts.contract_table import ContractTable, contracts_from_frame, contracts_of_table
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.errors import summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.read_arguments import ReadOptions, TableArguments, unpack_keywords
from torchcommodity.data._sources.tables.open_table import open_table

if TYPE_CHECKING:
    import pandas as pd


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
    table = open_table(source, publisher, license, arguments.get("encoding"))
    return ContractPrices(**vars(contracts_of_table(table, contracts or {}, ReadOptions(**arguments))))

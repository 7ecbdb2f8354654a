"""`read_contracts`: prices of single futures contracts from any source that holds a table."""

import os
from collections.abc import Mapping

from torchcommodity._choices import DateOrder, DecimalMark
from torchcommodity.data._contracts.contract_prices import ContractPrices
from torchcommodity.data._contracts.contract_table import contracts_of_table
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.tables.open_table import open_table


def read_contracts(
    source: str | os.PathLike[str],
    *,
    contracts: Mapping[str, str | None] | None = None,
    column: str | None = None,
    decimal: DecimalMark | None = None,
    date_order: DateOrder | None = None,
    publisher: str = NOT_STATED,
    license: str = NOT_STATED,
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
        column: name of the price column.
        decimal: the decimal mark.
        date_order: order of year, month and day in the dates.
        publisher: provenance.
        license: provenance.

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
    table = open_table(source, publisher, license)
    options = ReadOptions(None, column, decimal, date_order)
    return ContractPrices(**vars(contracts_of_table(table, contracts or {}, options)))

"""`read`, `to_panel`: prices from any source, in four steps.

1. Open: `open_table` and `open_frame` make one `Table` of a file, an object, a table of a database or a frame.
2. Type: each `Column` of it finds out once what its cells are: times, numbers or names, and why others are none.
3. Decide: `panel_of_contracts` says whether each price belongs to a contract, `assign_roles` which column is the date,
   the symbol, the price.
4. Build: the panel by contract, or of a wide or a long table; what is doubtful is found by `inspect`. Bars are a table
   of one of these kinds: `read_bars` builds it once for each of their fields.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from typing_extensions import Unpack

from torch_opkit.arguments import current_operation, operation
from torchcommodity._choices import Adjustment
from torchcommodity.data._contracts.contract_prices import ContractPrices, panel_of_contracts
from torchcommodity.data._core.contracts import CONTRACTS
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import NOT_STATED, Provenance, check_several, drop_origin_findings
from torchcommodity.data._quality.inspect import accept_findings, check_doubts, is_strict
from torchcommodity.data._sources.build import Bars, add_bars, apply_records, assemble, build_grid, panel_of_bars
from torchcommodity.data._sources.embedded import embedded, embedded_symbols
from torchcommodity.data._sources.publishers import eia, eia_curve, fred
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
from torchcommodity.data._sources.roles import assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Table
from torchcommodity.data._store.rows import AsOf
from torchcommodity.data._store.store import Store

NOT_FILES = ("embedded", "monthly", "auto", "store:", "fred:", "eia:")


@unpack_keywords
def read(
    source: str | os.PathLike[str],
    symbols: Sequence[str] | None = None,
    *,
    contracts: Mapping[str, str | None] | None = None,
    roll: str | None = None,
    adjustment: Adjustment | None = None,
    averages: bool | None = None,
    calendar: str | Mapping[str, str | None] | None = None,
    publisher: str = NOT_STATED,
    license: str = NOT_STATED,
    strict: bool | None = None,
    accept: Iterable[str] | None = None,
    store: Store | None = None,
    as_of: AsOf | None = None,
    **arguments: Unpack[ReadArguments],
) -> Panel:
    """Read prices from a file, the store, a publisher, or the embedded data.

    | source | prices |
    |---|---|
    | `embedded` | the daily prices that ship with the package (`embedded()`); no network |
    | `monthly` | the monthly prices that ship with the package (`embedded(frequency="monthly")`); no network |
    | `auto` | the panel added last to the store, if there is one; otherwise `embedded` |
    | `store:NAME` | the panel of this name in the store |
    | `fred:ID,ID` | FRED over HTTP (`fred()`) |
    | `eia:ID,ID` | EIA over HTTP (`eia()`), with a key in `EIA_API_KEY` |
    | `FILE` | CSV, Parquet, Feather or another Arrow IPC file, Excel (extra `excel`), told apart by content |
    | `FILE.xlsx:SHEET` | a sheet of a workbook; the only one with dates needs no name |
    | `FILE.duckdb:TABLE`, `FILE.sqlite:TABLE` | a table of DuckDB or SQLite; the only one needs no name |
    | a folder, `FOLDER/*.parquet` | its Parquet files as one table; a folder `symbol=WTI` is a column |
    | `sql:SELECT ...` | the result of a query of DuckDB, which can only read CSV, Parquet and JSON files |
    | `s3://BUCKET/NAME`, `gs://...` | any such file as an object (extra `cloud`) |
    | `https://...` | any such file on a web server |

    A file may be compressed by gzip, zstd, bzip2 or xz, or be the only file of a zip archive; its content counts, not
    its name. Its layout is detected from its columns, and `Panel.read_as` says it in one phrase: wide (a column for
    each symbol), long (a row for each date and symbol), bars, or the layout of a vendor (`data.FORMATS`). What is not a
    price (volume, open interest, contract numbers, identifiers, changes) is never taken for one. The rules:

    - **column**: in bars the settlement, else the close; otherwise the only column that is a price. Where several
      could be meant, all are listed and none is taken.
    - **bars**: open, high and low, where the source has all of them, are `Panel.bars`.
    - **symbol**: the symbol column; else the name of the price column; where that is a word such as `Close`, the name
      of the file.
    - **dates**: in any one style. Dots mean day first. Slashes and dashes mean what a part above 12 in any row says; a
      file in which nothing says is refused. A month is dated on its last weekday. One time zone; the day as written.
    - **numbers**: a decimal point or comma, with or without thousands separators, as the cells of the file prove.
      A currency that stands at the numbers is no unit; a number in parentheses is negative.
    - **missing**: blank, `.`, a dash, `NaN`, `NA`, `N/A`, `#N/A`, `ND`, `null`. Rows may be in any order.
    - **text**: UTF-8, UTF-16 with a byte order mark; else the encoding of China, Taiwan, Japan, Korea, of Cyrillic,
      Western, Turkish or Central European text in which the words are names of columns or of one script; reported.

    Args:
        source: see the table; a `Path` is always a file.
        symbols: read only these, in this order; default: all.
        contracts: product codes of the symbols that are futures, such as {"WTI": "CL"}, as for `Panel.with_contracts`.
        roll: how the contracts of a table by contract are joined, as for `ContractPrices.continuous`.
        adjustment: "none", "panama" or "ratio", likewise.
        averages: whether prices are averages of their period, see `Panel.with_averages`; default: as the source says,
            which only `monthly` does.
        calendar: of the markets of spot prices, see `Panel.with_calendars`; default: the New York Stock Exchange's.
        publisher: provenance of a file without a `source` column.
        license: provenance of a file.
        strict: whether prices without a publisher, generated ones, and findings are an error; default: if the
            environment variable TORCHCOMMODITY_STRICT is 1.
        accept: kinds of findings that are no error, see `accept_findings`.
        store: store of the sources `auto` and `store:NAME`; default: `Store()`.
        as_of: read the stored panel as it stood at this date or time, as for `Store.load`.
        **arguments: how the source is read, see `ReadArguments`.

    Returns:
        Prices `(T, N)` float64 in the units of the source, NaN = missing. `Panel.findings` lists data-quality warnings
        and how each was treated.

    Raises:
        TypeError: one name instead of a list of symbols.
        DataError: data that cannot be trusted, with file, line and value; an unknown symbol; `as_of` with a source that
            is not in the store.

    >>> read("embedded", ["WTI"]).units
    ('$/bbl',)
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,symbol,close\\n2020-04-17,WTI,18.27\\n2020-04-20,WTI,-37.63\\n")
    ...     file.flush()
    ...     panel = read(file.name)
    >>> print(panel.values.shape, *(finding for finding in panel.findings if finding.kind == "nonpositive"))
    torch.Size([2, 1]) nonpositive WTI 2020-04-20 line 3: -37.63 (kept; returns treat it as missing)
    """
    check_several("read", symbols)
    if as_of is not None and not str(source).startswith(("store:", "auto")):
        raise DataError(
            f"as_of: expected the source store:NAME, which records what was known when; got {source}; "
            "store its prices first (torchcommodity data add, or Store.add)"
        )
    if (roll or adjustment) and str(source).startswith(NOT_FILES):
        raise DataError(f"roll: expected a file of prices by contract (date,contract,settle); got {source}")
    prefix, colon, names = source.partition(":") if isinstance(source, str) else ("", "", "")
    if source in ("embedded", "monthly"):
        panel = embedded(symbols, frequency="monthly" if source == "monthly" else "daily")
    elif source == "auto":
        store = store or Store()
        panel = store.load(as_of=as_of) if store.list() or as_of is not None else embedded()
    elif colon and prefix == "store":
        panel = (store or Store()).load(names, as_of=as_of)
    elif colon and prefix in ("fred", "eia"):
        panel = fred(names) if prefix == "fred" else eia(names)
    elif isinstance(source, str) and not source.strip():
        raise DataError(
            "source: expected embedded, monthly, auto, store:NAME, fred:ID, eia:ID or a path; got an empty string"
        )
    else:
        path = source if isinstance(source, str) else Path(source)
        table = open_table(path, publisher, license, arguments.get("encoding"), arguments.get("query_timeout"))
        options = ReadOptions(**arguments, roll=roll, adjustment=adjustment, contracts=contracts)
        panel = panel_of_table(table, options)
    panel = panel if symbols is None else panel.select(symbols)
    panel = panel if contracts is None else panel.with_contracts(contracts)
    panel = panel if calendar is None else panel.with_calendars(calendar)
    panel = panel if averages is None else panel.with_averages(None if averages else [])
    panel = panel if accept is None else accept_findings(panel, accept)
    if is_strict(strict):
        check_doubts(panel, strict)
    return panel


@operation("to_panel")
@unpack_keywords
def to_panel(
    prices: Any,
    *,
    symbols: Sequence[str] | None = None,
    units: Iterable[str] | None = None,
    provenance: Iterable[Provenance] | None = None,
    contracts: Iterable[str | None] | None = None,
    calendar: str | Mapping[str, str | None] | None = None,
    **arguments: Unpack[ReadArguments],
) -> Panel:
    """Convert prices of any accepted type to a `Panel`.

    | type | rule |
    |---|---|
    | `Panel` | unchanged |
    | `Bars` | closes, with open, high and low |
    | pandas DataFrame | a wide table: dates as index or column, one column per symbol; bars as yfinance returns them |
    | | a long table: a date, a symbol and a price column |
    | pandas Series | prices by date; its name is the symbol |
    | polars DataFrame, pyarrow Table, DuckDB relation | a wide or long table with a date column |
    | `str`, `os.PathLike` | `read` |

    The roles of the columns are found as by `read`, `unique_id, ds, y` too. Rows may be in any order; `Panel.findings`
    reports that they were sorted, and all other data-quality warnings.

    Args:
        prices: see the table; NaN and None = missing.
        symbols: only these, in this order; default: all.
        units: per symbol, in the order of the columns or of first appearance; default: the column `unit`, or "".
        provenance: per symbol; default: as read; of a frame, location "memory" with the sha256 of the prices.
        contracts: per symbol, as for `Panel`; default: as read.
        calendar: of the markets of spot prices, see `Panel.with_calendars`; default: as read.
        **arguments: how the source is read, see `ReadArguments`; a `Panel` takes none of them.

    Raises:
        TypeError: another type.
        DataError: data that cannot be trusted: no date column or several, cells that are not prices, two prices for one
            date and symbol; or an unknown symbol.

    >>> import pandas as pd
    >>> long = pd.DataFrame({"unique_id": "WTI", "ds": ["2020-04-17", "2020-04-20"], "y": [18.27, -37.63]})
    >>> to_panel(long).symbols
    ('WTI',)
    >>> to_panel(pd.Series([18.27, -37.63], index=pd.to_datetime(["2020-04-17", "2020-04-20"]), name="WTI"))
    Panel(2 dates 2020-04-17 to 2020-04-20, 1 symbol: WTI)
    >>> import duckdb
    >>> to_panel(duckdb.sql("SELECT DATE '2020-04-20' AS date, -37.63 AS WTI"), units=["$/bbl"]).units
    ('$/bbl',)
    """
    if isinstance(prices, Panel):
        panel = prices
    elif isinstance(prices, (str, os.PathLike)):
        try:
            panel = read(prices, **arguments)
        except DataError as error:
            raise DataError(f"{current_operation()}: {error}") from None
    elif isinstance(prices, Bars):
        panel = panel_of_bars(prices)
    elif (table := open_frame(prices, current_operation())) is not None:
        panel = panel_of_table(table, ReadOptions(**arguments))
    else:
        kind = type(prices)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        raise TypeError(
            f"{current_operation()}: prices must be a Panel, Bars, a pandas or polars DataFrame, a Series, a DuckDB "
            f"relation, an Arrow table or a path; got {name}; make a DataFrame of it, with its dates as index"
        )
    if units is not None:
        panel = replace(panel, units=tuple(units))
    if contracts is not None:
        panel = replace(panel, contracts=tuple(contracts))
    if provenance is not None:
        records = tuple(provenance)
        panel = replace(panel, provenance=records, findings=drop_origin_findings(panel.findings, records))
    panel = panel if calendar is None else panel.with_calendars(calendar)
    return panel if symbols is None else panel.select(symbols)


def add_references(panel: Panel, references: Any = None) -> Panel:
    """A panel with prices that help to forecast its own, and are not forecast; see `Panel.with_references`.

    Args:
        panel: prices.
        references: a list of symbols of the panel, which leave it; or anything that `to_panel` takes, of which the
            symbols and dates of the panel are left out and kept. "embedded": all prices that ship with the package, of
            the frequency of the panel. None: only those that the panel has.

    Raises:
        DataError: an unknown symbol; no further symbol, or no date in common.

    >>> from torchcommodity import data
    >>> add_references(data.embedded(["WTI"]), "embedded")
    Panel(10226 dates 1986-01-02 to 2026-08-18, 1 symbol: WTI; 11 references: BRENT, GASOLINE_NYH and 9 more)
    """
    if references is None:
        return panel
    if isinstance(references, (list, tuple, set)):
        return panel.with_references(references)
    if isinstance(references, str) and references == "embedded":
        if panel.frequency == "weekly":
            raise DataError(f"{current_operation()}: references must be weekly, as the prices; got 'embedded'")
        return panel.with_references(embedded(embedded_symbols(panel.frequency), frequency=panel.frequency))
    return panel.with_references(to_panel(references))


def add_curve(panel: Panel, curve: Any = None, curve_of: Mapping[str, str | None] | None = None) -> Panel:
    """A panel with a futures curve, the closes of nearby contracts; see `Panel.with_curve`.

    Args:
        panel: prices.
        curve: a `Curve` or a tensor, `ContractPrices` of `read_contracts`, or a file or frame that `read_curve` takes.
            "eia:" downloads it, see `eia_curve`. None: only the curve that the panel has.
        curve_of: product codes of the spot prices whose curve it is, such as {"HEATING_OIL_NYH": "HO"}.

    Raises:
        DataError: `curve_of` without a curve; a curve that is of none of the prices as far as is known; otherwise as
            for `read_curve` and `Panel.with_curve`.

    >>> import pandas as pd
    >>> from torchcommodity import data
    >>> closes = {"date": "2020-04-21", "product": "CL", "nth": [1, 2], "close": [10.01, 11.57]}
    >>> wti = add_curve(data.embedded(["WTI"]), pd.DataFrame(closes))
    >>> wti.curve_of, wti.between("2020-04-21", "2020-04-21").curve.tolist()
    (('CL',), [[[10.01, 11.57]]])
    """
    if curve is None:
        if curve_of:
            raise DataError(f"{current_operation()}: curve_of needs a curve; got {dict(curve_of)} and none")
        return panel
    if isinstance(curve, str) and curve == "eia:":
        names = {contract.spot: code for code, contract in CONTRACTS.items() if contract.spot}
        own = {symbol: code or names.get(symbol) for symbol, code in zip(panel.symbols, panel.contracts)}
        curve = eia_curve(own | dict(curve_of or {}))
    elif isinstance(curve, ContractPrices):
        curve = curve.curve()
    elif not isinstance(curve, (Curve, torch.Tensor)):
        curve = read_curve(curve)
    known = curve.spot_products(panel.symbols) if isinstance(curve, Curve) else {}
    if all(panel.spot) and not (curve_of or any(panel.curve_of) or known):
        rule = "the products of spot prices, such as curve_of={'HEATING_OIL_NYH': 'HO'} (--curve-of HEATING_OIL_NYH=HO)"
        of = f" and a curve of {summarize_names(curve.symbols)}" if isinstance(curve, Curve) else ""
        raise DataError(f"{current_operation()}: expected {rule}; got none of {summarize_names(panel.symbols)}{of}")
    return panel.with_curve(curve, curve_of)


def panel_of_table(table: Table, options: ReadOptions) -> Panel:
    """The panel of a table of prices: by contract, wide or long."""
    if (panel := panel_of_contracts(table, options)) is not None:
        return panel
    reading = assign_roles(table, options)
    grid = build_grid(reading, options)
    if table.kind == "DataFrame":  # its prices are what can be checked
        origin = replace(grid.origin, sha256=hashlib.sha256(grid.values.tobytes()).hexdigest())
        panel = assemble(replace(grid, origin=origin), drop_empty=False)
    else:
        panel = apply_records(assemble(grid), table.records)
    return add_bars(panel, table, options, reading)


def read_curve(source: Any) -> Curve:
    """Read a futures curve, the closes of nearby contracts, from a CSV or Parquet file, plain or gzipped, or a frame.

    It is a long table with columns `date,symbol,nth,close`: `nth` is 1 for the front contract, 2 for the next; the
    symbol may be a product code. Other columns, such as `contract`, are ignored and reported. Dates, numbers and
    missing values are as for `read`.

    Args:
        source: the file, whose first bytes determine whether it is read as Parquet; or a frame that `to_panel` takes.

    Returns:
        Closes `(T, N, C)` float64 in the units of the file, C the largest `nth`, NaN = missing; `Curve.findings` lists
        data-quality warnings. `Panel.with_curve` aligns it with a panel.

    Raises:
        DataError: data that cannot be trusted, with file, line and value.
        TypeError: another type.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,symbol,nth,close\\n2020-04-20,WTI,1,-37.63\\n2020-04-20,WTI,2,20.43\\n")
    ...     file.flush()
    ...     curve = read_curve(file.name)
    >>> curve.values.tolist(), curve.symbols
    ([[[-37.63, 20.43]]], ('WTI',))
    """
    is_file = isinstance(source, (str, os.PathLike))
    table = open_table(source) if is_file else open_frame(source, "read_curve")
    if table is None:
        kind = type(source).__name__
        raise TypeError(f"{current_operation()}: curve must be a Curve, ContractPrices, a file or a frame; got {kind}")
    panel = assemble(build_grid(assign_roles(table, ReadOptions()), ReadOptions(), curve=True))
    pairs = [name.rsplit(" ", 1) for name in panel.symbols]  # `WTI 2` is the second nearby contract
    symbols = tuple(dict.fromkeys(symbol for symbol, _ in pairs))
    values = torch.full((len(panel), len(symbols), max(int(nth) for _, nth in pairs)), torch.nan, dtype=torch.float64)
    for column, (symbol, nth) in enumerate(pairs):
        values[:, symbols.index(symbol), int(nth) - 1] = panel.values.plain()[:, column]
    findings = tuple(finding for finding in panel.findings if finding.kind != "origin not stated")  # no provenance
    return Curve(values, panel.dates, symbols, findings)

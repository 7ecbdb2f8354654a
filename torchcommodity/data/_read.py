"""`read`: prices from any source, named in one string."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from typing_extensions import Unpack

from torchcommodity._choices import Adjustment
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.names import check_several
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._read_table import read_file
from torchcommodity.data._sources.embedded import embedded
from torchcommodity.data._sources.publishers import eia, fred
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
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
    publisher: str = NOT_STATED,
    license: str = NOT_STATED,
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
    - **symbol**: the symbol column; else the name of the price column; where that is a word such as `Close`, the name
      of the file.
    - **dates**: in any one style. Dots mean day first. Slashes and dashes mean what a part above 12 in any row says; a
      file in which nothing says is refused. A month is dated on its last weekday. One time zone; the day as written.
    - **numbers**: a decimal point or comma, with or without thousands separators, as the cells of the file prove.
      A currency that stands at the numbers is no unit; a number in parentheses is negative.
    - **missing**: blank, `.`, a dash, `NaN`, `NA`, `N/A`, `#N/A`, `ND`, `null`. Rows may be in any order.
    - **text**: UTF-8, UTF-16 with a byte order mark, else Windows-1252, which is reported.

    Args:
        source: see the table; a `Path` is always a file.
        symbols: read only these, in this order; default: all.
        contracts: product codes of the symbols that are futures, such as {"WTI": "CL"}, as for `Panel.with_contracts`.
        roll: how the contracts of a table by contract are joined, as for `ContractPrices.continuous`.
        adjustment: "none", "panama" or "ratio", likewise.
        averages: whether prices are averages of their period, see `Panel.with_averages`; default: as the source says,
            which only `monthly` does.
        publisher: provenance of a file without a `source` column.
        license: provenance of a file.
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
    if source in ("embedded", "monthly"):  # most of their symbols are read by name only
        panel = embedded(symbols, frequency="monthly" if source == "monthly" else "daily")
        return _declare(panel, contracts, averages)
    options = ReadOptions(**arguments, roll=roll, adjustment=adjustment, contracts=contracts)
    panel = _read(source, publisher, license, store or Store(), as_of, options)
    panel = panel if symbols is None else panel.select(symbols)
    return _declare(panel, contracts, averages)


def _declare(panel: Panel, contracts: Mapping[str, str | None] | None, averages: bool | None) -> Panel:
    """The panel with what the caller says of it."""
    panel = panel if contracts is None else panel.with_contracts(contracts)
    return panel if averages is None else panel.with_averages(None if averages else [])


def _read(
    source: str | os.PathLike[str],
    publisher: str,
    license: str,
    store: Store,
    as_of: AsOf | None,
    options: ReadOptions,
) -> Panel:
    if not isinstance(source, str):
        return read_file(Path(source), publisher, license, options)
    if source == "auto":
        return store.load(as_of=as_of) if store.list() or as_of is not None else embedded()
    prefix, colon, names = source.partition(":")
    readers: dict[str, Callable[[str], Panel]] = {"fred": fred, "eia": eia, "store": partial(store.load, as_of=as_of)}
    if colon and prefix in readers:
        return readers[prefix](names)
    if not source.strip():
        raise DataError(
            "source: expected embedded, monthly, auto, store:NAME, fred:ID, eia:ID or a path; got an empty string"
        )
    return read_file(source, publisher, license, options)

"""`read`: prices from any source, named in one string."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from torchcommodity.data._eia import eia
from torchcommodity.data._embedded import embedded
from torchcommodity.data._errors import DataError
from torchcommodity.data._files import read_file
from torchcommodity.data._fred import fred
from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import NOT_STATED
from torchcommodity.data._store.store import Store
from torchcommodity.data._store.times import AsOf


def read(
    source: str | os.PathLike[str],
    symbols: Sequence[str] | None = None,
    *,
    publisher: str = NOT_STATED,
    license: str = NOT_STATED,
    store: Store | None = None,
    as_of: AsOf | None = None,
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
    | `md:DATABASE.TABLE`, `bq:PROJECT.DATASET.TABLE` | a table of MotherDuck, of BigQuery (extra `bigquery`) |

    A file may be compressed by gzip, zstd, bzip2 or xz, or be the only file of a zip archive; its content counts, not
    its name. A table may be long or wide. A long table has a date, a symbol and a price column, and optionally `unit`
    and `source`; a wide table has a date column and one column per symbol. The names that are recognized:

    | column | names, in any case |
    |---|---|
    | date | `date`, `datetime`, `timestamp`, `ds`, `observation_date` |
    | symbol | `symbol`, `unique_id`, `ticker`, `id` |
    | price | `close`, `price`, `value`, `settle`, `y` |

    Dates are ISO (`YYYY-MM-DD`; a time and one time zone may follow, the day counts as written). Numbers have a decimal
    point. Blank, `.`, `NaN`, `NA`, `N/A`, `#N/A` and `null` are missing. Rows may be in any order.

    Args:
        source: see the table; a `Path` is always a file.
        symbols: read only these, in this order; default: all.
        publisher: provenance of a file without a `source` column.
        license: provenance of a file.
        store: store of the sources `auto` and `store:NAME`; default: `Store()`.
        as_of: read the stored panel as it stood at this date or time, as for `Store.load`.

    Returns:
        Prices `(T, N)` float64 in the units of the source, NaN = missing. `Panel.findings` lists data-quality warnings
        and how each was treated.

    Raises:
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
    if as_of is not None and not str(source).startswith(("store:", "auto")):
        raise DataError(
            f"as_of: expected the source store:NAME, which records what was known when; got {source}; "
            "store its prices first (torchcommodity data add, or Store.add)"
        )
    if source in ("embedded", "monthly"):  # most of their symbols are read by name only
        return embedded(symbols, frequency="monthly" if source == "monthly" else "daily")
    panel = _read(source, publisher, license, store or Store(), as_of)
    return panel if symbols is None else panel.select(symbols)


def _read(source: str | os.PathLike[str], publisher: str, license: str, store: Store, as_of: AsOf | None) -> Panel:
    if not isinstance(source, str):
        return read_file(Path(source), publisher=publisher, license=license)
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
    return read_file(source, publisher=publisher, license=license)

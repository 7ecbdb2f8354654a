"""`write`: the prices of a panel to a file, an object or a table of a database; CSV is safe in a spreadsheet."""

import gzip
import io
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.panel_fields import BAR
from torchcommodity.data._sources.files import parse_table_name, write_atomic
from torchcommodity.data._sources.locations import is_remote, public_address, write_object
from torchcommodity.data._sources.tables.frames import METADATA, PROVENANCE, SETTINGS

with extra("forecast"):
    import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

# the start of a cell: of the text, of a line in it, and behind a separator of a spreadsheet of another language
_FORMULA = re.compile(r"(^|[;\t\r\n])( *[=+\-@\uff1d\uff0b\uff0d\uff20](?!\Z))|^([\t\r])")


def quote_spreadsheet_cell(text: str) -> str:
    r"""Prefix an apostrophe to text that a spreadsheet would run as a formula.

    Such text begins with `=`, `+`, `-`, `@` (also in their full-width forms), a tab or a carriage return; or one of the
    signs follows a semicolon, a tab or a line break, where a spreadsheet may begin a new cell.

    Source: https://owasp.org/www-community/attacks/CSV_Injection

    >>> quote_spreadsheet_cell("=HYPERLINK(A1)"), quote_spreadsheet_cell("a;=1+1"), quote_spreadsheet_cell("CL=F")
    ("'=HYPERLINK(A1)", "a;'=1+1", 'CL=F')
    """
    return _FORMULA.sub(lambda match: f"{match[1] or ''}'{match[2] or match[3]}", text)


def frame_to_csv(frame: "pd.DataFrame", *, index: bool = False, index_label: str | None = None) -> str:
    """Convert a DataFrame to CSV that is safe to open in a spreadsheet; lines end in LF.

    Text cells, column names and index labels pass through `quote_spreadsheet_cell`; numbers and dates are unchanged.

    Args:
        frame: the table.
        index: write the index too.
        index_label: header of the index column.

    >>> import pandas as pd
    >>> frame_to_csv(pd.DataFrame({"symbol": ["WTI", "=1+1"], "price": [-37.63, 2.0]}))
    "symbol,price\\nWTI,-37.63\\n'=1+1,2.0\\n"
    """
    quoted = frame.copy()
    for column, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "biufcM":
            quoted.isetitem(column, frame.iloc[:, column].map(_quote))
    quoted.columns = frame.columns.map(_quote)
    if index:
        quoted.index = frame.index.map(_quote)
    return str(quoted.to_csv(index=index, index_label=index_label, lineterminator="\n"))


def _quote(value: Any) -> Any:
    if isinstance(value, tuple):  # a label of a MultiIndex
        return tuple(map(_quote, value))
    return quote_spreadsheet_cell(value) if isinstance(value, str) else value


Layout = Literal["long", "wide", "curve"]


def to_arrow(panel: Panel, layout: Layout) -> pa.Table:
    """The `pyarrow.Table` of a panel; a missing price is null. See `write`."""
    T, N = panel.values.shape
    prices, symbols = panel.values.plain().detach().numpy(), list(panel.symbols)
    columns: dict[str, Any]
    if layout == "wide":
        if "date" in (symbol.lower() for symbol in symbols):
            raise DataError("write: expected no symbol named date in the wide layout; got one (use layout='long')")
        columns = {"date": pa.array(panel.dates, pa.date32())}
        columns |= {symbol: pa.array(prices[:, n], from_pandas=True) for n, symbol in enumerate(symbols)}
    elif layout == "long":
        columns = {
            "date": pa.array(np.tile(panel.dates, N), pa.date32()),
            "symbol": _repeat(symbols, T),
            **_bar_columns(panel),
            "price": pa.array(prices.T.ravel(), from_pandas=True),
            "unit": _repeat(panel.units, T),
            "source": _repeat([record.publisher for record in panel.provenance], T),
        }
    else:
        if panel.curve is None:
            raise DataError("write: expected a panel with a curve; got none (use layout='long')")
        closes = panel.curve.plain().detach().numpy()
        row, column, nth = np.nonzero(~np.isnan(closes))
        columns = {
            "date": pa.array(panel.dates[row], pa.date32()),
            "symbol": pa.array(symbols, pa.string()).take(pa.array(column)),
            "nth": pa.array(nth + 1),
            "close": pa.array(closes[row, column, nth]),
        }
    records = {record.pop("symbol"): record for record in panel.sources()}
    return pa.table(columns).replace_schema_metadata({METADATA: json.dumps(records).encode()})


def _bar_columns(panel: Panel) -> dict[str, pa.Array]:
    if panel.bars is None:
        return {}
    columns = panel.bars.plain().detach().numpy().transpose(2, 1, 0)  # (3, N, T)
    return {name: pa.array(x.ravel(), from_pandas=True) for name, x in zip(BAR, columns)}


def to_database_table(panel: Panel) -> pa.Table:
    """The long table with contract, provenance and settings in columns, for a database, which keeps no metadata."""
    T, table = len(panel), to_arrow(panel, "long").replace_schema_metadata(None)
    for name in (*PROVENANCE, *SETTINGS):
        table = table.append_column(name, _repeat([record.get(name, "") for record in panel.sources()], T))
    return table


def _repeat(texts: Any, rows: int) -> Any:
    indices = np.repeat(np.arange(len(texts)), rows)
    return pa.array(list(texts), pa.string()).take(pa.array(indices))


ENDINGS = (".parquet", ".feather", ".arrow", ".csv", ".csv.gz", ".csv.zst")


def write(panel: Panel, target: str | os.PathLike[str], *, layout: Layout = "long") -> None:
    """Write prices to a file, an object on object storage, or a table of a database, which `read` reads again.

    | target | written |
    |---|---|
    | `FILE.parquet`, `.feather`, `.arrow` | Parquet, or Arrow IPC; units, contracts and provenance in its schema |
    | `FILE.csv`, `.csv.gz`, `.csv.zst` | text; the long layout keeps unit and publisher, not contract and license |
    | `s3://BUCKET/NAME`, `gs://...` | any of these files as an object (extra `cloud`) |
    | `FILE.duckdb:TABLE` | a table of a DuckDB file; provenance in columns |

    Prices keep every bit, and a date without prices keeps its row. A file, an object or a table is written whole or
    not at all, and replaces one of its name; a table of other columns is never replaced. Findings are not written:
    reading finds them again.

    Args:
        panel: the prices.
        target: see the table.
        layout: "long": columns `date`, `symbol`, `price`, `unit`, `source`, with bars also `open`, `high`, `low`;
            "wide": `date` and one column per symbol, without bars, not in a database; "curve": the closes of the
            nearby contracts, `date`, `symbol`, `nth`, `close`, for `read_curve`, not in a database. The other layouts
            leave out the curve and the delivery months, which a `Store` keeps.

    Raises:
        DataError: another ending, a table of other columns, no permission, no answer.
        ImportError: an extra is missing; the message says which.
        OSError: the file cannot be written; the old one is unchanged.

    >>> from torchcommodity import data
    >>> path = getfixture("tmp_path") / "prices.parquet"
    >>> wti = data.embedded(["WTI"])
    >>> write(wti, path)
    >>> data.read(path).equals(wti)
    True
    """
    if layout not in get_args(Layout):
        raise ValueError(f"write: layout must be {', '.join(get_args(Layout))}; got {layout!r}")
    name = os.fspath(target)
    if (in_file := parse_table_name(name)) and in_file.is_duckdb:
        from torchcommodity.data._sources.tables.databases import write_duckdb  # imports duckdb

        if layout != "long":
            raise ValueError(f"write: layout must be long in a database; got {layout!r} for {name}")
        write_duckdb(to_database_table(panel), in_file.file, in_file.table, name)
        return
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    if ending is None:
        shown = public_address(name) if is_remote(name) else repr(name)
        raise DataError(
            f"write: expected a name that ends with {', '.join(ENDINGS)}, or FILE.duckdb:TABLE; got {shown}"
        )
    table, sink = to_arrow(panel, layout), io.BytesIO()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink, compression="zstd")
    elif ending in (".feather", ".arrow"):
        import pyarrow.feather as feather

        feather.write_feather(table, sink, compression="lz4")
    else:
        text = frame_to_csv(table.to_pandas(date_as_object=False)).encode()
        if ending == ".csv.gz":
            text = gzip.compress(text, mtime=0)
        elif ending == ".csv.zst":
            text = pa.compress(text, codec="zstd", asbytes=True)
        sink.write(text)
    if is_remote(name):
        write_object(name, sink.getvalue())
    else:
        write_atomic(Path(target), sink.getvalue())

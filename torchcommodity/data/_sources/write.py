"""`write`: the prices of a panel to a file, an object or a table of a database."""

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._sources.atomic_write import write_atomic
from torchcommodity.data._sources.csv_text import frame_to_csv
from torchcommodity.data._sources.lake.objects import is_remote, public_address, write_object
from torchcommodity.data._sources.table_name import parse_table_name

if TYPE_CHECKING:
    import pyarrow as pa

LAYOUTS = ("long", "wide", "curve")


def write(panel: Panel, target: str | os.PathLike[str], *, layout: Literal["long", "wide", "curve"] = "long") -> None:
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
        layout: "long": columns `date`, `symbol`, `price`, `unit`, `source`; "wide": `date` and one column per symbol,
            not in a database; "curve": the closes of the nearby contracts, `date`, `symbol`, `nth`, `close`, for
            `read_curve`, not in a database. The other layouts leave out the curve and the delivery months, which a
            `Store` keeps.

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
    if layout not in LAYOUTS:
        raise ValueError(f"write: layout must be {', '.join(LAYOUTS)}; got {layout!r}")
    name = os.fspath(target)
    if (table := parse_table_name(name)) and table.is_duckdb:
        from torchcommodity.data._sources.tables.databases import write_duckdb  # imports duckdb

        if layout != "long":
            raise ValueError(f"write: layout must be long in a database; got {layout!r} for {name}")
        write_duckdb(panel, table.file, table.table, name)
        return
    body = _encoder(name)(panel, layout)
    if is_remote(name):
        write_object(name, body)
    else:
        write_atomic(Path(target), body)


def _encoder(name: str) -> "Callable[[Panel, str], bytes]":
    ending = next((ending for ending in ENCODERS if name.lower().endswith(ending)), None)
    if ending is None:
        shown = public_address(name) if is_remote(name) else repr(name)
        raise DataError(
            f"write: expected a name that ends with {', '.join(ENCODERS)}, or FILE.duckdb:TABLE; got {shown}"
        )
    return ENCODERS[ending]


def _arrow_table(panel: Panel, layout: str) -> "pa.Table":
    from torchcommodity.data._sources.lake.arrow import to_arrow  # imports pyarrow

    return to_arrow(panel, layout)


def _parquet(panel: Panel, layout: str) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(_arrow_table(panel, layout), sink, compression="zstd")
    return sink.getvalue()


def _feather(panel: Panel, layout: str) -> bytes:
    import pyarrow.feather as feather

    sink = io.BytesIO()
    feather.write_feather(_arrow_table(panel, layout), sink, compression="lz4")
    return sink.getvalue()


def _csv(panel: Panel, layout: str) -> bytes:
    return frame_to_csv(_arrow_table(panel, layout).to_pandas(date_as_object=False)).encode()


def _csv_zst(panel: Panel, layout: str) -> bytes:
    import pyarrow as pa

    packed: Any = pa.compress(_csv(panel, layout), codec="zstd", asbytes=True)
    return bytes(packed)


def _csv_gz(panel: Panel, layout: str) -> bytes:
    return gzip.compress(_csv(panel, layout), mtime=0)


ENCODERS: "dict[str, Callable[[Panel, str], bytes]]" = {
    ".parquet": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    ".csv": _csv,
    ".csv.gz": _csv_gz,
    ".csv.zst": _csv_zst,
}

"""Tables of panels as one SQL view: Parquet files, a table of a DuckDB file, or one panel in memory.

The view `panels` has panel TEXT, date DATE or TEXT, symbol TEXT, price DOUBLE or TEXT, file and row (from 1).
"""

import glob
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchcommodity.batch._duckdb import sql_name, sql_text
from torchcommodity.data import LongFormat, Panel, local_copy, parse_table_name, public_address, summarize_names

NOT_FILES = re.compile(r"sql:|\w+://")  # they may contain a colon or a star too
INTEGERS = "U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"
NAME_TYPES = re.compile(rf"VARCHAR|ENUM\(.*|{INTEGERS}|UUID")
DATE_TYPES = re.compile(rf"VARCHAR|DATE|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|{INTEGERS}")
PRICE_TYPES = re.compile(rf"VARCHAR|FLOAT|DOUBLE|DECIMAL\(.*|{INTEGERS}")
SAMPLE = 10_000  # first rows, from which the columns and the format of text are decided
COLUMNS = "panel,date,symbol,price"


@dataclass(frozen=True)
class PanelTable:
    """An opened table of panels.

    Args:
        label: name of the source, which begins each error message.
        files: the files, or the label of a table.
        sha256: checksum of the content.
        form: its columns, and how text in them is read.
        states: inode, size and modification time of each file when its checksum was taken.
    """

    label: str
    files: tuple[str, ...]
    sha256: str
    form: LongFormat
    states: tuple[Any, ...] = field(default=(), repr=False)

    def at(self, file: int, row: int) -> str:
        """`panels.parquet, row 7`."""
        return f"{self.files[file]}, row {row}"

    def check_unchanged(self) -> None:
        """Raise ValueError if a file has changed since its checksum was taken."""
        for path, state in zip(self.files, self.states):
            if _state(Path(path)) != state:
                raise ValueError(f"batch: expected {path} to stay unchanged; it changed while it was read")


def is_panel_table(source: Any) -> bool:
    """Whether a source is a table of panels: a folder, a glob pattern, FILE.duckdb:TABLE, Parquet with column `panel`.

    >>> is_panel_table("panels/*.parquet"), is_panel_table("panels.duckdb:prices"), is_panel_table("embedded")
    (True, True, False)
    """
    if not isinstance(source, (str, os.PathLike)):
        return False
    name = os.fspath(source)
    path = Path(name)
    if NOT_FILES.match(name) and not path.exists():
        return False
    table = parse_table_name(name)
    if (table and table.is_duckdb) or path.is_dir() or (glob.has_magic(name) and not path.exists()):
        return True
    if not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        return False
    return any(name.strip().lower() == "panel" for name in _schema(path).names)


@contextmanager
def local_panels(source: Any) -> Iterator[Any]:
    """The source itself, or a temporary local copy of the Parquet objects at an address."""
    if not isinstance(source, str) or "://" not in source:
        yield source
        return
    with local_copy(source) as path:
        yield path


def open_source(connection: Any, source: str | os.PathLike[str] | Panel, address: Any = None) -> PanelTable:
    """Create the view `panels` of a source; `address` is where a temporary copy comes from.

    Raises:
        ValueError: the table does not exist or cannot be read, or it lacks one of the columns.
    """
    if isinstance(source, Panel):
        return _open_panel(connection, source)
    name = os.fspath(source)
    in_file = parse_table_name(name)
    if in_file and in_file.is_duckdb:
        table = _open_table(connection, Path(in_file.file), in_file.table)
    else:
        table = _open_parquet(connection, _find_files(name))
    if not isinstance(address, str) or "://" not in address:
        return table
    label = public_address(address)
    files = tuple(file.replace(os.fspath(source), label.rstrip("/")) for file in table.files)
    return replace(table, label=label, files=files, states=())  # nobody else writes to the copy


def _open_panel(connection: Any, panel: Panel) -> PanelTable:
    symbols, values = panel.symbols, panel.values.plain()
    T, N = values.shape
    prices = values.numpy()
    digest = hashlib.sha256(repr((symbols, panel.dates.tolist())).encode() + prices.tobytes())
    columns = {
        "panel": np.repeat("panel", T * N),
        "date": np.repeat(panel.dates, N),
        "symbol": np.tile(np.array(symbols, dtype=object), T),
        "price": prices.ravel(),
        "file": np.zeros(T * N),
        "row": np.repeat(np.arange(1, T + 1), N),
    }
    connection.register("panels", pa.table(columns))
    label = summarize_names(dict.fromkeys(record.location for record in panel.provenance))
    return PanelTable(label, (label,), digest.hexdigest(), LongFormat(1, 2, 3))


def _open_table(connection: Any, file: Path, table: str) -> PanelTable:
    if not file.is_file():
        raise ValueError(f"batch: expected a DuckDB file; got {file}, which does not exist")
    connection.execute(f"ATTACH {sql_text(str(file.absolute()))} AS source (READ_ONLY)")
    rows = connection.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'").fetchall()
    tables = [row[0] for row in rows]
    if table not in tables:
        known = summarize_names(tables) or "it has none"
        raise ValueError(f"batch: expected a table of {file} ({known}); got {table!r}")
    label = f"{file}:{table}"
    form = _create_view(connection, label, f"source.{sql_name(table)}", "0", "rowid + 1", None)
    # of the rows in order, each as one line of JSON, so that other content of the file has no effect
    digest, line = hashlib.sha256(), "to_json([panel, date::TEXT, symbol, price::TEXT])::TEXT || chr(10)"
    for batch in pa.RecordBatchReader.from_stream(connection.sql(f"SELECT {line} AS line FROM panels")):
        digest.update(pc.binary_join(pa.ListArray.from_arrays([0, len(batch)], batch.column(0)), "")[0].as_buffer())
    return PanelTable(label, (label,), digest.hexdigest(), form)


def _open_parquet(connection: Any, files: list[Path]) -> PanelTable:
    first = _schema(files[0])
    for path in files[1:]:
        if not (other := _schema(path)).equals(first):
            raise ValueError(
                f"batch: expected the columns of {files[0]} in every file ({_describe(first)}); "
                f"got {_describe(other)} in {path}"
            )
    names = tuple(map(str, files))
    states, digests = tuple(map(_state, files)), []
    for path in files:
        checksum = hashlib.sha256()
        with path.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                checksum.update(chunk)
        digests.append(checksum.hexdigest())
    quoted = f"[{', '.join(map(sql_text, names))}]"
    reader = f"read_parquet({quoted}, file_row_number = true, filename = '__file', hive_partitioning = false)"
    label = names[0] if len(names) == 1 else f"{len(names)} Parquet files"
    form = _create_view(connection, label, reader, f"list_position({quoted}, __file) - 1", "file_row_number + 1", first)
    digest = digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    return PanelTable(label, names, digest, form, states)


def _create_view(connection: Any, label: str, table: str, file: str, row: str, schema: Any) -> LongFormat:
    """The view `panels` of a table expression; `file` and `row` are SQL expressions of its rows."""
    columns = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    types = {name: kind for name, kind, *_ in columns if name not in ("__file", "file_row_number")}
    panels = [name for name in types if name.strip().lower() == "panel"]
    if not panels:
        raise ValueError(f"{label}: expected columns {COLUMNS}; got {summarize_names(types, limit=20)}")
    panel, names = panels[0], [name for name in types if name != panels[0]]
    sample = connection.sql(f"SELECT {', '.join(map(sql_name, names))} FROM {table} LIMIT {SAMPLE}")
    form = LongFormat.detect(sample.to_arrow_table(), label)
    date, symbol, price = names[form.date], names[form.symbol], names[form.price]
    for name, expected, words in (
        (panel, NAME_TYPES, "names or integers"),
        (date, DATE_TYPES, "dates"),
        (symbol, NAME_TYPES, "names"),
        (price, PRICE_TYPES, "prices"),
    ):
        if not expected.fullmatch(types[name]):
            raise ValueError(f"{label}: {name!r}: expected {words}; got {types[name]}")
    day = sql_name(date)
    if types[date] == "TIMESTAMP WITH TIME ZONE":
        zone = (schema.field(date).type.tz if schema is not None else None) or "UTC"
        day = f"timezone({sql_text(zone)}, {day})"
    day = f"CAST({day} AS {'DATE' if form.dates is None else 'VARCHAR'})"
    number = sql_name(price) if types[price] == "VARCHAR" else f"CAST({sql_name(price)} AS DOUBLE)"
    connection.execute(
        f"CREATE VIEW panels AS SELECT CAST({sql_name(panel)} AS VARCHAR) AS panel, {day} AS date, "
        f"CAST({sql_name(symbol)} AS VARCHAR) AS symbol, {number} AS price, {file} AS file, {row} AS row FROM {table}"
    )
    return form


def _find_files(source: str) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    paths = path.rglob("*.parquet") if path.is_dir() else map(Path, glob.glob(source, recursive=True))
    if files := sorted(path for path in paths if path.is_file()):
        return files
    raise ValueError(
        f"batch: expected Parquet files with panels, or FILE.duckdb:TABLE; got {source!r} with no such file"
    )


def _schema(path: Path) -> Any:
    try:
        return pq.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path}: expected a complete Parquet file; got one that cannot be read: {reason}") from None


def _describe(schema: Any) -> str:
    return summarize_names((f"{field.name} {field.type}" for field in schema), limit=20)


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns

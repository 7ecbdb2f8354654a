"""Where the panels lie: Parquet files, a table of a DuckDB file, or one panel in memory; as one view in SQL.

The view `panels` has panel TEXT, date DATE or TEXT, symbol TEXT, price DOUBLE or TEXT, file and row (from 1).
"""

import glob
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from torchcommodity.batch import _sql as sql
from torchcommodity.data import Panel, detect_layout

DUCKDB = re.compile(r"(?P<file>.+\.(duckdb|db|ddb)):(?P<table>[^:/\\]+)")
NAMES = re.compile(r"VARCHAR|ENUM\(.*|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|UUID")
DAYS = re.compile(r"VARCHAR|DATE|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE")
PRICES = re.compile(r"VARCHAR|FLOAT|DOUBLE|DECIMAL\(.*|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER")
COLUMNS = "panel,date,symbol,price"


@dataclass(frozen=True)
class Source:
    """A table that was found; `sha256` is of what it holds."""

    place: str
    files: tuple[str, ...]
    sha256: str
    states: tuple[Any, ...] = field(default=(), repr=False)

    def at(self, file: int, row: int) -> str:
        """`panels.parquet, row 7`."""
        return f"{self.files[file]}, row {row}"

    def check_unchanged(self) -> None:
        """A ValueError where a file is no longer the one whose checksum was taken."""
        for path, state in zip(self.files, self.states):
            if _state(Path(path)) != state:
                raise ValueError(f"forecast: expected {path} to stay as it is; it changed while it was read")


def holds_panels(source: str) -> bool:
    """Whether a source is a table of panels: a folder, a pattern, FILE.duckdb:TABLE, a Parquet file with `panel`.

    >>> holds_panels("panels/*.parquet"), holds_panels("panels.duckdb:prices"), holds_panels("embedded")
    (True, True, False)
    """
    path = Path(source)
    if DUCKDB.fullmatch(source) or path.is_dir() or (glob.has_magic(source) and not path.exists()):
        return True
    if not path.is_file() or path.suffix.lower() not in (".parquet", ".pq"):
        return False
    return any(name.strip().lower() == "panel" for name in _schema(path).names)


def opened(connection: Any, source: "str | Path | Panel") -> Source:
    """Make the view `panels` of a source.

    Raises:
        ValueError: there is no such table, it cannot be read, or its columns are not those of a table of panels.
    """
    if isinstance(source, Panel):
        return _panel(connection, source)
    if match := DUCKDB.fullmatch(str(source)):
        return _table(connection, Path(match["file"]), match["table"])
    return _parquet(connection, _files(str(source)))


def _panel(connection: Any, panel: Panel) -> Source:
    T, N = len(panel), len(panel.symbols)
    numbers = panel.values.plain().numpy()
    digest = hashlib.sha256(repr((panel.symbols, panel.dates.tolist())).encode() + numbers.tobytes())
    days = np.repeat(panel.dates, N)
    columns = {"date": days, "symbol": np.tile(np.array(panel.symbols, dtype=object), T), "price": numbers.ravel()}
    rows = {
        "panel": np.repeat("panel", T * N),
        **columns,
        "file": np.zeros(T * N),
        "row": np.repeat(np.arange(1, T + 1), N),
    }
    connection.register("panels", pa.table(rows))
    place = ", ".join(dict.fromkeys(record.location for record in panel.provenance))
    return Source(place, (place,), digest.hexdigest())


def _table(connection: Any, file: Path, table: str) -> Source:
    if not file.is_file():
        raise ValueError(f"forecast: expected a DuckDB file; there is no file {file}")
    connection.execute(f"ATTACH {sql.text(str(file.absolute()))} AS source (READ_ONLY)")
    name = f"source.{sql.name(table)}"
    tables = [
        row[0]
        for row in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'"
        ).fetchall()
    ]
    if table not in tables:
        raise ValueError(f"forecast: expected a table of {file} ({', '.join(tables) or 'it has none'}); got {table!r}")
    place = f"{file}:{table}"
    _view(connection, place, name, "0", "rowid + 1", None)
    return Source(place, (place,), _checksum_of_rows(connection))


def _parquet(connection: Any, files: list[Path]) -> Source:
    first = _schema(files[0])
    for path in files[1:]:
        if not (other := _schema(path)).equals(first):
            raise ValueError(
                f"forecast: expected the columns of {files[0]} in every file ({_shown(first)}); "
                f"got {_shown(other)} in {path}"
            )
    names = tuple(map(str, files))
    states, digests = tuple(map(_state, files)), [_checksum(path) for path in files]
    listed = f"[{', '.join(map(sql.text, names))}]"
    reader = f"read_parquet({listed}, file_row_number = true, filename = '__file', hive_partitioning = false)"
    place = names[0] if len(names) == 1 else f"{len(names)} Parquet files"
    _view(connection, place, reader, f"list_position({listed}, __file) - 1", "file_row_number + 1", first)
    whole = digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    return Source(place, names, whole, states)


def _view(connection: Any, place: str, table: str, file: str, row: str, schema: Any) -> None:
    found = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    kinds = {name: kind for name, kind, *_ in found if name not in ("__file", "file_row_number")}
    columns = detect_layout(list(kinds), place)
    names = list(kinds)
    panel = [name for name in names if name.strip().lower() == "panel"]
    if columns.symbol is None or not panel:
        raise ValueError(f"{place}: expected columns {COLUMNS}; got {', '.join(names)}")
    date, symbol, price = names[columns.date], names[columns.symbol], names[columns.prices[0]]
    for name, known, what in (
        (panel[0], NAMES, "names or whole numbers"),
        (date, DAYS, "dates"),
        (symbol, NAMES, "names"),
        (price, PRICES, "prices"),
    ):
        if not known.fullmatch(kinds[name]):
            raise ValueError(f"{place}: {name!r}: expected {what}; got {kinds[name]}")
    day = sql.name(date)
    if kinds[date] == "TIMESTAMP WITH TIME ZONE":
        zone = (schema.field(date).type.tz if schema is not None else None) or "UTC"
        day = f"timezone({sql.text(zone)}, {day})"
    day = day if kinds[date] == "VARCHAR" else f"CAST({day} AS DATE)"
    number = sql.name(price) if kinds[price] == "VARCHAR" else f"CAST({sql.name(price)} AS DOUBLE)"
    connection.execute(
        f"CREATE VIEW panels AS SELECT CAST({sql.name(panel[0])} AS VARCHAR) AS panel, {day} AS date, "
        f"CAST({sql.name(symbol)} AS VARCHAR) AS symbol, {number} AS price, {file} AS file, {row} AS row FROM {table}"
    )


def _files(source: str) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    found = path.rglob("*.parquet") if path.is_dir() else map(Path, glob.glob(source, recursive=True))
    if files := sorted(each for each in found if each.is_file()):
        return files
    raise ValueError(f"forecast: expected Parquet files with panels, or FILE.duckdb:TABLE; there are none at {source}")


def _schema(path: Path) -> Any:
    try:
        return pq.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path}: expected a whole Parquet file; got one that cannot be read: {reason}") from None


def _shown(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _checksum_of_rows(connection: Any) -> str:
    """Of the rows in their order, each as one line of JSON: the file may change, the table is the same."""
    digest = hashlib.sha256()
    texts = connection.sql("SELECT to_json([panel, date::TEXT, symbol, price::TEXT])::TEXT AS line FROM panels")
    for part in pa.RecordBatchReader.from_stream(texts):
        digest.update("".join(f"{line}\n" for line in part.column(0).to_pylist()).encode())
    return digest.hexdigest()

"""A panel as an Arrow table, with what a table of prices cannot say in the metadata of its schema."""

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.tables.arrow import METADATA
from torchcommodity.data._sources.tables.table import Records

if TYPE_CHECKING:
    from torchcommodity.data._core.panel import Panel

# `publisher` is the column `source` of the long table
PROVENANCE = ("contract", *(field.name for field in fields(Provenance) if field.name != "publisher"))

Layout = str  # "long", "wide" or "curve"


def to_arrow(panel: "Panel", layout: Layout) -> Any:
    """The `pyarrow.Table` of a panel; a missing price is null. See `write`."""
    table = {"long": _long, "wide": _wide, "curve": _curve}[layout](panel)
    records = {record.pop("symbol"): record for record in panel.sources()}
    return table.replace_schema_metadata({METADATA: json.dumps(records).encode()})


def to_database_table(panel: "Panel") -> Any:
    """The long table with contract and provenance in columns, for a database, which keeps no metadata."""
    T, table = len(panel), to_arrow(panel, "long").replace_schema_metadata(None)
    for name in PROVENANCE:
        table = table.append_column(name, _repeat([record[name] for record in panel.sources()], T))
    return table


def split_records(table: Any) -> tuple[Any, Records]:
    """The table of `to_database_table` without the columns of its records, and the records.

    Any other table, and one with two records for a symbol, is unchanged.
    """
    if not {"symbol", *PROVENANCE}.issubset(table.column_names):
        return table, {}
    names = ["symbol", *PROVENANCE]
    rows = table.select(names).group_by(names).aggregate([]).to_pylist()
    records = {row.pop("symbol"): {name: text or "" for name, text in row.items()} for row in rows}
    return (table.drop_columns(list(PROVENANCE)), records) if len(records) == len(rows) else (table, {})


def _long(panel: "Panel") -> Any:
    T, N = panel.values.shape
    prices = panel.values.plain().detach().numpy()
    publishers = [record.publisher for record in panel.provenance]
    columns = {
        "date": pa.array(np.tile(panel.dates, N), pa.date32()),
        "symbol": _repeat(panel.symbols, T),
        "price": pa.array(prices.T.ravel(), from_pandas=True),
        "unit": _repeat(panel.units, T),
        "source": _repeat(publishers, T),
    }
    return pa.table(columns)


def _wide(panel: "Panel") -> Any:
    if "date" in (symbol.lower() for symbol in panel.symbols):
        raise DataError("write: expected no symbol named date in the wide layout; got one (use layout='long')")
    prices = panel.values.plain().detach().numpy()
    columns = [pa.array(prices[:, n], from_pandas=True) for n in range(prices.shape[1])]
    return pa.table([pa.array(panel.dates, pa.date32()), *columns], names=["date", *panel.symbols])


def _curve(panel: "Panel") -> Any:
    if panel.curve is None:
        raise DataError("write: expected a panel with a curve; got none (use layout='long')")
    closes = panel.curve.plain().detach().numpy()
    row, column, nth = np.nonzero(~np.isnan(closes))
    symbols = pa.array(list(panel.symbols), pa.string())
    columns = {
        "date": pa.array(panel.dates[row], pa.date32()),
        "symbol": symbols.take(pa.array(column)),
        "nth": pa.array(nth + 1),
        "close": pa.array(closes[row, column, nth]),
    }
    return pa.table(columns)


def _repeat(texts: Any, rows: int) -> Any:
    indices = np.repeat(np.arange(len(texts)), rows)
    return pa.array(list(texts), pa.string()).take(pa.array(indices))

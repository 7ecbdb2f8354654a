"""The columns of bars: which column holds the open, the high, the volume."""

from collections.abc import Sequence

from torchcommodity.data._sources.formats.levels import read_header_rows, split_names
from torchcommodity.data._sources.formats.names import HIGHS, INTERESTS, LOWS, OPENS, VOLUMES, key
from torchcommodity.data._sources.tables.table import Table

FIELDS = {"open": OPENS, "high": HIGHS, "low": LOWS, "volume": VOLUMES, "open_interest": INTERESTS}


def field_names(table: Table, fields: Sequence[str] = tuple(FIELDS)) -> dict[str, str]:
    """Field -> the name of its column, or of its columns in a header of several rows; only those that are there.

    >>> import numpy as np
    >>> from torchcommodity.data._sources.tables.table import Column
    >>> from torchcommodity.data._sources.tables.table import Origin
    >>> columns = tuple(Column(name, ["1"]) for name in ("Date", "Open", "Vol.", "Price"))
    >>> field_names(Table(columns, np.array([2]), Origin("bars.csv"), "bars.csv, line 1", "CSV"))
    {'open': 'Open', 'volume': 'Vol.'}
    """
    levels = split_names(read_header_rows(table)).levels or (table.names,)
    names = {key(name): name for level in levels for name in level}
    matches = {field: next((names[word] for word in FIELDS[field] if word in names), None) for field in fields}
    return {field: name for field, name in matches.items() if name is not None}

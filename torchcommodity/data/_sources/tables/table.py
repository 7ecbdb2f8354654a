"""`Table`: what every reader returns, before a layout gives the columns their roles."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding
from torchcommodity.data._core.names import printable
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.records import Records


@dataclass(frozen=True)
class Origin:
    """Where a table comes from: `label` opens every message, on one line; the rest is provenance."""

    label: str
    publisher: str = NOT_STATED
    license: str = NOT_STATED
    retrieved: str = ""
    sha256: str = ""
    row_word: str = "line"
    location: str = ""  # default: the label
    file: str = ""  # its name may be the symbol of a series without one

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", printable(self.label))  # a file name may hold any character

    def at(self, line: int) -> str:
        """`prices.csv, line 7`."""
        return f"{self.label}, {self.row_word} {line}"


@dataclass(frozen=True)
class Column:
    """One column of R cells.

    Args:
        name: its name in the header; "" = an index without a name, as pandas writes it.
        cells: a list of text, "" = missing; or an array `(R,)` of numbers (NaN = missing), of booleans, of local times
            `datetime64` (NaT = missing), or of objects that are none of these.
        dtype: the type as its source names it, for error messages.
        unit: its unit, where the header states one.

    >>> Column("WTI", ["18.27", ""]).is_text
    True
    """

    name: str
    cells: "list[str] | Array"
    dtype: str = "text"
    unit: str = ""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def is_text(self) -> bool:
        """Whether the cells are text."""
        return isinstance(self.cells, list)

    @property
    def is_time(self) -> bool:
        """Whether the cells are dates or times."""
        return isinstance(self.cells, np.ndarray) and self.cells.dtype.kind == "M"

    @property
    def is_number(self) -> bool:
        """Whether the cells are integers or floating-point numbers."""
        return isinstance(self.cells, np.ndarray) and self.cells.dtype.kind in "iuf"


@dataclass(frozen=True)
class Table:
    """Named columns with the line of each row, and where they come from.

    Args:
        columns: the columns, of equal length.
        lines: `(R,)` line numbers of a text file, or row numbers from 1.
        origin: where the table comes from.
        header: where the names stand, to open error messages: "prices.csv, line 1".
        kind: "CSV", "Parquet", "DataFrame", "Excel", ...
        levels: the rows of a header of several rows, such as field and ticker; empty for a header of one row.
        titles: lines above the header, as written.
        notes: facts for whoever reads the data, such as the time zone that the times were in.
        findings: what the reader dropped.
        records: unit, contract and provenance by symbol, where the source states them.
    """

    columns: tuple[Column, ...]
    lines: Array
    origin: Origin
    header: str
    kind: str
    levels: tuple[tuple[str, ...], ...] = ()
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    records: Records = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, row: int) -> str:
        """Where a row stands: `prices.csv, line 7`."""
        return self.origin.at(int(self.lines[row]))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names as written."""
        return tuple(column.name for column in self.columns)

    def select(self, columns: Sequence[int], names: Sequence[str] | None = None) -> "Table":
        """The table of these columns, in this order, with these names; a header of several rows becomes one row."""
        names = [self.columns[n].name for n in columns] if names is None else names
        selected = tuple(replace(self.columns[n], name=name) for n, name in zip(columns, names))
        return replace(self, columns=selected, levels=())

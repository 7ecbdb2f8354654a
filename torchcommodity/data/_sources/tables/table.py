"""`Table`: what every reader returns: columns, where they come from, and their conversion with errors in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding
from torchcommodity.data._core.names import printable
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.columns.numbers import decimal_proofs, grouped_by_points, has_comma

Records = Mapping[str, Mapping[str, str]]  # symbol -> the fields of `Panel.sources`


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

    def texts(self, column: Column | None) -> list[str]:
        """The texts `(R,)` of a column, "" = missing; all "" for an optional column that the table does not have."""
        return [""] * len(self) if column is None else column.texts

    def times(self, column: Column, order: str | None = None) -> Array:
        """The local times `(R,) datetime64` of a column of dates; see `Column.times`.

        Raises:
            DataError: a missing or impossible date, or a column of something else.
        """
        parsed = column.times(order)
        if parsed.bad.any():
            row = int(parsed.bad.argmax())
            raise DataError(f"{self.at(row)}: {parsed.problem(row)}")
        return parsed.values

    def days(self, column: Column, order: str | None = None) -> Array:
        """The calendar days `(R,)` of a column of dates; a time counts as the day as written. See `times`."""
        return self.times(column, order).astype("datetime64[D]")

    def prices(self, columns: Sequence[Column], decimal: str | None = None, names: Sequence[str] = ()) -> Array:
        """The prices `(R, K)` of K columns, NaN = missing; messages name the row (`names`) or else the column.

        Where text is not plain numbers, decimal mark and thousands separators are decided from all the columns.

        Raises:
            DataError: a cell that is not a finite price; numbers whose decimal mark is not certain.
        """
        mark = decimal or self._decimal_mark(columns)
        prices = np.empty((len(self), len(columns)))
        for k, column in enumerate(columns):
            parsed = column.prices(mark)
            if parsed.bad.any():
                row = int(parsed.bad.argmax())
                has_name = names and (column.is_text or column.is_number)
                name = names[row] if has_name else column.name
                raise DataError(f"{self.at(row)}: {name!r}: {parsed.problem(row)}")
            prices[:, k] = parsed.values
        return prices

    def _decimal_mark(self, columns: Sequence[Column]) -> str:
        """The decimal mark that the cells of all columns prove."""
        texts = [column for column in columns if column.is_text]
        if not any(column.has_comma for column in texts):
            for column in texts:
                if cell := grouped_by_points(column.amounts):  # 1.021 beside 985 may be a thousand
                    raise DataError(
                        f"{self.origin.label}: {column.name!r}: expected a decimal point; got {cell!r} beside whole "
                        "numbers, whose point can separate thousands; "
                        "say which with --decimal , or --decimal . (decimal=)"
                    )
            return "."
        proofs: dict[str, tuple[int, str, str]] = {}  # row, cell and column of the first proof of a mark
        for column in texts:
            for mark, row in decimal_proofs(column.amounts, *(proofs if len(proofs) == 1 else ())).items():
                if mark not in proofs or row < proofs[mark][0]:
                    proofs[mark] = (row, column.amounts[row], column.name)
        if len(proofs) == 1:
            return next(iter(proofs))
        if proofs:
            (early, first, _), (row, cell, name) = sorted(proofs.values())
            raise DataError(
                f"{self.at(row)}: {name!r}: expected one decimal mark in the file, as in {first!r} "
                f"({self.origin.row_word} {self.lines[early]}); got {cell!r}; state it with --decimal . or --decimal ,"
            )
        name, row, cell = next(
            (column.name, row, cell) for column in texts for row, cell in enumerate(column.amounts) if has_comma([cell])
        )
        raise DataError(
            f"{self.at(row)}: {name!r}: expected a decimal point; got {cell!r}, whose comma can be a decimal mark or "
            "separate thousands; say which with --decimal , or --decimal . (decimal=)"
        )

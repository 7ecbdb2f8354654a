"""`Table`: what every reader returns: columns, where they come from, and their conversion with errors in words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from torchcommodity.data._core.calendar import calendar_years
from torchcommodity.data._core.errors import DataError, Finding, printable, summarize_names
from torchcommodity.data._core.prices import Array, expected_range, overflows
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.columns.dates import FIRST_YEAR, LAST_YEAR, Style, find_style, parse_dates
from torchcommodity.data._sources.columns.numbers import (
    MISSING,
    Parsed,
    decimal_proofs,
    grouped_by_points,
    has_comma,
    is_number_text,
    parse_prices,
    without_currency,
)

SAMPLE = 50  # first cells that tell what a column holds
FIXED_POINT = 10**9  # units of a price in Databento's integers
UNDEFINED = 2**63 - 1  # its missing price

_INTEGER = re.compile(r"\s*[0-9]{1,18}(\.0*)?\s*")
_NUMBER = re.compile(
    r"[-+(]*[$€£¥]?[0-9.,'\u00a0\u202f\u2019 ]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?[%KMB]?( ?[$€£¥])?\)?"
    r"|[0-9]+:[0-9:.]+( ?[AaPp]\.?[Mm]\.?)?"  # or a time
)


def column_name(cell: str) -> str:
    r"""The name of a column: the text of its cell in a header, whose line breaks are spaces.

    >>> column_name("WTI\n$/bbl ")
    'WTI $/bbl'
    """
    return re.sub(r"\s*[\r\n]+\s*", " ", cell.strip())


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def texts(self) -> list[str]:
        """The text `(R,)` of the cells without spaces at its ends, "" = missing."""
        if isinstance(self.cells, list):
            stripped = {text: text.strip() for text in set(self.cells)}
            return [stripped[text] for text in self.cells]
        return ["" if cell is None or cell != cell else str(cell) for cell in self.cells.tolist()]

    @cached_property
    def sample(self) -> list[str]:
        """The texts among the first cells that are not blank."""
        return [text.strip() for text in self.cells[:SAMPLE] if text.strip()] if isinstance(self.cells, list) else []

    @cached_property
    def style(self) -> Style | None:
        """The style of dates of the first cell: of the first text, or of an integer such as 20200420."""
        if self.sample:
            return find_style(self.sample[0])
        if not self.is_number or not len(self) or not np.isfinite(self.cells[:SAMPLE]).all():
            return None
        return find_style(str(int(self.cells[0])))

    def holds_dates(self, by_name: bool) -> bool:
        """Whether the cells are dates; text that may be a number, and numbers, are only if their name says so."""
        if self.is_time:
            return True
        if self.style is None or by_name:
            return self.style is not None
        # 16.06.2025 is a number in no country
        return not self.is_number and not all(is_number_text(text) for text in self.sample)

    @cached_property
    def holds_names(self) -> bool:
        """Whether the cells are names: none of the first ones is a number or stands for a missing one."""
        filled = [text for text in self.sample if text.lower() not in MISSING]
        return bool(filled) and not any(map(_NUMBER.fullmatch, filled))

    @cached_property
    def integers(self) -> Array | None:
        """The cells that are not missing, if all of them are integers."""
        if isinstance(self.cells, list):
            first = next(filter(str.strip, self.cells), "")  # nearly all columns are told apart by their first number
            if first and not _INTEGER.fullmatch(first):
                return None
            texts = [text for text in self.cells if text.strip()]
            return np.array(list(map(float, texts))) if all(map(_INTEGER.fullmatch, texts)) else None
        if not self.is_number:
            return None
        numbers: Array = self.cells[np.isfinite(self.cells)].astype(np.float64)  # 10,000 is no 8-bit integer
        return numbers if bool((numbers == np.floor(numbers)).all()) else None

    @cached_property
    def holds_identifiers(self) -> bool:
        """Whether all numbers are dates or contract months: 20240131, 20240200, 202402."""
        if self.integers is None or not self.integers.size:
            return False
        for scale in (10_000, 100):
            year, rest = self.integers // scale, self.integers % scale
            month, day = (rest // 100, rest % 100) if scale == 10_000 else (rest, 0 * rest)
            if bool(((year >= 1900) & (year <= 2200) & (month >= 1) & (month <= 12) & (day <= 31)).all()):
                return True
        return False

    @property
    def holds_days(self) -> bool:
        """Whether all cells are integers such as 20240304, days of the calendar."""
        if self.integers is None or not self.integers.size or len(self.integers) < len(self):
            return False
        if not ((self.integers >= 19_000_101) & (self.integers <= 22_001_231)).all():
            return False
        return not self.times().bad.any()

    @cached_property
    def amounts(self) -> list[str]:
        """The texts of a column of prices, without the sign of a currency."""
        return without_currency(self.cells) if isinstance(self.cells, list) else []

    @cached_property
    def has_comma(self) -> bool:
        """Whether a number among the texts has a comma."""
        return has_comma(self.amounts)

    def times(self, order: str | None = None) -> Parsed:
        """The cells as local times `(R,) datetime64`; integers are YYYYMMDD, YYYYMM or times since 1970.

        Args:
            order: of day and month, "dmy" or "mdy"; default: as the column says.
        """
        if isinstance(self.cells, list):
            return parse_dates(self.cells, order)
        if not self.is_number and not self.is_time:
            problem = f"expected dates in {self.name!r}; got {self.dtype} {self.cells.tolist()[0]!r}"
            return Parsed(self.cells, np.ones(len(self), dtype=bool), lambda row: problem)
        numbers = None if self.is_time else self.cells.astype(np.float64)
        missing = np.isnat(self.cells) if numbers is None else ~np.isfinite(numbers)
        if missing.any():
            infinite = np.zeros(len(self), dtype=bool) if numbers is None else np.isinf(numbers)
            words = ("a missing one", "infinity")
            return Parsed(self.cells, missing, lambda row: f"expected a date; got {words[int(infinite[row])]}")
        if self.is_number:
            return parse_dates([str(int(cell)) for cell in self.cells.tolist()])
        years = calendar_years(self.cells)
        outside = (years < FIRST_YEAR) | (years > LAST_YEAR)
        days = self.cells
        return Parsed(days, outside, lambda row: f"expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {days[row]}")

    def prices(self, mark: str = ".") -> Parsed:
        """The cells as prices `(R,)`, NaN = missing, with this decimal mark; text may separate thousands."""
        if mark not in self._prices:  # its role depends on its numbers, which are read again for the panel
            self._prices[mark] = self._parse_prices(mark)
        return self._prices[mark]

    @cached_property
    def _prices(self) -> dict[str, Parsed]:
        return {}

    def _parse_prices(self, mark: str) -> Parsed:
        if isinstance(self.cells, list):
            parsed = parse_prices(self.amounts, mark)
            if parsed.bad.any():
                return parsed
            prices = parsed.values
        elif self.is_number:
            prices = self.cells.astype(np.float64)
        else:
            problem = f"expected prices; got {self.dtype} {self.cells.tolist()[0]!r}"
            return Parsed(self.cells, np.ones(len(self), dtype=bool), lambda row: problem)
        return Parsed(prices, overflows(prices), lambda row: f"expected {expected_range(float(prices[row]))}")


def fixed_point(column: Column, prices: Array) -> Array:
    """Databento's prices are integers in units of 1e-9 unless they were converted; 2**63 - 1 is missing."""
    if isinstance(column.cells, list):
        is_integer = not any("." in cell for cell in column.cells)
    else:
        is_integer = bool((prices == np.floor(prices)).all())
    return np.where(prices >= UNDEFINED, np.nan, prices / FIXED_POINT) if is_integer else prices


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

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names as written."""
        return tuple(column.name for column in self.columns)

    def select(self, columns: Sequence[int], names: Sequence[str] | None = None) -> "Table":
        """The table of these columns, in this order, with these names; a header of several rows becomes one row."""
        names = [self.columns[n].name for n in columns] if names is None else names
        selected = tuple(replace(self.columns[n], name=name) for n, name in zip(columns, names))
        return replace(self, columns=selected, levels=())

    def find(self, name: str, option: str, *, by: Callable[[str], str] = str, prefix: str = "") -> int:
        """The number of the column that an option names: exactly, or else `by` what names have in common.

        Args:
            name: of the column.
            option: the keyword; in the shell it follows the prefix.
            by: what exact names and others share.
            prefix: such as "covariates-".

        Raises:
            DataError: no such column, or several.
        """
        exact = [n for n, label in enumerate(self.names) if label == name.strip()]
        matches = exact or [n for n, label in enumerate(self.names) if by(label) == by(name)]
        if len(matches) != 1:
            got = summarize_names((label or "''" for label in self.names), limit=12)
            raise DataError(
                f"{self.header}: expected a column named {name!r} (--{prefix}{option}, {option}=); got {got}"
            )
        return matches[0]

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
            dots = any(column.style is not None and column.style.example == "20.04.2020" for column in self.columns)
            for column in texts:
                if cell := grouped_by_points(column.amounts, dots):  # 1.021 beside 985 may be a thousand
                    beside = "dates with dots" if dots else "whole numbers"
                    raise DataError(
                        f"{self.origin.label}: {column.name!r}: expected a decimal point; got {cell!r} beside {beside}"
                        ", whose point can separate thousands; say which with --decimal , or --decimal . (decimal=)"
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

"""`Column`: one column of a table, and what its cells are: times, numbers or names, each found out once."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.frequency import calendar_years
from torchcommodity.data._core.prices import expected_range, overflows
from torchcommodity.data._sources.columns.dates import FIRST_YEAR, LAST_YEAR, Parsed, Style, find_style, parse_dates
from torchcommodity.data._sources.columns.numbers import has_comma, price_problem, to_numbers, without_currency

SAMPLE = 50  # first cells that tell what a column holds
FIXED_POINT = 10**9  # units of a price in Databento's integers
UNDEFINED = 2**63 - 1  # its missing price

_INTEGER = re.compile(r"\s*[0-9]{1,18}(\.0*)?\s*")
_NUMBER = re.compile(
    r"[-+(]*[$€£¥]?[0-9.,'\u00a0\u202f\u2019 ]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?[%KMB]?( ?[$€£¥])?\)?|[0-9]+:[0-9:.]+"
)  # or a time


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
        may_be_numbers = self.is_number or all(map(_NUMBER.fullmatch, self.sample))
        return self.style is not None and (by_name or not may_be_numbers)

    @cached_property
    def holds_names(self) -> bool:
        """Whether the cells are names: none of the first ones is a number."""
        return bool(self.sample) and not any(map(_NUMBER.fullmatch, self.sample))

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
        numbers: Array = self.cells[np.isfinite(self.cells)]
        return numbers if bool((numbers == np.floor(numbers)).all()) else None

    @cached_property
    def holds_identifiers(self) -> bool:
        """Whether all numbers are dates or contract months: 20240131, 20240200, 202402."""
        if self.integers is None or not self.integers.size:
            return False
        for scale in (10_000, 100):
            year, rest = self.integers // scale, self.integers % scale
            month, day = (rest // 100, rest % 100) if scale == 10_000 else (rest, 0 * rest)
            if bool(((year >= 1900) & (year <= 2200) & (month <= 12) & (day <= 31)).all()):
                return True
        return False

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
        if isinstance(self.cells, list):
            amounts, prices = self.amounts, to_numbers(self.amounts, mark)
            if (bad := np.isinf(prices)).any():
                return Parsed(prices, bad, lambda row: f"expected {price_problem(amounts[row], mark)}")
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

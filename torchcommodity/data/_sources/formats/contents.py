"""What the cells of a column say about it: dates, names, numbers that are identifiers."""

import re
from typing import Any

import numpy as np

from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.tables.table import Column

CHECKED = 50  # cells of a column whose values are looked at
INTEGER = re.compile(r"\s*[0-9]{1,18}(\.0*)?\s*")
NUMBER = re.compile(
    r"[-+(]*[$€£¥]?[0-9.,'\u00a0\u202f\u2019 ]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?[%KMB]?( ?[$€£¥])?\)?|[0-9]+:[0-9:.]+"
)  # or a time


def holds_dates(column: Column, by_name: bool) -> bool:
    """Whether a column holds dates; integers do only if its name says so."""
    if column.is_time:
        return True
    if isinstance(column.cells, list):
        texts = [text for text in column.cells[:CHECKED] if text.strip()]
        numbers = not by_name and all(NUMBER.fullmatch(text.strip()) for text in texts)  # prices, more likely
        return bool(texts) and not numbers and find_style(texts[0]) is not None
    if not by_name or not len(column) or column.cells.dtype.kind not in "iuf":
        return False
    first = column.cells[:CHECKED]
    return bool(np.isfinite(first.astype(float)).all()) and find_style(str(int(first[0]))) is not None


def integers(column: Column) -> "np.ndarray[Any, Any] | None":
    """The cells as numbers if all of them are integers."""
    if isinstance(column.cells, list):
        first = next(filter(str.strip, column.cells), "")  # nearly all columns are told apart by their first number
        if first and not INTEGER.fullmatch(first):
            return None
        if not all(INTEGER.fullmatch(text) for text in column.cells if text.strip()):
            return None
        return np.array([float(text) for text in column.cells if text.strip()])
    if not column.is_number:
        return None
    numbers = column.cells[np.isfinite(column.cells)]
    return numbers if bool((numbers == np.floor(numbers)).all()) else None


def is_identifier(column: Column) -> bool:
    """Whether all numbers are dates or contract months: 20240131, 20240200, 202402."""
    numbers = integers(column)
    if numbers is None or not numbers.size:
        return False
    for scale in (10_000, 100):
        year, rest = numbers // scale, numbers % scale
        month, day = (rest // 100, rest % 100) if scale == 10_000 else (rest, 0 * rest)
        if bool(((year >= 1900) & (year <= 2200) & (month <= 12) & (day <= 31)).all()):
            return True
    return False


def is_text(column: Column) -> bool:
    """Whether a column holds names: no cell of its first ones is a number."""
    if not isinstance(column.cells, list):
        return False
    texts = [text.strip() for text in column.cells[:CHECKED] if text.strip()]
    return bool(texts) and not any(NUMBER.fullmatch(text) for text in texts)

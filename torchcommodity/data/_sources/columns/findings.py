"""Findings about the cells of a table as they were written: times of day, and numbers that are stored as text."""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._sources.tables.table import Column, Table

TEXT_FILES = ("CSV",)  # kinds of tables in which every number is text
_TIME = re.compile(r"[T ]([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)")


def column_findings(date: Column, prices: Iterable[Column], table: Table) -> Iterator[Finding]:
    """Findings of the date column, "time of day", and of the price columns, "text numbers"."""
    has_time = _text_times(date.cells) if isinstance(date.cells, list) else _times(date.cells)
    if has_time.any():
        row, count = int(has_time.argmax()), int(has_time.sum())
        value = " ".join([str(date.cells[row]), *table.notes])
        yield make_finding("time of day", line=int(table.lines[row]), value=value, count=count)
    if table.kind not in TEXT_FILES:
        for column in prices:
            if column.is_text:
                yield make_finding("text numbers", value=f"{column.name!r} is {column.dtype} in {table.kind}")


def _times(cells: Array) -> Array:
    is_time: Array = (cells != cells.astype("datetime64[D]")) & ~np.isnat(cells)
    return is_time


def _text_times(cells: list[str]) -> Array:
    # the time stands behind the year, month and day of most formats
    timed = {cell for cell in set(cells) if (match := _TIME.search(cell, 8)) and match[1].strip("0:.")}
    return np.array([cell in timed for cell in cells]) if timed else np.zeros(len(cells), dtype=bool)

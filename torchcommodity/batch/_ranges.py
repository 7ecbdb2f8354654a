"""Ranges of panels of the sorted table, read in blocks of whole panels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from torchcommodity.batch._duckdb import sql_text
from torchcommodity.batch._panels import PanelRows, split_by_panel

BLOCK_ROWS = 131_072  # table rows (or one panel) that are forecast and written together


class PanelRange(NamedTuple):
    """A condition on the view `panels`. Panels are sorted by name, NULL first."""

    condition: str = "true"
    parameters: tuple[str, ...] = ()

    def after(self, name: str | None) -> "PanelRange":
        """The panels after `name`."""
        return self._add("panel IS NOT NULL" if name is None else "panel > ?", name)

    def through(self, name: str | None) -> "PanelRange":
        """The panels up to `name`, included."""
        return self._add("panel IS NULL" if name is None else "(panel IS NULL OR panel <= ?)", name)

    def _add(self, condition: str, name: str | None) -> "PanelRange":
        names = () if name is None else (name,)
        return PanelRange(f"{self.condition} AND {condition}", self.parameters + names)


NO_PANELS = PanelRange("false")


class Shard(NamedTuple):
    """The `number`-th of `total` parts of a table, from 1. Each panel is in one of them; they have about equal rows."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"shard {self.number} of {self.total}"


def find_shard(connection: Any, shard: Shard, spill: Path) -> PanelRange:
    """The panels of a shard: consecutive ones, so that a table sorted by panel is read in part only."""
    _spill_to(connection, spill)
    query = """
        WITH counts AS (SELECT panel, count(*) AS rows FROM panels GROUP BY panel),
        starts AS (SELECT panel, sum(rows) OVER (ORDER BY panel NULLS FIRST) - rows AS start, sum(rows) OVER () AS total
                   FROM counts),
        shards AS (SELECT panel, start * ? // total + 1 AS shard FROM starts)
        SELECT count(*) FILTER (shard < ?), last(panel ORDER BY panel NULLS FIRST) FILTER (shard < ?),
               count(*) FILTER (shard = ?), last(panel ORDER BY panel NULLS FIRST) FILTER (shard = ?) FROM shards"""
    before, previous, count, last = connection.execute(query, [shard.total, *[shard.number] * 4]).fetchall()[0]
    first = PanelRange().after(previous) if before else PanelRange()
    return first.through(last) if count else NO_PANELS


def read_blocks(connection: Any, panels: PanelRange, spill: Path) -> Iterator[list[PanelRows]]:
    """The panels of a range in order, in blocks; DuckDB sorts on disk, in `spill`, beyond its memory limit."""
    _spill_to(connection, spill)
    connection.execute("SET preserve_insertion_order = false")
    query = f"SELECT * FROM panels WHERE {panels.condition} ORDER BY panel NULLS FIRST, file, row"
    rows = connection.sql(query, params=list(panels.parameters))
    block, count = list[PanelRows](), 0
    for panel in split_by_panel(pa.RecordBatchReader.from_stream(rows)):
        block.append(panel)
        count += panel.total
        if count >= BLOCK_ROWS:
            yield block
            block, count = [], 0
    if block:
        yield block


def split_range(connection: Any, panels: PanelRange, rows: int) -> Iterator[PanelRange]:
    """Consecutive ranges of at least `rows` rows (the last may have fewer), which cover a range."""
    query = f"SELECT panel, count(*) AS rows FROM panels WHERE {panels.condition} GROUP BY panel ORDER BY 1 NULLS FIRST"
    counts = pa.RecordBatchReader.from_stream(connection.sql(query, params=list(panels.parameters)))
    rest, count = panels, 0
    for batch in counts:
        for name, number in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
            count += number
            if count >= rows:
                yield rest.through(name)
                rest, count = panels.after(name), 0
    if count:
        yield rest


def _spill_to(connection: Any, folder: Path) -> None:
    connection.execute(f"SET temp_directory = {sql_text(str(folder))}")

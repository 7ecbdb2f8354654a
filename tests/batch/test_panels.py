"""Rows of a table are put together by panel, and panels of equal length by group."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.batch._forecasts import group_by_length
from torchcommodity.batch._panels import split_by_panel


@given(st.lists(st.integers(1, 4), max_size=30), st.integers(1, 5))
def test_group_by_length_has_every_index_once(lengths: list[int], max_size: int) -> None:
    groups = list(group_by_length(lengths, lambda length: max_size))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(len({lengths[index] for index in group}) == 1 and 0 < len(group) <= max_size for group in groups)


@given(st.lists(st.tuples(st.sampled_from([None, "", "a", "b", "'é"]), st.integers(0, 3)), max_size=20), st.data())
def test_split_by_panel_joins_rows_across_batches(rows: list[tuple[str | None, int]], draw: Any) -> None:
    rows = sorted(rows, key=lambda row: (row[0] is not None, row[0] or ""))
    table = pa.table({"panel": pa.array([row[0] for row in rows], pa.string()), "row": [row[1] for row in rows]})
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    slices = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)])]
    batches = [batch for part in slices for batch in part.combine_chunks().to_batches()]
    panels = list(split_by_panel(batches))
    assert [panel.name for panel in panels] == list(dict.fromkeys(row[0] for row in rows))
    assert [(panel.name, row) for panel in panels for row in panel.table["row"].to_pylist()] == rows
    assert all(panel.total == panel.table.num_rows for panel in panels)

"""Rows of a table are put together by panel, parsed by block as alone, and grouped by length."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcommodity import data
from torchcommodity.batch._forecasts import group_by_length
from torchcommodity.batch._panels import PanelRows, ParsedPanel, parse_block, split_by_panel
from torchcommodity.batch._sources import PanelTable
from torchcommodity.export import Artifact


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
    assert [
        (panel.name, row) for panel in panels for row in pa.Table.from_batches(panel.batches)["row"].to_pylist()
    ] == rows
    assert all(panel.total == sum(batch.num_rows for batch in panel.batches) for panel in panels)


MONTHS = np.datetime_as_string(np.arange("1985-01", "1995-01", dtype="datetime64[M]").astype("datetime64[D]"))
CHANGES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "none": lambda t: t,
    "other symbols": lambda t: pd.concat([t, t.assign(symbol="GOLD"), t.assign(symbol="NICKEL", price="-1.0")]),
    "missing symbol": lambda t: t[t.symbol == "WTI"],
    "no symbol": lambda t: t.assign(symbol=t.symbol.where(t.index != 8)),
    "no date": lambda t: t.assign(date=t.date.where(t.index != 9)),
    "date of another symbol": lambda t: pd.concat([t, t[:1].assign(symbol="GOLD", date=None)]),
    "twice": lambda t: pd.concat([t, t.iloc[[5]]]),
    "infinite": lambda t: t.assign(price=t.price.where(t.index != 8, "inf")),
    "no number": lambda t: t.assign(price=t.price.where(t.index != 8, "n.a.")),
    "missing price": lambda t: t.assign(price=t.price.where(t.index > 8)),
    "too short": lambda t: t[:40],
    "before 1600": lambda t: t.assign(date=t.date.where(t.index != 3, "1599-12-31")),
    "future": lambda t: t.assign(date=t.date.where(t.date < t.date.max(), "2059-12-31")),
    "no name": lambda t: t.assign(panel=None),
    "monthly": lambda t: t.assign(date=MONTHS[pd.factorize(t.date)[0]]),
    "few prices": lambda t: t.assign(price=t.price.where(t.index % 3 == 0)),
}


@pytest.mark.slow
@settings(max_examples=25)
@given(changes=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=6), as_text=st.booleans())
def test_parse_block_parses_each_panel_as_alone(
    artifact: Artifact, windows: Callable[..., pd.DataFrame], changes: list[str], as_text: bool
) -> None:
    block = []
    for k, change in enumerate(changes):
        table = windows(1).astype({"date": str, "price": str}).assign(panel=f"p{k}")
        block.append(_rows(CHANGES[change](table.reset_index(drop=True)), as_text))
    dates = data.LongFormat.detect(windows(1).astype({"date": str})[["date", "symbol", "price"]], "panels").dates
    source = PanelTable("panels", ("panels",), "", data.LongFormat(1, 2, 3, dates))
    for panel, alone in zip(parse_block(block, artifact.metadata, source), block):
        (expected,) = parse_block([alone], artifact.metadata, source)
        assert type(panel) is type(expected)
        assert all(np.array_equal(*pair, equal_nan=pair[0].dtype.kind == "f") for pair in _arrays(panel, expected))
        assert [x for x in panel if not isinstance(x, np.ndarray)] == [
            x for x in expected if not isinstance(x, np.ndarray)
        ]


def _rows(table: pd.DataFrame, as_text: bool) -> PanelRows:
    texts = {
        name: pa.array([None if pd.isna(cell) else cell for cell in table[name]], pa.string())
        for name in ("panel", "date", "symbol", "price")
    }
    if not as_text:
        texts["date"] = texts["date"].cast(pa.date32())
        texts["price"] = pa.array(pd.to_numeric(table.price, errors="coerce"), pa.float64())
    rows = {"file": np.zeros(len(table), dtype=np.int64), "row": np.arange(1, len(table) + 1)}
    return PanelRows(table.panel.iloc[0], pa.table({**texts, **rows}).to_batches(), len(table))


def _arrays(panel: Any, expected: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    if not isinstance(panel, ParsedPanel):
        return []
    return [(panel.prices, expected.prices), (panel.days, expected.days)]

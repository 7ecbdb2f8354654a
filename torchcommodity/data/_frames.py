"""Frames of prices, by the same rules as files."""

import hashlib
from dataclasses import replace
from typing import Any

from torchcommodity.data._contracts.contract_panel import panel_of_contracts
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import utc_now
from torchcommodity.data._sources.assemble import assemble
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.tables.frames import read_frame
from torchcommodity.data._sources.tables.table import Origin
from torchcommodity.data._sources.to_grid import AUTOMATIC, to_grid


def panel_from_frame(frame: Any, operation: str, options: ReadOptions = AUTOMATIC) -> Panel | None:
    """The panel of a pandas, polars, DuckDB or Arrow frame; None for any other object.

    `operation` opens the error messages.
    """
    origin = Origin(operation, location="memory", retrieved=utc_now(), row_word="row")
    if (table := read_frame(frame, origin)) is None:
        return None
    if (panel := panel_of_contracts(table, options)) is not None:
        return panel
    grid = to_grid(table, options)
    digest = hashlib.sha256(grid.values.tobytes()).hexdigest()
    return assemble(replace(grid, origin=replace(origin, sha256=digest)), drop_empty=False)

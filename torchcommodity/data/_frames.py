"""Convert frames to a panel and back, by the same rules as files."""

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity.data._assemble import assemble
from torchcommodity.data._formats import ReadOptions
from torchcommodity.data._futures.contract_panel import panel_of_contracts
from torchcommodity.data._grid import Origin
from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import utc_now
from torchcommodity.data._tables import read_frame
from torchcommodity.data._to_grid import AUTOMATIC, to_grid

if TYPE_CHECKING:
    import pandas as pd


def panel_from_frame(frame: Any, operation: str, options: ReadOptions = AUTOMATIC) -> Panel | None:
    """The panel of a pandas, polars, DuckDB or Arrow frame; None for any other object.

    `operation` opens the error messages.
    """
    origin = Origin(operation, location="memory", retrieved=utc_now(), row_word="row")
    if (table := read_frame(frame, origin)) is None:
        return None
    if (panel := panel_of_contracts(table, origin, options)) is not None:
        return panel
    grid = to_grid(table, origin, options)
    digest = hashlib.sha256(grid.values.tobytes()).hexdigest()
    return assemble(grid, replace(origin, sha256=digest), drop_empty=False)


def wide_frame(panel: Panel) -> "pd.DataFrame":
    """Index `date`, one column per symbol; a copy."""
    import pandas as pd

    index = pd.DatetimeIndex(panel.dates, name="date")
    prices = panel.values.plain().detach().numpy().copy()
    frame: pd.DataFrame = pd.DataFrame(prices, index=index, columns=list(panel.symbols))
    return frame


def long_frame(panel: Panel) -> "pd.DataFrame":
    """Columns `date`, `symbol`, `price`, `unit`, one row per date and symbol, sorted by symbol and date."""
    import pandas as pd

    T, N = panel.values.shape
    columns = {
        "date": pd.DatetimeIndex(np.tile(panel.dates, N)),
        "symbol": np.repeat(np.array(panel.symbols, dtype=object), T),
        "price": panel.values.plain().detach().numpy().T.ravel(),
        "unit": np.repeat(np.array(panel.units, dtype=object), T),
    }
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame

"""A panel of 200 symbols times 40 years: the embedded real prices, repeated under new names. For timing only."""

import numpy as np

from torchcommodity import data
from torchcommodity.data import Panel

ROWS = 10_000
SERIES = (
    "WTI", "BRENT", "GASOLINE_NYH", "GASOLINE_USGC", "RBOB_LA", "HEATING_OIL_NYH", "ULSD_NYH", "ULSD_USGC",
    "CARB_DIESEL_LA", "JET_FUEL_USGC", "PROPANE_MB", "HENRY_HUB",
)  # fmt: skip


def wide_panel(symbols: int, rows: int = ROWS) -> Panel:
    """The last rows of the embedded daily prices; copies are named `WTI_2`, `WTI_3` ..."""
    panel = data.embedded(SERIES)
    panel = panel.between(panel.dates[-rows], None)
    columns = np.arange(symbols) % len(SERIES)
    copies = np.arange(symbols) // len(SERIES) + 1
    frame = panel.to_pandas().iloc[:, columns]
    frame.columns = [SERIES[n] if k == 1 else f"{SERIES[n]}_{k}" for n, k in zip(columns, copies)]
    return Panel.from_pandas(frame)

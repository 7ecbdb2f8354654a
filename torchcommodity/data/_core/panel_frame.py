"""Prices of a panel as a pandas DataFrame, wide or long."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from torchcommodity._extras import extra

if TYPE_CHECKING:
    import pandas as pd

    from torchcommodity.data._core.panel import Panel

TableLayout = Literal["wide", "long"]


def panel_frame(panel: "Panel", layout: TableLayout) -> "pd.DataFrame":
    """The table of `Panel.to_pandas`, a copy."""
    with extra("forecast"):
        import pandas as pd

    if layout not in ("wide", "long"):
        raise ValueError(f"to_pandas: layout must be wide or long; got {layout!r}")
    prices = panel.values.plain().detach().numpy().copy()
    if layout == "wide":
        index = pd.DatetimeIndex(panel.dates, name="date")
        frame: pd.DataFrame = pd.DataFrame(prices, index=index, columns=list(panel.symbols))
    else:
        T, N = prices.shape
        columns = {
            "date": pd.DatetimeIndex(np.tile(panel.dates, N)),
            "symbol": np.repeat(np.array(panel.symbols, dtype=object), T),
            "price": prices.T.ravel(),
            "unit": np.repeat(np.array(panel.units, dtype=object), T),
        }
        frame = pd.DataFrame(columns)
    return frame

"""Simulated joint price paths, and their tables and charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.charts import INK, LIGHT, MUTED, chart_layout, date_line, line_trace, plotly_figure, symbol_index
from torchcommodity.data import SYNTHETIC, SyntheticTensor, summarize_names
from torchcommodity.forecast._calendar import Dates
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.scenarios import path_quantiles

if TYPE_CHECKING:
    import pandas as pd

SHOWN_PATHS = 30  # paths of a chart


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Joint price paths of N symbols after the last row of a panel; see `Forecaster.simulate`.

    Row t of a symbol is its t-th own row after its last positive price, as for the horizons of a forecast: where
    symbols have different holidays, a row has different dates. The prices are a `data.SyntheticTensor`: training and
    scoring reject them.
    """

    forecast: Forecast  # whose quantiles the paths have at its horizons
    prices: SyntheticTensor  # (P, T, N) float64
    roll_gaps: Tensor  # (T, N) expected log-return of each row by contract rolls (and averaging), 0 on other rows
    location: Tensor  # (T, N) expected log-return of each row by related prices and the season
    seed: int
    block: float  # mean block length of the bootstrap, in rows
    residual_rows: int  # past rows that were resampled

    synthetic = True

    @property
    def symbols(self) -> tuple[str, ...]:
        """N symbols."""
        return self.forecast.symbols

    @property
    def dates(self) -> Dates:
        """Date of every row `(T, N)`, on the calendar of each symbol's exchange."""
        return self.forecast.dates_ahead(np.arange(1, self.prices.shape[1] + 1))

    @property
    def log_returns(self) -> SyntheticTensor:
        """Log-returns of every row (P, T, N), with the roll gaps; NaN for a symbol whose prices may be negative."""
        log, first = self.prices.plain().log(), self.forecast.last.log()
        if self.forecast.scale is not None:
            log = torch.where(self.forecast.scale.isnan(), log, torch.nan)
        first = first.expand_as(log[:, :1])
        return SyntheticTensor(log.diff(dim=1, prepend=first))

    def quantiles(self, levels: Sequence[float]) -> Tensor:
        """Quantiles of the simulated prices at every row, (T, N, Q).

        Args:
            levels: Q probabilities in [0, 1].

        Raises:
            ValueError: no level, or one outside [0, 1].
        """
        if not len(levels) or not all(0 <= level <= 1 for level in levels):
            raise ValueError(f"quantiles: levels must lie in [0, 1]; got {tuple(levels)}")
        return path_quantiles(self.prices.plain().movedim(0, -1), torch.tensor(levels, dtype=torch.double))

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a long DataFrame: path and row (from 1), date, symbol, price, and source, always `synthetic`."""
        import pandas as pd

        P, T, N = self.prices.shape
        symbol = pd.CategoricalDtype(list(self.symbols))
        columns = {
            "path": np.repeat(np.arange(1, P + 1), T * N),
            "row": np.tile(np.repeat(np.arange(1, T + 1), N), P),
            "date": np.tile(self.dates.astype("datetime64[s]").ravel(), P),
            "symbol": pd.Categorical.from_codes(np.tile(np.arange(N), P * T), dtype=symbol),
            "price": self.prices.plain().numpy().ravel(),
            "source": SYNTHETIC,
        }
        table: pd.DataFrame = pd.DataFrame(columns)
        return table

    def plot(self, symbol: str | None = None) -> Any:
        """Chart of one symbol as a plotly Figure: recent prices, some paths, and the 90 % interval of all of them.

        Args:
            symbol: one of `symbols`; the first one if None.

        Raises:
            ValueError: an unknown symbol.
        """
        n, history = symbol_index(self.symbols, symbol), self.forecast.history
        past, last = history.values.plain()[:, n].numpy(), self.forecast.last[n].item()
        has_price = np.isfinite(past)
        dates = [str(self.forecast.origins[n]), *map(str, self.dates[:, n])]
        traces = [line_trace(list(map(str, history.dates[has_price])), past[has_price], INK, "price", digits=6)]
        for path in self.prices.plain()[:SHOWN_PATHS, :, n].numpy():
            style = {"line": {"color": MUTED, "width": 0.6}, "opacity": 0.5, "showlegend": False, "hoverinfo": "skip"}
            traces.append({**line_trace(dates, [last, *path], MUTED, "path", digits=6), **style})
        for level, rows in zip((0.05, 0.5, 0.95), self.quantiles((0.05, 0.5, 0.95))[:, n].T.numpy()):
            name = "median" if level == 0.5 else f"{level:.0%} quantile"
            traces.append(line_trace(dates, [last, *rows], LIGHT["median"], name, digits=6))
        layout = chart_layout(xaxis={"type": "date"}, yaxis={"title": {"text": self.forecast.units[n] or "price"}})
        layout["shapes"] = [date_line(dates[0], MUTED)]
        return plotly_figure({"data": traces, "layout": layout}, title=f"{self.symbols[n]}, simulated")

    def __len__(self) -> int:
        return int(self.prices.shape[0])

    def __repr__(self) -> str:
        paths = f"{len(self):,} paths of {self.prices.shape[1]} rows"
        source = f"{self.residual_rows:,} rows of residuals, mean block {self.block:.1f}, seed {self.seed}"
        return f"Simulation({paths}; {summarize_names(self.symbols)}; from {self.forecast.origin}; {source})"

"""Forecast: quantiles of future returns and prices, with tables and a chart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import current_operation, operation
from torchcommodity.charts import Chart, plotly_figure, symbol_index
from torchcommodity.data import Finding, Horizon, Panel, horizon_index, summarize_names
from torchcommodity.forecast._calendar import Calendar, Dates, calendar
from torchcommodity.forecast._fan_chart import Fan, draw_fan, interpolate_quantiles
from torchcommodity.forecast._history import last_prices
from torchcommodity.forecast._other_words import missing_attribute
from torchcommodity.models import price_after, scale_change

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

HISTORY_ROWS = {"daily": 260, "weekly": 104, "monthly": 60}  # rows before the origin in charts, a year of days
FAN_POINTS = 48  # closest together at the start of a fan, where it bends most


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Quantile forecast from the last row of a panel.

    The forecast of a symbol starts from its last positive price, on its date in `origins`, which may be earlier than
    the panel's last row: missing, zero and negative prices have no log-return. Horizons count panel rows.

    A symbol with a price scale, such as a spread, is forecast from its last price of any sign. It has prices, and no
    log-returns: they are NaN, which `to_pandas` says in the attributes of its table.
    """

    symbols: tuple[str, ...]
    units: tuple[str, ...]
    horizons: tuple[int, ...]  # rows
    levels: tuple[float, ...]
    origin: np.datetime64  # date of the panel's last row
    origins: np.ndarray  # (N,) datetime64[D], date of each symbol's last positive price
    last: Tensor  # (N,) that price
    log_returns: Tensor  # (H, N, Q) quantiles of the cumulative log-return; NaN for a symbol with a price scale
    prices: Tensor  # (H, N, Q) the same in price units
    calendar: Calendar  # of the target dates
    history: Panel  # the last rows of the panel, for charts
    scale: Tensor | None = None  # (N,) S of prices that may be zero or negative, NaN = log; None: all are logs

    @classmethod
    def from_log_returns(
        cls,
        panel: Panel,
        horizons: tuple[int, ...],
        levels: tuple[float, ...],
        log_returns: Tensor,
        dates: Dates | None = None,
        scale: Tensor | None = None,
    ) -> "Forecast":
        """Build a forecast from the quantiles of a model.

        Args:
            panel: prices from which the quantiles were computed.
            horizons: H numbers of rows.
            levels: Q probabilities.
            log_returns: (H, N, Q) quantiles of the cumulative log-return after each symbol's last positive price; of
                the change of asinh(P / S) for a symbol with a scale.
            dates: of all rows, for the calendar, where `panel` has only the last ones.
            scale: (N,) S, see `models.Har.set_price_scale`.

        Raises:
            ValueError: a price is infinite.
        """
        row, last = last_prices(panel.values.plain().detach(), scale)
        steps = None if scale is None else scale.to(log_returns).unsqueeze(-1)  # (N, 1)
        prices = price_after(last[None, :, None], log_returns, steps)
        if (infinite := prices.isinf().any(2).any(0)).any():
            symbol = panel.symbols[int(infinite.nonzero()[0])]
            rule = "quantiles of a model must be finite prices"
            raise ValueError(f"{current_operation('forecast')}: {rule}; got an infinite one of {symbol}: fit it again")
        return cls(
            symbols=tuple(panel.symbols),
            units=tuple(panel.units),
            horizons=horizons,
            levels=levels,
            origin=panel.dates[-1],
            origins=np.asarray(panel.dates)[row.numpy()],
            last=last,
            log_returns=log_returns if steps is None else torch.where(steps.isnan(), log_returns, torch.nan),
            prices=prices,
            calendar=calendar(panel.dates if dates is None else dates),
            history=panel.between(panel.dates[-HISTORY_ROWS[panel.frequency] :][0]),
            scale=None if scale is None else scale.cpu(),
        )

    @property
    def signed(self) -> tuple[str, ...]:
        """Symbols with a price scale, whose prices may be zero or negative."""
        scales = [] if self.scale is None else self.scale.tolist()
        return tuple(symbol for symbol, scale in zip(self.symbols, scales) if not math.isnan(scale))

    @cached_property
    def changes(self) -> Tensor:  # (H, N, Q)
        """Quantiles of the change of ln P, the log-returns, or of asinh(P / S) for a symbol with a price scale."""
        if self.scale is None:
            return self.log_returns
        changes = scale_change(self.last[None, :, None], self.prices, self.scale.unsqueeze(-1))
        return torch.where(self.scale.isnan().unsqueeze(-1), self.log_returns, changes)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Data-quality warnings of the prices, and what is unlike the training prices; see `data.inspect`."""
        return self.history.findings

    @cached_property
    def target_dates(self) -> np.ndarray:  # (H, N) datetime64[D]
        """Target date of each horizon, from each symbol's origin and on the calendar of its exchange."""
        return self.dates_ahead(self.horizons)

    def dates_ahead(self, rows: Any) -> np.ndarray:  # (R,) int -> (R, N) datetime64[D]
        """The dates so many rows after each symbol's origin, on the calendar of its exchange."""
        of_symbols = zip(self.origins, self.history.contracts, self.history.calendars)
        return np.stack([self.calendar.rows.following(origin, rows, *names) for origin, *names in of_symbols], axis=1)

    def to_pandas(self, layout: Literal["long", "wide"] = "long") -> "pd.DataFrame":
        """Convert to a pandas DataFrame.

        Args:
            layout: "long" has a row per symbol, horizon and level, and the columns symbol, unit, origin (date of the
                symbol's last price), horizon (rows), date (target date), level, log_return and price. "wide" has a row
                per symbol and horizon, and a column of prices per level, named "0.05" to "0.95" by default. Where
                log_return is NaN because prices may be negative, `attrs["log_return"]` says so.

        Raises:
            ValueError: another layout.
        """
        import pandas as pd

        if layout not in ("long", "wide"):
            raise ValueError(f"to_pandas: layout must be 'long' or 'wide'; got {layout!r}")
        N, H, Q = len(self.symbols), len(self.horizons), len(self.levels)
        shape = (N, H, Q) if layout == "long" else (N, H)
        n, h, *q = (index.ravel() for index in np.indices(shape))
        columns = {
            "symbol": np.array(self.symbols, dtype=object)[n],
            "unit": np.array(self.units, dtype=object)[n],
            "origin": self.origins[n].astype("datetime64[s]"),
            "horizon": np.array(self.horizons)[h],
            "date": self.target_dates[h, n].astype("datetime64[s]"),
        }
        if layout == "long":
            columns["level"] = np.array(self.levels)[q[0]]
            columns["log_return"] = self.log_returns.numpy()[h, n, q[0]]
            columns["price"] = self.prices.numpy()[h, n, q[0]]
        else:
            columns |= {f"{level:g}": self.prices.numpy()[h, n, k] for k, level in enumerate(self.levels)}
        table: pd.DataFrame = pd.DataFrame(columns)
        if self.signed and layout == "long":
            table.attrs["log_return"] = f"NaN for {', '.join(self.signed)}: prices that may be negative have none"
        return table

    def to_polars(self, layout: Literal["long", "wide"] = "long") -> "pl.DataFrame":
        """Convert to a polars DataFrame; layouts as for `to_pandas`, origin and date of type Date."""
        import polars as pl

        return pl.from_pandas(self.to_pandas(layout)).with_columns(pl.col("origin", "date").cast(pl.Date))

    @operation("quantile")
    def quantile(self, level: float, horizon: Horizon) -> "pd.Series":
        """Forecast prices (N,) at one quantile level and horizon, as a pandas Series indexed by symbol.

        Args:
            level: one of `levels`.
            horizon: one of `horizons`, in rows or as a text such as "1m", see `data.horizon_rows`.

        Raises:
            ValueError: an unknown level or horizon.

        Example:
            >>> from torchcommodity import data, forecast
            >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
            >>> forecast.fit(wti).predict(wti).quantile(0.5, horizon="1m").round(1).to_dict()
            {'WTI': 44.7}
        """
        import pandas as pd

        is_number = isinstance(level, Real)
        matches = [q for q, candidate in enumerate(self.levels) if is_number and math.isclose(level, candidate)]
        if not matches:
            raise ValueError(
                f"quantile: level must be one of {', '.join(f'{x:g}' for x in self.levels)}; got {level!r}"
            )
        index = horizon_index(horizon, self.horizons, self.calendar.rows)
        prices = self.prices[index, :, matches[0]].numpy()
        series: pd.Series = pd.Series(prices, index=pd.Index(self.symbols, name="symbol"), name=f"{level:g}")
        return series

    @operation("plot")
    def plot(self, symbol: str | None = None, horizon: Horizon | None = None) -> Any:
        """Fan chart of one symbol as a plotly Figure: recent prices, median, and 50, 80 and 90 % intervals.

        Args:
            symbol: one of `symbols`; the first one if None.
            horizon: where the fan ends, one of `horizons`, in rows or as a text such as "1m"; default: the longest.

        Raises:
            ValueError: an unknown symbol or horizon.
        """
        n = symbol_index(self.symbols, symbol)
        last = None if horizon is None else horizon_index(horizon, self.horizons, self.calendar.rows)
        return plotly_figure(fan_chart(self, n, last), title=self.symbols[n])

    if not TYPE_CHECKING:  # type checkers would allow any name

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name)

    def __repr__(self) -> str:
        horizons, levels = ", ".join(map(str, self.horizons)), f"{len(self.levels)} levels"
        first, last = self.origins.min(), self.origins.max()
        origins = f"{last}" if first == last else f"{first} to {last}, by symbol"
        return f"Forecast({summarize_names(self.symbols)}; from {origins}; horizons {horizons}; {levels})"


def fan_rows(horizons: Sequence[int]) -> list[int]:
    """About 50 rows from 0 to the last of some horizons, and the horizons: enough for a chart."""
    even = np.linspace(0, np.sqrt(horizons[-1]), FAN_POINTS) ** 2
    rows: list[int] = np.unique([*even.round().astype(int), *horizons]).tolist()
    return rows


def make_fan(forecast: Forecast, n: int, rows: Sequence[int]) -> Fan:
    """Quantiles of symbol n at the horizons and in between, on the calendar of its exchange.

    Args:
        forecast: quantiles at the horizons.
        n: number of the symbol.
        rows: ascending rows after the last price, from 0 to the last horizon at most.
    """
    origin = forecast.origins[n]
    quantiles = interpolate_quantiles(forecast.changes[:, n], forecast.horizons, rows)
    scale = None if forecast.scale is None else forecast.scale[n]
    # the last price may be on a day that the calendar lacks, such as a holiday
    ahead = forecast.dates_ahead(rows[1:])[:, n]
    prices = price_after(forecast.last[n], quantiles, scale)
    return Fan(np.array(rows), np.append(origin, ahead), prices.numpy())


def fan_chart(forecast: Forecast, n: int, last: int | None = None) -> Chart:
    """Recent prices of symbol n, the median and the `intervals` up to its last horizon or that index, and its rolls."""
    rows = fan_rows(forecast.horizons[: None if last is None else last + 1])
    return draw_fan(
        make_fan(forecast, n, rows),
        forecast.horizons,
        forecast.levels,
        forecast.history,
        n,
        forecast.units[n],
        forecast.last[n].item(),
    )

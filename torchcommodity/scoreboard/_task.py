"""What is to be forecast: prices, origins, horizons, levels and the outcomes, by protocol 1."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity._choices import TrackName
from torchcommodity.data import (
    Panel,
    calendar_years,
    check_not_synthetic,
    embedded,
    embedded_symbols,
    horizon_name,
    signed_symbols,
    target_rows,
    targets,
    to_panel,
)
from torchcommodity.forecast import TEST_YEARS, signed_columns
from torchcommodity.models import positive_prices
from torchcommodity.training import FitConfig, min_fit_rows, price_scale

if TYPE_CHECKING:
    import pandas as pd

PROTOCOL = 1
REFERENCE = "har"  # skill is the share of its loss that a model saves


class Track(NamedTuple):
    """Prices and test years that the protocol fixes."""

    frequency: Literal["daily", "monthly"]
    first_year: int
    last_year: int
    title: str


TRACKS: dict[TrackName, Track] = {
    "daily": Track("daily", 2017, 2025, "daily EIA spot prices of energy"),
    "monthly": Track("monthly", 2010, 2025, "monthly World Bank prices"),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Prices, the origins of the forecasts and their outcomes.

    Args:
        track: name of a track, or "own" for prices of the user.
        panel: prices up to the end of the last test year.
        first_year, last_year: test years; a target that ends later is not scored.
        rows: `(O,)` rows of the origins in the panel.
        horizons: H numbers of rows.
        levels: Q probabilities.
        targets: `(O, H, N)` cumulative log-returns, NaN where nothing is scored.
        target_dates: `(O, H, N)` datetime64[D], NaT where nothing is scored.
        scale: `(N,)` S of symbols whose prices may be negative, of the rows before the first test year, NaN = log:
            their targets are changes of asinh(P / S). None: all are logs.
    """

    track: str
    panel: Panel
    first_year: int
    last_year: int
    rows: np.ndarray
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    targets: Tensor
    target_dates: np.ndarray
    scale: Tensor | None = None

    @property
    def signed(self) -> tuple[str, ...]:
        """Symbols whose prices may be zero or negative."""
        return tuple(self.panel.symbols[n] for n in signed_columns(self.scale))

    @property
    def origins(self) -> np.ndarray:
        """Dates `(O,)` of the origins."""
        dates: np.ndarray = self.panel.dates[self.rows]
        return dates

    @property
    def prices(self) -> Tensor:
        """Prices `(O, N)` at the origins."""
        return self.panel.values.plain()[torch.from_numpy(self.rows)]

    @property
    def name(self) -> str:
        """`torchcommodity scoreboard, protocol 1, track daily`."""
        return f"torchcommodity scoreboard, protocol {PROTOCOL}, track {self.track}"

    def horizon_names(self) -> dict[int, str]:
        """Name of each horizon: `1 month` for 21 trading days."""
        return {h: horizon_name(h, self.panel.frequency) for h in self.horizons}

    @property
    def fingerprint(self) -> str:
        """sha256 of what is scored: every origin, symbol and horizon with the prices at both ends, as text.

        Two scoreboards with the same fingerprint have scored the same outcomes.
        """
        table = self.outcomes()
        lines = (",".join(map(str, row)) for row in table.itertuples(index=False, name=None))
        levels = ",".join(map(str, self.levels))
        return hashlib.sha256("\n".join([self.name, levels, *lines, ""]).encode()).hexdigest()

    def outcomes(self) -> "pd.DataFrame":
        """One row per scored forecast: origin, symbol, horizon (rows), date, price at the origin, price on the date.

        Without `date` and `outcome` it is the list of forecasts that a submission needs.
        """
        import pandas as pd

        h, o, n = (index.numpy() for index in torch.isfinite(self.targets).transpose(0, 1).nonzero(as_tuple=True))
        dates = self.target_dates[o, h, n]
        prices = self.panel.values.plain().numpy()
        columns = {
            "origin": self.origins[o].astype(str),
            "symbol": np.array(self.panel.symbols, dtype=object)[n],
            "horizon": np.array(self.horizons)[h],
            "date": dates.astype(str),
            "price": prices[self.rows[o], n],
            "outcome": prices[np.searchsorted(self.panel.dates, dates), n],
        }
        table: pd.DataFrame = pd.DataFrame(columns)
        return table

    def __repr__(self) -> str:
        count, symbols = int(torch.isfinite(self.targets).sum()), len(self.panel.symbols)
        span = f"{len(self.rows):,} origins {self.origins[0]} to {self.origins[-1]}"
        return f"Task({self.track}, {symbols} symbols; {span}; {count:,} forecasts)"


def load_track(name: TrackName) -> Task:
    """The task of a track of the protocol, on prices that ship with the package.

    Args:
        name: "daily" or "monthly".

    Raises:
        ValueError: another name.

    Example:
        >>> load_track("daily")
        Task(daily, 12 symbols; 470 origins 2017-01-06 to 2025-12-31; 21,415 forecasts)
    """
    if name not in TRACKS:
        raise ValueError(f"load_track: name must be one of {', '.join(TRACKS)}; got {name!r}")
    track = TRACKS[name]
    panel = embedded(embedded_symbols(track.frequency), frequency=track.frequency)
    return make_task(panel, first_year=track.first_year, last_year=track.last_year, track=name)


@operation("make_task")
def make_task(prices: Any, *, first_year: int | None = None, last_year: int | None = None, track: str = "own") -> Task:
    """The task of the protocol on any prices.

    Origins are the last row of every calendar week of daily prices, and every row of weekly and monthly ones. A symbol
    is scored at an origin with a positive price, in the years before which it has enough prices for a fit (504 daily
    ones), and at the horizons whose target ends by the end of the last test year.

    Args:
        prices: raw prices, anything that `data.to_panel` takes; futures with `contracts` and, if there is one, `curve`.
        first_year: first test year; by default the last seven are tested, twenty of monthly prices.
        last_year: last test year; by default that of the last price.
        track: name for reports.

    Raises:
        TypeError: a year is not an int.
        ValueError: nothing can be scored in these years, or the prices are synthetic.
    """
    panel = to_panel(prices).drop_empty_rows()
    check_not_synthetic(panel)
    for name, year in {"first_year": first_year, "last_year": last_year}.items():
        if year is not None and (isinstance(year, bool) or not isinstance(year, (int, np.integer))):
            raise TypeError(f"make_task: {name} must be an int; got {year!r}")
    har = FitConfig.for_frequency(panel.frequency).model.har
    last_year = int(calendar_years(panel.dates)[-1]) if last_year is None else last_year
    first_year = last_year - TEST_YEARS[panel.frequency] + 1 if first_year is None else first_year
    panel = panel.between(None, f"{last_year}-12-31")
    rows = _origin_rows(panel, first_year)
    values = panel.values.plain().detach()
    first_row = int((calendar_years(panel.dates) < first_year).sum())
    scale = price_scale(values[:first_row], panel.symbols, signed_symbols(panel))
    positive = positive_prices(values, scale)
    ends = target_rows(positive, har.horizons)[torch.from_numpy(rows)].numpy()
    counts = (positive > 0).cumsum(0).numpy()
    starts = np.searchsorted(calendar_years(panel.dates), calendar_years(panel.dates[rows]))
    past_prices = np.where(starts[:, None] > 0, counts[np.maximum(starts - 1, 0)], 0)  # (O, N) before the origin's year
    enough = past_prices >= min_fit_rows(har) - 1
    scored = (ends >= 0) & enough[:, None, :]
    if not scored.any():
        raise ValueError(
            f"make_task: a symbol must have {min_fit_rows(har) - 1} positive prices before a test year, and a target "
            f"that ends in {first_year} to {last_year}; got prices from {panel.dates[0]} to {panel.dates[-1]}"
        )
    outcomes = targets(positive, har.horizons)[torch.from_numpy(rows)]
    return Task(
        track, panel, first_year, last_year, rows, har.horizons, har.levels,
        torch.where(torch.from_numpy(scored), outcomes, torch.nan),
        np.where(scored, panel.dates[ends], np.datetime64("NaT", "D")),
        scale,
    )  # fmt: skip


def _origin_rows(panel: Panel, first_year: int) -> np.ndarray:
    """Rows from the first test year on; of daily prices, the last of each week from Monday to Sunday."""
    rows = np.flatnonzero(calendar_years(panel.dates) >= first_year)
    if panel.frequency != "daily":
        return rows
    weeks = (panel.dates.astype(int) + 3) // 7  # 1970-01-01 was a Thursday
    last = np.append(np.diff(weeks) != 0, True)
    ends: np.ndarray = rows[last[rows]]
    return ends

"""Outlook: the first screen of report and dashboard, one row per commodity."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from torchcommodity.charts import forecast_decimals, quoted_decimals
from torchcommodity.data import CONTRACTS, Frequency, Panel, product_name, trading_calendar, utc_now
from torchcommodity.forecast._contract_rolls import contract_state
from torchcommodity.forecast._forecast import Forecast
from torchcommodity.forecast._forecaster import Forecaster
from torchcommodity.forecast._intervals import Coverage, Interval, interval_name, level_index, main_interval
from torchcommodity.training import VarianceSource

if TYPE_CHECKING:
    import pandas as pd

DAY = np.timedelta64(1, "D")
# age in days from which prices are reported as old; monthly ones are published weeks after their month
STALE_DAYS: dict[Frequency, int] = {"daily": 7, "weekly": 14, "monthly": 75}


@dataclass(frozen=True)
class OutlookRange:
    """Range of the price at one horizon; NaN where the forecast lacks the quantile level or the symbol a price.

    Args:
        rows: the horizon.
        name: the horizon in words, such as "3 months".
        date: target date, on the calendar of the product's exchange.
        low, median, high: prices.
        median_change: relative change of the median since the previous forecast, such as 0.01, or the change itself of
            a price that may be negative; None without a previous forecast.
        width_change: relative change of `high - low` since the previous forecast.
        coverage: of this interval in past forecasts, or None.
    """

    rows: int
    name: str
    date: str
    low: float
    median: float
    high: float
    median_change: float | None = None
    width_change: float | None = None
    coverage: Coverage | None = None


@dataclass(frozen=True)
class OutlookRow:
    """One commodity.

    Args:
        symbol: its name in the prices.
        name: product name, such as "Soybean oil"; the symbol where it is not known.
        unit: of the prices, "" where not stated.
        contract: product code of the exchange; None = a spot price.
        exchange: of the contract, or None.
        contract_month: delivery month of the contract behind the last price, YYYY-MM; None = not known.
        next_roll: first day of the next contract after the last price; None = not known.
        last_price: last positive price.
        last_date: its date.
        age_days: days from that date to today.
        age_trading_days: the same in trading days of the product's exchange.
        stale: whether the price is older than `STALE_DAYS` of its frequency.
        signed: whether the price may be negative, so that no share of it tells a change or a loss.
        quoted_decimals: decimals in which the prices are quoted.
        decimals: decimals for prices of the forecast.
        previous_date: last price of the previous forecast; `last_date` if no price has come since. None without one.
        ranges: one per horizon.
    """

    symbol: str
    name: str
    unit: str
    contract: str | None
    exchange: str | None
    contract_month: str | None
    next_roll: str | None
    last_price: float
    last_date: str
    age_days: int
    age_trading_days: int
    stale: bool
    signed: bool
    quoted_decimals: int
    decimals: int
    previous_date: str | None
    ranges: tuple[OutlookRange, ...]


@dataclass(frozen=True)
class Outlook:
    """Forecast, age, change and coverage of every commodity, as `outlook` returns it.

    Args:
        today: date from which ages are counted.
        interval: levels of the bounds of the ranges, see `main_interval`; None = the forecast has no such levels.
        rows: one per commodity.
    """

    today: str
    interval: Interval | None
    rows: tuple[OutlookRow, ...]

    @property
    def interval_name(self) -> str:
        """Nominal coverage of the ranges, `80 %`; "" without an interval."""
        return interval_name(self.interval) if self.interval else ""

    @property
    def stale(self) -> tuple[OutlookRow, ...]:
        """The commodities whose last price is old."""
        return tuple(row for row in self.rows if row.stale)

    def to_pandas(self) -> "pd.DataFrame":
        """Convert to a DataFrame with one row per commodity and horizon and the fields of both as columns."""
        import pandas as pd

        records = []
        for row in self.rows:
            hidden = ("ranges", "decimals", "quoted_decimals")
            fields = {name: value for name, value in asdict(row).items() if name not in hidden}
            for item in row.ranges:
                ahead = asdict(item)
                coverage = ahead.pop("coverage") or dict.fromkeys(("share", "forecasts", "independent"))
                names = {"rows": "horizon", "name": "horizon_name", "date": "target_date"}
                ahead = {names.get(name, name): value for name, value in ahead.items()}
                records.append({**fields, **ahead, **{f"coverage_{name}": x for name, x in coverage.items()}})
        table: pd.DataFrame = pd.DataFrame(records)
        return table


def outlook(
    forecast: Forecast,
    previous: Forecast | None = None,
    *,
    coverage: Mapping[tuple[str, int], Coverage] | None = None,
    today: date | None = None,
) -> Outlook:
    """What a reader wants to know first: the range ahead, how sure it is, how it has done, and what changed.

    Args:
        forecast: the latest forecast.
        previous: the forecast of the same model made one row earlier; None = no changes.
        coverage: (symbol, horizon in rows) -> coverage of `main_interval` in past forecasts.
        today: date from which the age of the prices is counted; default: the current date in UTC.

    Raises:
        ValueError: `previous` has other symbols, horizons or levels.

    Example:
        >>> from torchcommodity import data, forecast
        >>> wti = data.embedded(["WTI"]).between("2012-01-01", "2018-12-31")
        >>> forecaster = forecast.fit(wti)
        >>> today, yesterday = (forecaster.predict(wti.between(None, day)) for day in ("2018-12-31", "2018-12-27"))
        >>> row = outlook(today, yesterday, today=date(2019, 1, 2)).rows[0]
        >>> row.name, row.last_date, row.age_days, row.age_trading_days, row.ranges[1].date
        ('WTI crude oil, Cushing', '2018-12-28', 5, 2, '2019-01-30')
    """
    for name in ("symbols", "horizons", "levels") if previous is not None else ():
        if (expected := getattr(forecast, name)) != (received := getattr(previous, name)):
            raise ValueError(f"outlook: previous must have the {name} of forecast, {expected}; got {received}")
    today = today or date.fromisoformat(utc_now()[:10])
    rows = tuple(_row(forecast, previous, n, coverage or {}, today) for n in range(len(forecast.symbols)))
    return Outlook(today.isoformat(), main_interval(forecast.levels), rows)


def previous_forecast(
    forecaster: Forecaster, prices: Panel, covariates: VarianceSource | None = None
) -> Forecast | None:
    """The forecast made one row earlier, for `outlook`; None where the prices before the last row are too few.

    Args:
        forecaster: from `fit` or `Forecaster.load`.
        prices: as for `forecaster.predict`.
        covariates: as for `forecaster.predict`.
    """
    panel = forecaster.align_panel(prices)
    try:
        return forecaster.predict(panel.between(None, panel.dates[-2]), covariates) if len(panel) > 1 else None
    except ValueError:  # fewer prices than the warm-up
        return None


def _row(
    forecast: Forecast, previous: Forecast | None, n: int, coverage: Mapping[tuple[str, int], Coverage], today: date
) -> OutlookRow:
    panel, origin, symbol = forecast.history, forecast.origins[n], forecast.symbols[n]
    code, last = panel.contracts[n], forecast.last[n].item()
    contract, first, end = contract_state(panel, n, origin), origin + DAY, np.datetime64(today, "D") + DAY
    age = int((end - first).astype(int))
    quoted = quoted_decimals(panel.values.plain()[:, n].numpy())
    return OutlookRow(
        symbol=symbol,
        name=product_name(code, panel.provenance[n].series) or symbol,
        unit=forecast.units[n],
        contract=code,
        exchange=None if code is None else CONTRACTS[code].exchange,
        contract_month=contract.month,
        next_roll=contract.next_roll,
        last_price=last,
        last_date=str(origin),
        age_days=age,
        age_trading_days=int(np.busday_count(first, end, busdaycal=trading_calendar(code, panel.calendars[n]))),
        stale=age > STALE_DAYS[panel.frequency],
        signed=symbol in forecast.signed,
        quoted_decimals=quoted,
        decimals=forecast_decimals(last, quoted),
        previous_date=None if previous is None else str(previous.origins[n]),
        ranges=tuple(
            _range(forecast, previous, i, n, coverage.get((symbol, horizon)))
            for i, horizon in enumerate(forecast.horizons)
        ),
    )


def _range(forecast: Forecast, previous: Forecast | None, i: int, n: int, coverage: Coverage | None) -> OutlookRange:
    low, median, high = _prices(forecast, i, n)
    median_change = width_change = None
    if previous is not None:
        old_low, old_median, old_high = _prices(previous, i, n)
        is_signed = forecast.symbols[n] in forecast.signed
        median_change = median - old_median if is_signed else _change(median, old_median)
        width_change = _change(high - low, old_high - old_low)
    return OutlookRange(
        rows=forecast.horizons[i],
        name=forecast.calendar.name(forecast.horizons[i]),
        date=str(forecast.target_dates[i, n]),
        low=low,
        median=median,
        high=high,
        median_change=median_change,
        width_change=width_change,
        coverage=coverage,
    )


def _change(value: float, before: float) -> float:
    """Relative change; NaN from zero, such as the width of a range of prices that did not move."""
    return value / before - 1 if before else math.nan


def _prices(forecast: Forecast, i: int, n: int) -> tuple[float, ...]:
    """The bounds of the interval and the median in between."""
    index, (low, high) = level_index(forecast.levels), main_interval(forecast.levels) or (math.nan, math.nan)
    levels = (low, 0.5, high)
    return tuple(forecast.prices[i, n, index[level]].item() if level in index else math.nan for level in levels)

"""Variance terms from covariates, each from what was published by the row.

volatility    (x / 100)^2 / rows per year                     a variance per row
level         x / mean of x so far                            a multiple of the symbol's slow variance
changes       EWMA of (ln x_i / x_{i-1})^2 / its mean so far  the same, half-life 21 observations
in advance    mean per day over the coming horizon / mean per day so far; the same
"""

from collections.abc import Sequence

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.calendar import Frequency
from torchcommodity.data._core.prices import Dates
from torchcommodity.data._covariates.covariate import DAY, IN_ADVANCE, Covariate, Values

HALFLIFE = 21  # observations
MIN_OBSERVATIONS = 20  # before them there is no ratio
MIN_DAYS = 365  # of a column known in advance
ROWS_PER_YEAR: dict[Frequency, int] = {"daily": 252, "weekly": 52, "monthly": 12}
DAYS_PER_ROW: dict[Frequency, float] = {"daily": 7 / 5, "weekly": 7.0, "monthly": 365.25 / 12}


def variance_term(column: Covariate, rows: Dates, horizons: Sequence[int], frequency: Frequency) -> Values:
    """The term of a covariate at each row and horizon `(T, H)`; NaN where nothing is known, or it is too old."""
    if column.rule == IN_ADVANCE:
        days = [round(h * DAYS_PER_ROW[frequency]) for h in horizons]
        return np.stack([_coming_ratio(column, rows, n) for n in days], 1)
    if column.transform == "volatility":
        states = (column.values / 100) ** 2 / ROWS_PER_YEAR[frequency]
    else:
        states = _ratios(column)
    index = column.in_use(rows)
    term = np.where((index < 0) | column.expired(rows), np.nan, states[index])
    return np.repeat(term[:, None], len(horizons), axis=1)


def _ratios(column: Covariate) -> Values:  # (M,)
    """Ratio of each observation when it came into use; an observation that never did has that of the one in use."""
    with extra("forecast"):
        import pandas as pd

    used = np.unique(column.latest)
    x, revised = column.values[used], np.diff(column.dates[used], prepend=np.datetime64("NaT", "D")) == 0 * DAY
    if column.transform == "changes":
        squares = np.where(revised, np.nan, np.square(np.diff(np.log(x), prepend=np.nan)))
        x, past = pd.Series(squares).ewm(halflife=HALFLIFE, ignore_na=True).mean().to_numpy(), squares
    else:
        past = np.where(revised, np.nan, x)  # the first value of each date counts in the mean
    mean = pd.Series(past).expanding(MIN_OBSERVATIONS).mean().to_numpy()
    ratios = np.full(len(column.values), np.nan)
    ratios[used] = x / np.where(mean > 0, mean, np.nan)
    return ratios


def _coming_ratio(column: Covariate, rows: Dates, days: int) -> Values:  # (T,)
    """Mean per day over the `days` after each row, over the mean per day from the first date to the row."""
    total = np.concatenate([[0.0], column.values.cumsum()])
    past = total[np.searchsorted(column.dates, rows, side="right")]
    end = rows + days * DAY
    coming = (total[np.searchsorted(column.dates, end, side="right")] - past) / days
    elapsed = (rows - column.dates[0]) / DAY + 1
    known = (elapsed >= MIN_DAYS) & (end <= column.dates[-1]) & (past > 0)
    return np.where(known, coming / np.where(known, past / np.maximum(elapsed, 1), 1.0), np.nan)

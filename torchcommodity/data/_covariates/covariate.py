"""One column of values beside prices, and when each of them was published."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np

from torchcommodity._choices import Transform
from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Dates
from torchcommodity.data._core.provenance import check_names

DAY = np.timedelta64(1, "D")


def add_lag(dates: Dates, lag: str) -> Dates:
    """The days on which values of these dates are published.

    Args:
        dates: `(M,) datetime64[D]`, the days that the values are about.
        lag: "7D" = calendar days, "5B" = business days, Monday to Friday; a date on a weekend counts from the Monday.

    Raises:
        DataError: another text.

    >>> friday = np.array(["2024-01-05"], "datetime64[D]")
    >>> str(add_lag(friday, "5D")[0]), str(add_lag(friday, "5B")[0])
    ('2024-01-10', '2024-01-12')
    """
    match = re.fullmatch(r"([0-9]{1,4})([DB])", str(lag))
    if match is None:
        raise DataError(
            f"covariates: lag must be calendar days such as '7D' or business days such as '5B'; got {lag!r}"
        )
    days = int(match[1])
    return dates + days * DAY if match[2] == "D" else np.busday_offset(dates, days, roll="forward")


def first_day(published: "np.ndarray[Any, Any]") -> Dates:
    """The first day whose row may use a value published at these times, `datetime64` of any unit.

    A row has a day and no hour, so a value with an hour is used from the next day on. Write the day alone for what is
    published before the settlement.

    >>> first_day(np.array(["2024-01-10", "2024-01-10T15:30"], "datetime64[s]"))
    array(['2024-01-10', '2024-01-11'], dtype='datetime64[D]')
    """
    days: Dates = published.astype("datetime64[D]")
    return np.where(published == days, days, days + DAY)


Values = np.ndarray[Any, np.dtype[np.float64]]
Indices = np.ndarray[Any, np.dtype[np.int64]]
IN_ADVANCE = "known in advance"
VINTAGES = "vintages"
MIN_DAYS, SPACINGS = 10, 3  # how long a value is used: days; median distances of two observations


class CovariateSpec(NamedTuple):
    """What a model must know of a covariate, so that a forecast reads it as the fit did."""

    name: str
    rule: str  # "lag 7D", "vintages" or "known in advance"
    transform: str


@dataclass(frozen=True, eq=False)
class Covariate:
    """M observations of one variable, and when each was published.

    Args:
        name: by the rules of the symbols of a `Panel`.
        dates: `(M,) datetime64[D]`, the day that each value is about.
        published: `(M,) datetime64[D]`, the first day whose row may use it.
        values: `(M,)` float64, finite and not negative; positive for the transforms "changes" and "volatility".
        rule: how `published` was found: "lag 7D", "vintages", or "known in advance".
        transform: how it enters the variance, see `Covariates.variances`.

    Observations are sorted by `published`, then by date.

    Raises:
        DataError: no observation, a value out of range, or two values of one date that were published on one day.
    """

    name: str
    dates: Dates
    published: Dates
    values: Values
    rule: str
    transform: Transform = "level"

    def __post_init__(self) -> None:
        check_names((self.name,), ("",))
        order = np.lexsort((self.dates, self.published))
        for field in ("dates", "published", "values"):
            array = np.array(getattr(self, field))[order]
            array.flags.writeable = False
            object.__setattr__(self, field, array)  # the dataclass is frozen; this is its constructor
        self._check()

    @property
    def spec(self) -> CovariateSpec:
        """Name, rule of publication and transform."""
        return CovariateSpec(self.name, self.rule, self.transform)

    @cached_property
    def valid_days(self) -> Indices:
        """Days `(M,)` after its publication for which each value is used: at least 10, and three times the median
        distance of the dates in use so far."""
        with extra("forecast"):
            import pandas as pd

        distances = np.diff(self.dates[self.latest], prepend=self.dates[:1]) / DAY
        median = pd.Series(np.where(distances > 0, distances, np.nan)).expanding().median().fillna(0.0)
        days: Indices = np.maximum(MIN_DAYS, np.floor(SPACINGS * median.to_numpy())).astype(np.int64)
        return days

    def expired(self, rows: Dates) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """Whether the observation in use is too old on each day; False before the first."""
        index = self.in_use(rows)
        return (index >= 0) & (rows - self.published[index] > self.valid_days[index] * DAY)

    def in_use(self, rows: Dates) -> Indices:
        """Index `(T,)` of the observation in use on each day: of the latest date published so far, its last value.

        -1 before the first. A revision of an older date changes nothing.
        """
        last = np.searchsorted(self.published, rows, side="right") - 1
        return np.where(last >= 0, self.latest[last], -1)

    @cached_property
    def latest(self) -> Indices:
        """Index `(M,)` of the observation in use once the m-th is published."""
        newest = self.dates == np.maximum.accumulate(self.dates)
        return np.maximum.accumulate(np.where(newest, np.arange(len(self.dates)), 0))

    def _check(self) -> None:
        if not len(self.dates):
            raise DataError(f"covariates: {self.name!r} must have a value; got none")
        if self.transform not in get_args(Transform):
            expected = ", ".join(get_args(Transform))
            raise DataError(f"covariates: transform of {self.name!r} must be one of {expected}; got {self.transform!r}")
        positive = self.transform != "level"
        valid = np.isfinite(self.values) & ((self.values > 0) | ((self.values == 0) & (not positive)))
        if not valid.all():
            bad, word = int(np.argmin(valid)), "positive" if positive else "not negative"
            raise DataError(
                f"covariates: values of {self.name!r} must be finite and {word} for the transform "
                f"{self.transform!r}; got {self.values[bad]:g} on {self.dates[bad]}; set it to NaN, which "
                "publishes nothing, or transform the column first"
            )
        duplicates = (self.published[1:] == self.published[:-1]) & (self.dates[1:] == self.dates[:-1])
        if duplicates.any():
            m = int(np.argmax(duplicates))
            raise DataError(
                f"covariates: {self.name!r} must have one value for each date and day of publication; got two for "
                f"{self.dates[m]}, published on {self.published[m]}"
            )

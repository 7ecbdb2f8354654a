"""Covariates: columns of observations that are used only from the day on which they were published."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from torchcommodity.data._core.errors import DataError, Finding, make_finding, summarize_names
from torchcommodity.data._core.prices import Dates
from torchcommodity.data._covariates.covariate import DAY, IN_ADVANCE, Covariate, CovariateSpec, Values
from torchcommodity.data._covariates.variance import variance_term

if TYPE_CHECKING:
    from torchcommodity.data._core.panel import Panel


class KnownValues(NamedTuple):
    """What was known of each covariate on each of T days; before its first publication NaN and NaT."""

    values: Values  # (T, X) float64
    dates: Dates  # (T, X), the day that each value is about
    published: Dates  # (T, X), the first day on which it could be used


class CovariateCheck(NamedTuple):
    """How a covariate is used on T rows, and what a join by date would have got wrong."""

    name: str
    rule: str  # "lag 7D", "vintages" or "known in advance"
    transform: str
    first: str  # ISO date of the first row that uses it, "" = none
    rows: int  # rows that use a value
    age: float  # median days from the date of the value in use to the row
    oldest: int  # maximum of the same
    expired: int  # rows on which the last value was published too long ago and is not used
    unpublished: int  # rows on which a join by date would have used a value that was not published yet


@dataclass(frozen=True, eq=False, repr=False)
class Covariates:
    """X columns of observations, each with its dates, values and days of publication. Built by `to_covariates`.

    A value is used from the first row on or after the day of its publication, and from no earlier one. In `fit`,
    `backtest` and `predict` each column adds a term to the variance of the forecast; none moves its location.

    >>> import pandas as pd
    >>> from torchcommodity import data
    >>> stocks = pd.DataFrame({"STOCKS": [425.1, 431.6]}, index=pd.to_datetime(["2024-01-05", "2024-01-12"]))
    >>> covariates = data.to_covariates(stocks, lag="5D")
    >>> covariates.as_of(["2024-01-09", "2024-01-10", "2024-01-17"]).values.ravel().tolist()
    [nan, 425.1, 431.6]
    """

    columns: tuple[Covariate, ...]

    def __post_init__(self) -> None:
        if len(set(self.terms)) < len(self.columns) or not self.columns:
            raise DataError(f"covariates: expected columns with distinct names; got {summarize_names(self.terms)}")

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the X columns, which are those of their variance terms."""
        return tuple(column.name for column in self.columns)

    @property
    def ratios(self) -> tuple[str, ...]:
        """Names of the columns whose term is a multiple of the symbol's slow variance; the others are variances."""
        return tuple(c.name for c in self.columns if c.rule == IN_ADVANCE or c.transform != "volatility")

    @property
    def specs(self) -> tuple[CovariateSpec, ...]:
        """What a forecast must have in common with the fit."""
        return tuple(column.spec for column in self.columns)

    @property
    def sha256(self) -> str:
        """Of names, rules, transforms, dates, days of publication and values."""
        digest = hashlib.sha256(repr(self.specs).encode())
        for column in self.columns:
            digest.update(column.dates.tobytes() + column.published.tobytes() + column.values.tobytes())
        return digest.hexdigest()

    def join(self, other: "Covariates") -> "Covariates":
        """The columns of both, for example with different lags."""
        return Covariates((*self.columns, *other.columns))

    def as_of(self, dates: Any) -> KnownValues:
        """The last value of each column that was published on or before each day; never a later one.

        Of the values published so far the one with the latest date counts, as last revised. Between publications it
        stays. Of a column known in advance it is the value dated on or before the day.

        Args:
            dates: `(T,)` days in any order, anything that `np.datetime64` accepts.
        """
        rows = np.asarray(dates, dtype="datetime64[D]")
        if np.isnat(rows).any():
            raise DataError("as_of: expected dates; got NaT")
        indices = [column.in_use(rows) for column in self.columns]

        def take(field: str, missing: Any) -> Any:
            parts = [np.where(i < 0, missing, getattr(c, field)[i]) for c, i in zip(self.columns, indices)]
            return np.stack(parts, axis=-1)

        nat = np.datetime64("NaT", "D")
        return KnownValues(take("values", np.nan), take("dates", nat), take("published", nat))

    def first_use(self, name: str, date: Any) -> np.datetime64:
        """The first day whose row uses a value of a column that is about a date; NaT if it is known in advance.

        Raises:
            DataError: an unknown column, or one without a value for the date.
        """
        column = self._column(name)
        published = column.published[column.dates == np.datetime64(date, "D")]
        if not len(published):
            raise DataError(f"first_use: {name!r} must have a value for the date; got {date}")
        first: np.datetime64 = np.datetime64("NaT", "D") if column.rule == IN_ADVANCE else published[0]
        return first

    def check(self, dates: Any) -> tuple[CovariateCheck, ...]:
        """Report for each column when it is used on the rows of these dates, how old it is, and what was not known.

        >>> import pandas as pd
        >>> from torchcommodity import data
        >>> stocks = pd.Series([425.1, 431.6], pd.to_datetime(["2024-01-05", "2024-01-12"]), name="STOCKS")
        >>> rows = pd.bdate_range("2024-01-05", "2024-01-17")
        >>> [report] = data.to_covariates(stocks, lag="5D").check(rows)
        >>> report.first, report.rows, report.unpublished
        ('2024-01-10', 6, 6)
        """
        rows = np.asarray(dates, dtype="datetime64[D]")
        return tuple(_check(column, rows) for column in self.columns)

    def findings(self, last: Any) -> tuple[Finding, ...]:
        """A finding for each column whose last value was published too long before the day `last` to be used on it."""
        row = np.array([last], dtype="datetime64[D]")
        ended = [(c, int(c.in_use(row)[0])) for c in self.columns if c.rule != IN_ADVANCE and c.expired(row)[0]]
        words = [f"used for {c.valid_days[m]} days, the last row is of {row[0]}" for c, m in ended]
        return tuple(
            make_finding("covariate ended", c.name, c.published[m], value=x) for (c, m), x in zip(ended, words)
        )

    def variances(self, panel: "Panel", horizons: Sequence[int]) -> torch.Tensor:  # (T, H, N, X)
        """The variance term of each column at each row, from what was published by then.

        | column | term | for |
        |---|---|---|
        | `volatility` | (x / 100)² / rows per year, a variance per row | implied volatility, percent per year |
        | `level` | x / mean of the values so far | stocks, spreads, anything not negative |
        | `changes` | EWMA of squared log-changes (half-life 21 values) / their mean so far | an index or a price |
        | known in advance | mean per day over the coming horizon / mean per day so far | scheduled events |

        The last three are multiples of the symbol's slow variance. NaN = no information: nothing is known yet, fewer
        than 20 values (a year of a column known in advance), or the last value was published longer ago than three
        times the median distance of the dates so far, at least 10 days. A model then uses the slow variance.

        Args:
            panel: the prices; their rows are the T rows.
            horizons: H numbers of rows.
        """
        terms = [variance_term(column, panel.dates, horizons, panel.frequency) for column in self.columns]
        stacked = torch.from_numpy(np.stack(terms, axis=-1)).unsqueeze(2)
        return stacked.expand(-1, -1, len(panel.symbols), -1)

    def _column(self, name: str) -> Covariate:
        if name not in self.terms:
            raise DataError(f"covariates: expected a name among {summarize_names(self.terms, 20)}; got {name!r}")
        return self.columns[self.terms.index(name)]

    def __repr__(self) -> str:
        parts = [
            f"{c.name}: {len(c.dates):,} values {c.dates.min()} to {c.dates.max()}, {c.rule}" for c in self.columns
        ]
        return f"Covariates({'; '.join(parts)})"


def _check(column: Covariate, rows: Dates) -> CovariateCheck:
    index = column.in_use(rows)
    used = index >= 0
    ages = ((rows - column.dates[index]) / DAY)[used]
    return CovariateCheck(
        *column.spec,
        first=str(rows[used].min()) if used.any() else "",
        rows=int(used.sum()),
        age=float(np.median(ages)) if used.any() else float("nan"),
        oldest=int(ages.max()) if used.any() else 0,
        expired=0 if column.rule == IN_ADVANCE else int(column.expired(rows).sum()),
        unpublished=int((column.published[_join_by_date(column, rows)] > rows)[rows >= column.dates.min()].sum()),
    )


def _join_by_date(column: Covariate, rows: Dates) -> np.ndarray[Any, Any]:
    """Index `(T,)` of the observation that a join by date takes: the last date up to the row, as finally revised."""
    order = np.lexsort((column.published, column.dates))
    return order[np.searchsorted(column.dates[order], rows, side="right") - 1]

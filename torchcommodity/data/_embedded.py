"""Real prices that come with the `arch` package: the default, and always there without a network."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from torchcommodity.data._panel import Panel, Provenance, utc_now
from torchcommodity.opkit import MetadataTensor


@dataclass(frozen=True)
class Series:
    """One embedded series: `arch.data.<module>`, its column, and what its publisher calls it."""

    symbol: str
    module: str
    column: str
    unit: str
    publisher: str
    series: str


SERIES = (
    Series("WTI", "wti", "DCOILWTICO", "$/bbl", "US EIA through FRED, St. Louis Fed", "DCOILWTICO"),
    Series("SP500", "sp500", "Adj Close", "index", "S&P Dow Jones Indices through Yahoo Finance", "^GSPC"),
    Series("NASDAQ", "nasdaq", "Adj Close", "index", "Nasdaq through Yahoo Finance", "^IXIC"),
    Series("VIX", "vix", "vix", "index", "Cboe through FRED, St. Louis Fed", "VIXCLS"),
)


def embedded() -> Panel:
    """Daily WTI spot ($/bbl, from 1986), S&P 500, NASDAQ (1999) and VIX (2014) to 2019-01-03, from `arch.data`.

    Rows are the days on which at least one of them has a price; the rest of a row is NaN = missing. Nothing is filled.

    >>> embedded().symbols
    ('WTI', 'SP500', 'NASDAQ', 'VIX')
    """
    kept = _packaged()  # read once; each caller gets numbers of its own
    return replace(kept, values=MetadataTensor(kept.values.clone()))


@cache
def _packaged() -> Panel:
    tables = {series.symbol: _column(series) for series in SERIES}
    frame = pd.DataFrame(tables).sort_index().dropna(how="all")
    return Panel.from_pandas(frame, units=[s.unit for s in SERIES], provenance=[_provenance(s) for s in SERIES])


def _column(series: Series) -> "pd.Series[float]":
    frame = import_module(f"arch.data.{series.module}").load()
    return frame[series.column].astype(np.float64)  # type: ignore[no-any-return]


def _provenance(series: Series) -> Provenance:
    folder = Path(str(import_module(f"arch.data.{series.module}").__file__)).parent
    digest = hashlib.sha256((folder / f"{series.module}.csv.gz").read_bytes()).hexdigest()
    location = f"arch {version('arch')}, arch.data.{series.module}"
    return Provenance(series.publisher, location, "as packaged by arch (NCSA)", utc_now(), digest, series.series)

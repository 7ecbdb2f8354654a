"""Real prices that ship with the `arch` package: the default source, without a network."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import Provenance, utc_now
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class EmbeddedSeries:
    """One series: column `column` of `arch.data.<module>`; `series` is the publisher's name for it."""

    symbol: str
    module: str
    column: str
    unit: str
    publisher: str
    series: str


SERIES = (
    EmbeddedSeries("WTI", "wti", "DCOILWTICO", "$/bbl", "US EIA through FRED, St. Louis Fed", "DCOILWTICO"),
    EmbeddedSeries("SP500", "sp500", "Adj Close", "index", "S&P Dow Jones Indices through Yahoo Finance", "^GSPC"),
    EmbeddedSeries("NASDAQ", "nasdaq", "Adj Close", "index", "Nasdaq through Yahoo Finance", "^IXIC"),
    EmbeddedSeries("VIX", "vix", "vix", "index", "Cboe through FRED, St. Louis Fed", "VIXCLS"),
)


def embedded() -> Panel:
    """Load daily WTI spot ($/bbl, from 1986), S&P 500, NASDAQ (1999) and VIX (2014), to 2019-01-03.

    The prices ship with the `arch` package. Rows are the days on which at least one series has a price; NaN = missing.

    Returns:
        Prices `(T, 4)` float64; a copy that callers may write to.

    >>> embedded().symbols
    ('WTI', 'SP500', 'NASDAQ', 'VIX')
    """
    panel = _read_package()
    return replace(panel, values=MetadataTensor(panel.values.clone()))  # callers may write into their copy


@cache
def _read_package() -> Panel:
    import pandas as pd

    columns = {series.symbol: _column(series) for series in SERIES}
    frame = pd.DataFrame(columns).sort_index().dropna(how="all")
    return Panel.from_pandas(frame, units=[s.unit for s in SERIES], provenance=[_provenance(s) for s in SERIES])


def _column(series: EmbeddedSeries) -> "pd.Series[float]":
    frame = import_module(f"arch.data.{series.module}").load()
    return frame[series.column].astype(np.float64)  # type: ignore[no-any-return]


def _provenance(series: EmbeddedSeries) -> Provenance:
    folder = Path(str(import_module(f"arch.data.{series.module}").__file__)).parent
    digest = hashlib.sha256((folder / f"{series.module}.csv.gz").read_bytes()).hexdigest()
    location = f"arch {version('arch')}, arch.data.{series.module}"
    return Provenance(series.publisher, location, "as packaged by arch (NCSA)", utc_now(), digest, series.series)

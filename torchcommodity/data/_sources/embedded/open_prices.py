"""The tables of the folder `open_prices`: prices that the package may ship, with their terms and credit lines.

The folder can be deleted without touching code.
"""

import gzip
import hashlib
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.frequency import month_end
from torchcommodity.data._core.provenance import Provenance

if TYPE_CHECKING:
    import pandas as pd

TableFrequency = Literal["daily", "monthly"]

FOLDER = Path(__file__).parents[2] / "open_prices"
UNITS = {"USD/bbl": "$/bbl", "USD/gal": "$/gal", "USD/MMBtu": "$/MMBtu", "$/mmbtu": "$/MMBtu"}  # as in `CONTRACTS`
EIA = "U.S. Energy Information Administration"


@dataclass(frozen=True)
class OpenTable:
    """One table: file name, the columns of its CSV files, source and terms.

    Args:
        name: `<name>.csv.gz` has the prices, `<name>_series.csv` the list of series.
        date: name of the date column.
        series: name of the column with the publisher's own name for a series.
        provenance: of every series, except as `exceptions` has it.
        exceptions: symbol -> fields of its provenance that differ.
    """

    name: str
    date: str
    series: str
    provenance: Provenance
    exceptions: dict[str, dict[str, str]]


class OpenPrices(NamedTuple):
    """The prices of a table: a wide frame by date, and unit and provenance by symbol, in the order of the table."""

    frame: "pd.DataFrame"
    units: dict[str, str]
    provenance: dict[str, Provenance]


MIRRORED = {"license": "US public domain; mirror under ODC-PDDL-1.0", "retrieved": "2026-08-22"}
TABLES: dict[TableFrequency, OpenTable] = {
    "daily": OpenTable(
        "energy_spot_daily",
        "date",
        "eia_key",
        Provenance(
            publisher=f"{EIA}; assessments by Refinitiv, an LSEG business",
            location="",
            license="US public domain",
            retrieved="2025-12-10",
            sha256="",
            series="",
            credit=f"Source: {EIA} (Aug 2026; petroleum products Dec 2025)",
        ),
        {"WTI": MIRRORED, "BRENT": MIRRORED, "HENRY_HUB": {**MIRRORED, "publisher": EIA}},
    ),
    "monthly": OpenTable(
        "pink_sheet_monthly",
        "month",
        "name",
        Provenance(
            publisher="World Bank",
            location="",
            license="CC BY 4.0",
            retrieved="2026-06-02",
            sha256="",
            series="",
            credit="World Bank, Commodity Price Data (The Pink Sheet), 2 June 2026, CC BY 4.0; "
            'changed: reshaped to a long table, "…" left out',
        ),
        {},
    ),
}


def read_open_prices(frequency: TableFrequency) -> OpenPrices:
    """Read the table of a frequency; a month is dated on its last business day, when its average is known.

    Raises:
        DataError: the folder was deleted.
    """
    with extra("forecast"):
        import pandas as pd

    table = TABLES[frequency]
    text = _text(table)
    series = pd.read_csv(FOLDER / f"{table.name}_series.csv", index_col="symbol", dtype=str)
    prices = pd.read_csv(io.BytesIO(text), engine="pyarrow", dtype={table.date: str})
    frame = prices.pivot(index=table.date, columns="symbol", values="price")[list(series.index)]
    days = frame.index.to_numpy("datetime64[D]" if frequency == "daily" else "datetime64[M]")
    frame.index = pd.DatetimeIndex(days if frequency == "daily" else month_end(days), name="date")
    symbols, digest = list(map(str, series.index)), hashlib.sha256(text).hexdigest()
    names = zip(symbols, series[table.series])
    return OpenPrices(
        frame,
        {symbol: UNITS.get(unit, unit) for symbol, unit in zip(symbols, series["unit"])},
        {symbol: _provenance(table, symbol, name, digest) for symbol, name in names},
    )


def _text(table: OpenTable) -> bytes:
    try:
        return gzip.decompress((FOLDER / f"{table.name}.csv.gz").read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"embedded: expected prices in {FOLDER}; the folder is absent, so this copy of torchcommodity was "
            "distributed without prices; read others, as in --data prices.csv, fred:ID or eia:ID"
        ) from None


def _provenance(table: OpenTable, symbol: str, name: str, digest: str) -> Provenance:
    fields = {"location": f"torchcommodity/data/open_prices/{table.name}.csv.gz", "sha256": digest}
    fields["series"] = name.rstrip(" *")  # the World Bank marks footnotes with asterisks
    return replace(table.provenance, **fields, **table.exceptions.get(symbol, {}))

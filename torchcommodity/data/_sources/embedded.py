"""Real prices that ship with the package: the default source, without a network.

They stand in the folder `open_prices`, with their terms and credit lines; it can be deleted without touching code.
"""

import csv
import gzip
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from torch_opkit import MetadataTensor
from torchcommodity._extras import extra
from torchcommodity.data._core.calendar import month_end
from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.errors import DataError, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance, check_several
from torchcommodity.data._quality.inspect import inspect

if TYPE_CHECKING:
    import pandas as pd

TableFrequency = Literal["daily", "monthly"]

FOLDER = Path(__file__).parents[1] / "open_prices"
UNITS = {"USD/bbl": "$/bbl", "USD/gal": "$/gal", "USD/MMBtu": "$/MMBtu", "$/mmbtu": "$/MMBtu"}  # as in `CONTRACTS`
EIA = "U.S. Energy Information Administration"
CALENDARS = {"BRENT": "LSE"}  # of the spot prices that do not follow New York


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
    try:
        text = gzip.decompress((FOLDER / f"{table.name}.csv.gz").read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"embedded: expected prices in {FOLDER}; the folder is absent, so this copy of torchcommodity was "
            "distributed without prices; read others, as in --data prices.csv, fred:ID or eia:ID"
        ) from None
    series = pd.read_csv(FOLDER / f"{table.name}_series.csv", index_col="symbol", dtype=str)
    prices = pd.read_csv(io.BytesIO(text), engine="pyarrow", dtype={table.date: str})
    frame = prices.pivot(index=table.date, columns="symbol", values="price")[list(series.index)]
    days = frame.index.to_numpy("datetime64[D]" if frequency == "daily" else "datetime64[M]")
    frame.index = pd.DatetimeIndex(days if frequency == "daily" else month_end(days), name="date")
    units, provenance, digest = {}, {}, hashlib.sha256(text).hexdigest()
    location = f"torchcommodity/data/open_prices/{table.name}.csv.gz"
    for symbol, unit, name in zip(map(str, series.index), series["unit"], series[table.series]):
        units[symbol] = UNITS.get(unit, unit)
        fields = {"location": location, "sha256": digest, "series": name.rstrip(" *")}  # asterisks mark footnotes
        provenance[symbol] = replace(table.provenance, **fields, **table.exceptions.get(symbol, {}))
    return OpenPrices(frame, units, provenance)


DEFAULTS: dict[TableFrequency, tuple[str, ...]] = {
    "daily": ("WTI", "BRENT", "HENRY_HUB"),  # the series that are still published; the other nine end in December 2025
    # One price of each commodity, two where two grades are traded: published to the last month, without gaps, no index
    # or average of others, not administered. Few enough for a chart of each in the report.
    "monthly": (
        "CRUDE_OIL_BRENT", "CRUDE_OIL_WTI", "NATURAL_GAS_US", "NATURAL_GAS_EUROPE", "LIQUEFIED_NATURAL_GAS_JAPAN",
        "COAL_AUSTRALIAN", "GOLD", "SILVER", "PLATINUM", "COPPER", "ALUMINUM", "NICKEL", "ZINC", "LEAD", "TIN",
        "IRON_ORE_CFR_SPOT", "MAIZE", "WHEAT_US_HRW", "RICE_THAI_5", "SOYBEANS", "SOYBEAN_MEAL", "SOYBEAN_OIL",
        "PALM_OIL", "COCONUT_OIL", "RAPESEED_OIL", "COCOA", "COFFEE_ARABICA", "COFFEE_ROBUSTA", "TEA_MOMBASA",
        "SUGAR_WORLD", "COTTON_A_INDEX", "RUBBER_TSR20", "ORANGE", "BEEF", "CHICKEN", "LOGS_MALAYSIAN", "UREA", "DAP",
    ),
}  # fmt: skip


def embedded(symbols: Sequence[str] | None = None, *, frequency: TableFrequency = "daily") -> Panel:
    """Load the prices that ship with the package.

    | frequency | prices | default |
    |---|---|---|
    | daily | 12 US EIA spot prices of energy, from 1986 | `WTI`, `BRENT`, `HENRY_HUB`, to 2026-08-18 |
    | monthly | 71 World Bank prices, averages of the month, 1960 to May 2026 | 38, of every commodity |

    The others are references of the default ones, prices that help to forecast them: the nine oil products, which end
    on 2025-12-08; and of the monthly prices further grades, indices, and those that end earlier, have gaps or are
    administered. By name a panel has no references, see `add_references`. `torchcommodity data sources` lists all
    series with their publishers, terms and credit lines. A month is dated on its last business day.

    Args:
        symbols: names, in this order; default: see the table.
        frequency: "daily" or "monthly".

    Returns:
        Prices `(T, N)` float64, NaN = missing; rows are the days on which at least one symbol has a price. A copy that
        callers may write to.

    Raises:
        TypeError: one name instead of a list.
        DataError: an unknown symbol; the folder of prices was left out of this copy of the package.

    >>> embedded(), embedded(["GOLD"], frequency="monthly").units
    (Panel(10411 dates 1986-01-02 to 2026-08-18, 3 symbols: WTI, BRENT, HENRY_HUB; 9 references: GASOLINE_NYH, \
GASOLINE_USGC and 7 more), ('$/troy oz',))
    """
    if frequency not in ("daily", "monthly"):
        raise ValueError(f"embedded: frequency must be daily or monthly; got {frequency!r}")
    check_several("embedded", symbols)
    panel = _panel(frequency, None if symbols is None else tuple(symbols))
    panel = replace(panel, values=MetadataTensor(panel.values.plain().clone()))  # callers may write into their copy
    return panel if symbols is not None else panel.with_references(_panel(frequency, embedded_symbols(frequency)))


def embedded_symbols(frequency: TableFrequency = "daily") -> tuple[str, ...]:
    """All symbols of a frequency, those that have to be asked for by name too.

    >>> embedded_symbols()[:4], len(embedded_symbols("monthly"))
    (('WTI', 'BRENT', 'GASOLINE_NYH', 'GASOLINE_USGC'), 71)
    """
    return tuple(_read(frequency).units)


_read = cache(read_open_prices)


@cache
def _panel(frequency: TableFrequency, symbols: tuple[str, ...] | None) -> Panel:
    prices = _read(frequency)
    names = list(DEFAULTS[frequency] if symbols is None else symbols)
    if unknown := [name for name in names if name not in prices.units]:
        other: TableFrequency = "monthly" if frequency == "daily" else "daily"
        words, known = "torchcommodity data sources lists all", summarize_names(prices.units, limit=20)
        if elsewhere := [name for name in unknown if name in _read(other).units]:
            hint = f"--data {'embedded' if other == 'daily' else other}, frequency={other!r}"
            words = f"{summarize_names(elsewhere)}: {other} ({hint})"
        raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}; {words}")
    frame = prices.frame[names].dropna(how="all")
    panel = Panel(
        MetadataTensor(torch.from_numpy(frame.to_numpy(copy=True))),
        frame.index.to_numpy(),
        tuple(names),
        tuple(prices.units[name] for name in names),
        tuple(prices.provenance[name] for name in names),
        averages=(frequency == "monthly",) * len(names),
        calendars=tuple(map(CALENDARS.get, names)),
    )
    findings = [*inspect(panel)]
    reported = {finding.symbol for finding in findings if finding.kind == "ended"}
    # series that end before their table does; `inspect` knows only those that end before others of the panel
    days = prices.frame.index.to_numpy("datetime64[D]")
    value = f"last price; others of the publisher run to {days[-1]}"
    for name in names:
        end = days[prices.frame[name].notna()][-1]
        if name not in reported and end != days[-1]:
            findings.append(make_finding("ended", name, end, value=value))
    return replace(panel, findings=tuple(findings))


def product_name(contract: str | None, series: str = "") -> str:
    """Name of a commodity, "" where it is not known.

    Args:
        contract: product code of the exchange, a key of `CONTRACTS`; None = a spot price.
        series: the publisher's key of a spot price, as in `Provenance.series`; a spread has its own name.

    >>> product_name("BO"), product_name(None, "RWTC"), product_name(None, "close"), product_name("HO", "spread HO-RB")
    ('Soybean oil', 'WTI crude oil, Cushing', '', '')
    """
    if series.startswith("spread"):  # with the contract of its legs
        return ""
    return series_names().get(series, "") if contract is None else get_contract(contract).name


@cache
def series_names() -> dict[str, str]:
    """Name by key of the series that the package ships, also where they are read from their publisher."""
    names: dict[str, str] = {}
    for table in TABLES.values():
        path = FOLDER / f"{table.name}_series.csv"
        if path.exists():  # the folder may have been left out
            rows = csv.DictReader(path.read_text("utf-8").splitlines())
            # the World Bank marks footnotes with asterisks
            names |= {row[table.series].rstrip(" *"): row["name"].rstrip(" *") for row in rows}
    return names

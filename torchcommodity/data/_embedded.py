"""Real prices that ship with the package: the default source, without a network."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch

from torchcommodity.data._errors import DataError, summarize_names
from torchcommodity.data._inspect import inspect
from torchcommodity.data._open_prices import OpenPrices, TableFrequency, read_open_prices
from torchcommodity.data._panel import Panel
from torchcommodity.opkit import MetadataTensor

DAILY = ("WTI", "BRENT", "HENRY_HUB")  # the series that are still published; the other nine end in December 2025
NOT_DEFAULT = {
    "CRUDE_OIL_AVERAGE": "average of three others",
    "TEA_AVG_3_AUCTIONS": "average of three others",
    "NATURAL_GAS_INDEX": "index of three others",
    "SUGAR_EU": "administered",
    "PHOSPHATE_ROCK": "rarely revised",
    "POTASSIUM_CHLORIDE": "rarely revised",
    "SAWNWOOD_CAMEROON": "no price in 252 months",
    "BARLEY": "ends in 2020",
    "SORGHUM": "ends in 2020",
    "SHRIMPS_MEXICAN": "ends in 2023",
    "TOBACCO_US_IMPORT_U_V": "a unit value, which ends in March 2026",
}  # monthly series that have to be asked for by name; rarely revised: equal to the month before in a third since 2015


def embedded(symbols: Sequence[str] | None = None, *, frequency: TableFrequency = "daily") -> Panel:
    """Load the prices that ship with the package.

    | frequency | prices | default |
    |---|---|---|
    | daily | 12 US EIA spot prices of energy, from 1986 | `WTI`, `BRENT`, `HENRY_HUB`, to 2026-08-18 |
    | monthly | 71 World Bank prices, averages of the month, 1960 to May 2026 | 60 market prices without gaps |

    By name only: the nine oil products, which end on 2025-12-08; and of the monthly prices those that end earlier, are
    administered or rarely revised, or are averages of others. `torchcommodity data sources` lists all series with
    their publishers, terms and credit lines. A month is dated on its last business day.

    Args:
        symbols: names, in this order; default: see the table.
        frequency: "daily" or "monthly".

    Returns:
        Prices `(T, N)` float64, NaN = missing; rows are the days on which at least one symbol has a price. A copy that
        callers may write to.

    Raises:
        DataError: an unknown symbol; the folder of prices was left out of this copy of the package.

    >>> embedded(), embedded(["GOLD"], frequency="monthly").units
    (Panel(10411 dates 1986-01-02 to 2026-08-18, 3 symbols: WTI, BRENT, HENRY_HUB), ('$/troy oz',))
    """
    if frequency not in ("daily", "monthly"):
        raise ValueError(f"embedded: frequency must be daily or monthly; got {frequency!r}")
    panel = _panel(frequency, None if symbols is None else tuple(symbols))
    return replace(panel, values=MetadataTensor(panel.values.plain().clone()))  # callers may write into their copy


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
    names = list(_default(frequency, prices) if symbols is None else symbols)
    _check_symbols(names, frequency, prices)
    frame = prices.frame[names].dropna(how="all")
    panel = Panel(
        MetadataTensor(torch.from_numpy(frame.to_numpy(copy=True))),
        frame.index.to_numpy(),
        tuple(names),
        tuple(prices.units[name] for name in names),
        tuple(prices.provenance[name] for name in names),
    )
    return replace(panel, findings=inspect(panel))


def _default(frequency: TableFrequency, prices: OpenPrices) -> Sequence[str]:
    return DAILY if frequency == "daily" else [name for name in prices.units if name not in NOT_DEFAULT]


def _check_symbols(names: Sequence[str], frequency: TableFrequency, prices: OpenPrices) -> None:
    if not (unknown := [name for name in names if name not in prices.units]):
        return
    other: TableFrequency = "monthly" if frequency == "daily" else "daily"
    hint = f"--data {'embedded' if other == 'daily' else other}, frequency={other!r}"
    elsewhere = [name for name in unknown if name in _read(other).units]
    words = f"{summarize_names(elsewhere)}: {other} ({hint})" if elsewhere else "torchcommodity data sources lists all"
    known = summarize_names(prices.units, limit=20)
    raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}; {words}")

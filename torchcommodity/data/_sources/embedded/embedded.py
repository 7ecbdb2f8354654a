"""Real prices that ship with the package: the default source, without a network."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch

from torchcommodity.data._core.errors import DataError, Finding, make_finding, summarize_names
from torchcommodity.data._core.names import check_several
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.embedded.open_prices import OpenPrices, TableFrequency, read_open_prices
from torchcommodity.opkit import MetadataTensor

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

    By name only: the nine oil products, which end on 2025-12-08; and of the monthly prices further grades, indices, and
    those that end earlier, have gaps or are administered. `torchcommodity data sources` lists all series with their
    publishers, terms and credit lines. A month is dated on its last business day.

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
    (Panel(10411 dates 1986-01-02 to 2026-08-18, 3 symbols: WTI, BRENT, HENRY_HUB), ('$/troy oz',))
    """
    if frequency not in ("daily", "monthly"):
        raise ValueError(f"embedded: frequency must be daily or monthly; got {frequency!r}")
    check_several("embedded", symbols)
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
    names = list(DEFAULTS[frequency] if symbols is None else symbols)
    _check_symbols(names, frequency, prices)
    frame = prices.frame[names].dropna(how="all")
    panel = Panel(
        MetadataTensor(torch.from_numpy(frame.to_numpy(copy=True))),
        frame.index.to_numpy(),
        tuple(names),
        tuple(prices.units[name] for name in names),
        tuple(prices.provenance[name] for name in names),
        averages=(frequency == "monthly",) * len(names),
    )
    findings = inspect(panel)
    reported = {finding.symbol for finding in findings if finding.kind == "ended"}
    return replace(panel, findings=findings + _ended([name for name in names if name not in reported], prices))


def _ended(names: Sequence[str], prices: OpenPrices) -> tuple[Finding, ...]:
    """Series that end before their table does; `inspect` knows only those that end before others of the panel."""
    days = prices.frame.index.to_numpy("datetime64[D]")
    ends = {name: days[prices.frame[name].notna()][-1] for name in names}
    value = f"last price; others of the publisher run to {days[-1]}"
    return tuple(make_finding("ended", name, end, value=value) for name, end in ends.items() if end != days[-1])


def _check_symbols(names: Sequence[str], frequency: TableFrequency, prices: OpenPrices) -> None:
    if not (unknown := [name for name in names if name not in prices.units]):
        return
    other: TableFrequency = "monthly" if frequency == "daily" else "daily"
    hint = f"--data {'embedded' if other == 'daily' else other}, frequency={other!r}"
    elsewhere = [name for name in unknown if name in _read(other).units]
    words = f"{summarize_names(elsewhere)}: {other} ({hint})" if elsewhere else "torchcommodity data sources lists all"
    known = summarize_names(prices.units, limit=20)
    raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}; {words}")

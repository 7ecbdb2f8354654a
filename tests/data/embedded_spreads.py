"""Spreads of embedded prices, which are below zero on many days."""

from torchcommodity import data
from torchcommodity.data import Panel


def brent_wti(first: str = "2010-01-01", last: str = "2018-12-31") -> Panel:
    """Brent less WTI."""
    return data.spread(data.embedded(["BRENT", "WTI"]).between(first, last), "BRENT-WTI", name="SPREAD")


def diesel_basis(first: str, last: str) -> Panel:
    """Diesel of New York less that of the Gulf coast, per barrel."""
    prices = data.embedded(["ULSD_NYH", "ULSD_USGC"]).between(first, last)
    return data.spread(prices, {"ULSD_NYH": 1, "ULSD_USGC": -1}, unit="$/bbl", name="BASIS")

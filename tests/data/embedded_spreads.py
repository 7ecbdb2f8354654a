"""Spreads of embedded prices, whose prices are negative on many days."""

from dataclasses import replace

from torchcommodity import data
from torchcommodity.data import Panel

GALLONS = 42  # of a barrel


def spread(legs: dict[str, float], first: str = "2010-01-01", last: str = "2018-12-31", name: str = "SPREAD") -> Panel:
    """A weighted sum of embedded prices on the days on which all have one."""
    panel = data.embedded(list(legs)).between(first, last)
    values = sum(weight * panel.values.plain()[:, n] for n, weight in enumerate(legs.values()))
    first_leg = replace(panel[next(iter(legs))], references=None)
    return replace(first_leg, values=values[:, None], symbols=(name,), findings=()).drop_empty_rows()


def brent_wti(first: str = "2010-01-01", last: str = "2018-12-31") -> Panel:
    """Brent less WTI: below zero until 2010 and again at times."""
    return spread({"BRENT": 1, "WTI": -1}, first, last)


def crack(first: str = "2010-01-01", last: str = "2018-12-31") -> Panel:
    """Gasoline of New York less Brent, per barrel: below zero in the winters of 2012 and 2015 to 2018."""
    return spread({"GASOLINE_NYH": GALLONS, "BRENT": -1}, first, last, "CRACK")

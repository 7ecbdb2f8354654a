"""Units of prices, such as `¢/gal`, and the factor from one to another."""

import re
from typing import NamedTuple

CURRENCIES = {
    "USD": ({"$", "usd", "us$", "dollar", "dollars", "us dollar", "us dollars"}, 1.0),
    "US cents": ({"¢", "us¢", "usc", "cent", "cents", "us cent", "us cents"}, 0.01),
    "EUR": ({"€", "eur", "euro", "euros"}, 1.0),
    "GBP": ({"£", "gbp"}, 1.0),
    "British pence": ({"gbx", "gbp pence", "pence"}, 0.01),
    "CNY": ({"cny", "rmb", "yuan", "cny¥"}, 1.0),
    "JPY": ({"jpy", "yen"}, 1.0),
}  # names and value in the main unit
MAIN_UNITS = {"US cents": "USD", "British pence": "GBP"}

# kind, names, and size in gallons, kilograms and million British thermal units
QUANTITIES: dict[str, list[tuple[set[str], float]]] = {
    "volume": [
        ({"gal", "gallon", "gallons", "us gallon", "us gallons"}, 1.0),
        ({"bbl", "barrel", "barrels"}, 42.0),
        ({"l", "liter", "liters", "litre", "litres"}, 1 / 3.785411784),
        ({"m3", "m³", "cbm", "cubic meter", "cubic meters", "cubic metre"}, 1000 / 3.785411784),
    ],
    "mass": [
        ({"kg", "kilogram", "kilograms"}, 1.0),
        ({"g", "gram", "grams"}, 0.001),
        ({"mt", "t", "tonne", "tonnes", "metric ton", "metric tons"}, 1000.0),
        ({"lb", "lbs", "pound", "pounds"}, 0.45359237),
        ({"cwt", "hundredweight"}, 45.359237),
        ({"st", "short ton", "short tons"}, 907.18474),
        ({"troy oz", "ozt", "oz t", "troy ounce", "troy ounces"}, 0.0311034768),
    ],
    "energy": [
        ({"mmbtu", "mm btu", "dekatherm", "dth"}, 1.0),
        ({"therm", "therms"}, 0.1),
        ({"mwh"}, 1 / 0.29307107017),
        ({"gj"}, 1 / 1.05505585262),
    ],
    "bushels": [({"bu", "bushel", "bushels"}, 1.0)],
}
BUSHELS = {"C": 56, "W": 60, "KW": 60, "O": 32, "S": 60}  # pounds in a bushel of each product, as CBOT has them
POUND = 0.45359237


class PriceUnit(NamedTuple):
    """A currency per quantity of one kind.

    Args:
        currency: main unit, such as USD.
        value: of the unit of currency in the main one: 0.01 of cents.
        kind: volume, mass, energy or bushels.
        size: of the quantity in gallons, kilograms, million Btu or bushels.
    """

    currency: str
    value: float
    kind: str
    size: float


def parse_unit(text: str) -> PriceUnit | None:
    """The unit of a price, None where it is not known.

    >>> parse_unit("US cents/gal")
    PriceUnit(currency='USD', value=0.01, kind='volume', size=1.0)
    >>> parse_unit("index") is parse_unit("$/ton") is None  # a ton is short or metric
    True
    """
    money, _, quantity = (part.strip() for part in re.sub(r"\s+per\s+", "/", text.strip().lower()).partition("/"))
    for name, (names, value) in CURRENCIES.items():
        for kind, sizes in QUANTITIES.items():
            for quantities, size in sizes:
                if money in names and quantity in quantities:
                    return PriceUnit(MAIN_UNITS.get(name, name), value, kind, size)
    return None


def unit_factor(unit: str, target: str, product: str | None = None) -> float:
    """The number that turns a price in `unit` into one in `target`.

    Args:
        unit: of the price.
        target: of the result.
        product: code of the product in `CONTRACTS`, which tells the weight of a bushel.

    Raises:
        ValueError: no such number is known; the message says why.

    >>> unit_factor("$/gal", "$/bbl"), unit_factor("¢/bu", "$/bu")
    (42.0, 0.01)
    """
    if unit == target and unit:
        return 1.0
    source, result = _known_unit(unit), _known_unit(target)
    if source.currency != result.currency:
        raise ValueError(f"{unit} and {target} are of two currencies")
    sizes = []
    for parsed in (source, result):
        weight = BUSHELS.get(product or "") if parsed.kind == "bushels" and source.kind != result.kind else None
        sizes.append((parsed.kind, parsed.size) if weight is None else ("mass", weight * POUND))
    (kind, size), (other, other_size) = sizes
    if kind != other:
        density = "a heat content" if "energy" in (kind, other) else "a density"
        density = "the weight of a bushel" if "bushels" in (kind, other) else density
        raise ValueError(f"{unit} is per {kind} and {target} per {other}, and {density} is not known")
    return source.value / result.value * (other_size / size)


def _known_unit(text: str) -> PriceUnit:
    if parsed := parse_unit(text):
        return parsed
    ton = "; a ton is short (short ton) or metric (mt)" if "ton" in text.lower() else ""
    raise ValueError(f"the unit {text!r} is not known{ton}" if text else "a unit is not stated")

"""The legs of a spread: a formula such as `CRACK=2*GASOLINE+HEATOIL-3*WTI`, a calendar spread, or a usual spread.

Nothing here imports torch, so that a command can reject a formula at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from torchcommodity.data._core.errors import DataError

GRAMMAR = (
    "NAME=2*GASOLINE+HEATOIL-3*WTI, BRENT-WTI, CL1-CL2, or one of {names}; a symbol with + - * or spaces is quoted: "
    "'EUR-USD'"
)
_TERM = re.compile(
    r"\s*(?P<sign>[+-])?\s*(?:(?P<weight>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*\*\s*)?"
    r"(?:'(?P<single>[^']+)'|\"(?P<double>[^\"]+)\"|(?P<plain>[^\s+*'\"-]+))\s*"
)
_YAHOO = re.compile(r"F\s*(?:[+-]|$)")  # after the first `=` of CL=F-BZ=F, which has no name
_CALENDAR = re.compile(r"(?P<root>.*\D)(?P<near>[1-9][0-9]?)-(?P=root)(?P<far>[1-9][0-9]?)")


@dataclass(frozen=True)
class Leg:
    """One price of a spread.

    Args:
        symbol: of the price; in a usual spread the product code, a key of `CONTRACTS`.
        weight: units of it in one unit of the spread; negative where it is sold.
        unit: of the price that the weight multiplies; "" = that of the spread.
    """

    symbol: str
    weight: float
    unit: str = ""


@dataclass(frozen=True)
class UsualSpread:
    """A spread with a name in the market.

    Args:
        legs: their symbols are product codes.
        unit: of the spread.
        title: what it is.
        source: where its formula is published.
    """

    legs: tuple[Leg, ...]
    unit: str
    title: str
    source: str


@dataclass(frozen=True)
class SpreadFormula:
    """A spread as it is written.

    Args:
        name: symbol of the spread.
        legs: symbol -> weight.
        usual: the usual spread of this name, whose legs are product codes; else None.
        calendar: root, near and far month of a text that may be a calendar spread, such as ("CL", 1, 2); else None.
    """

    name: str
    legs: dict[str, float]
    usual: UsualSpread | None = None
    calendar: tuple[str, int, int] | None = None


_CME_CRACK = "CME Group, Introduction to Crack Spreads"
_EIA_CRACK = "EIA, An introduction to crack spreads (https://www.eia.gov/todayinenergy/detail.php?id=1630)"
_CRUSH = "CME Group, Soybean Crush Reference Guide: meal ($/short ton) x .022 + oil (¢/lb) x .11 - soybeans ($/bu)"

USUAL_SPREADS: dict[str, UsualSpread] = {
    "crack-3-2-1": UsualSpread(
        (Leg("RB", 2 / 3), Leg("HO", 1 / 3), Leg("CL", -1)), "$/bbl",
        "two barrels of gasoline and one of heating oil less three of crude oil, per barrel of crude oil", _EIA_CRACK,
    ),
    "crack-gasoline": UsualSpread(
        (Leg("RB", 1), Leg("CL", -1)), "$/bbl", "a barrel of gasoline less one of crude oil", _CME_CRACK,
    ),
    "crack-heating-oil": UsualSpread(
        (Leg("HO", 1), Leg("CL", -1)), "$/bbl", "a barrel of heating oil less one of crude oil", _CME_CRACK,
    ),
    "crush-soybean": UsualSpread(
        (Leg("SM", 44, "$/lb"), Leg("BO", 11, "$/lb"), Leg("S", -1)), "$/bu",
        "44 lb of meal and 11 lb of oil less the bushel of soybeans that gives them (60 lb; 5 lb are hulls and waste)",
        _CRUSH,
    ),
}  # fmt: skip

# symbols of the product where no contract says so, besides the codes of the exchange and of Yahoo
PRODUCT_SYMBOLS = {
    "CL": ("WTI", "CRUDE", "CRUDE_OIL_WTI", "WTI_SPOT"),
    "RB": ("GASOLINE", "RBOB", "GASOLINE_NYH"),
    "HO": ("HEATOIL", "HEATING_OIL", "ULSD", "HEATING_OIL_NYH"),
    "S": ("SOYBEAN", "SOYBEANS"),
    "SM": ("SOYMEAL", "SOYBEAN_MEAL"),
    "BO": ("SOYOIL", "SOYBEAN_OIL"),
}


def parse_spread(text: str) -> SpreadFormula:
    """Parse a spread: `NAME=FORMULA`, a formula, which is its own name, or the name of a usual spread.

    A formula is a sum of symbols with weights: `2*GASOLINE+HEATOIL-3*WTI`. `NAME=crack-3-2-1` is a usual spread under
    another name.

    Raises:
        DataError: another text.

    >>> parse_spread("CRACK=2*GASOLINE+HEATOIL-3*WTI").legs
    {'GASOLINE': 2.0, 'HEATOIL': 1.0, 'WTI': -3.0}
    >>> parse_spread("CL1-CL2").calendar, parse_spread("crack-3-2-1").usual.unit
    (('CL', 1, 2), '$/bbl')
    """
    name, equals, formula = (part.strip() for part in text.partition("="))
    if not equals or set("+*'\"") & set(name) or _YAHOO.match(formula):
        name, formula = "", text.strip()
    if usual := USUAL_SPREADS.get(formula.lower()):
        return SpreadFormula(name or formula.lower(), {}, usual)
    legs: dict[str, float] = {}
    end = 0
    while end < len(formula) or not legs:
        term = _TERM.match(formula, end)
        if term is None or (legs and not term["sign"]):
            raise DataError(f"spread: expected {grammar()}; got {text!r}")
        symbol = term["single"] or term["double"] or term["plain"]
        if symbol in legs:
            raise DataError(f"spread: expected each leg once; got {symbol!r} twice in {text!r}; add its weights")
        legs[symbol] = float(term["weight"] or 1) * (-1 if term["sign"] == "-" else 1)
        end = term.end()
    calendar = _CALENDAR.fullmatch(formula.replace(" ", ""))
    months = None if calendar is None else (calendar["root"], int(calendar["near"]), int(calendar["far"]))
    check_weights(legs)
    return SpreadFormula(name or format_formula(legs), legs, None, months)


def check_weights(legs: Mapping[str, float]) -> None:
    """Raise a `DataError` unless there are two legs, with weights that are finite and not zero."""
    if len(legs) < 2:
        got = ", ".join(legs) or "none"
        raise DataError(f"spread: expected at least two legs, or one of {', '.join(USUAL_SPREADS)}; got {got}")
    check_numbers("weights", legs)


def check_numbers(argument: str, numbers: Mapping[str, float]) -> None:
    """Raise a `DataError` unless the numbers are finite and not zero."""
    for symbol, number in numbers.items():
        if not isfinite(number) or number == 0:
            raise DataError(f"spread: expected {argument} that are finite and not zero; got {number:g} of {symbol!r}")


def format_formula(legs: Mapping[str, float]) -> str:
    """A formula that `parse_spread` reads; it begins with a leg that is bought, if there is one.

    >>> format_formula({"GASOLINE": 2, "HEATOIL": 1, "WTI": -3})
    '2*GASOLINE+HEATOIL-3*WTI'
    """
    words: list[str] = []
    first = next((symbol for symbol, weight in legs.items() if weight > 0), "")
    for symbol, weight in sorted(legs.items(), key=lambda leg: leg[0] != first):
        name = symbol if re.fullmatch(r"[^\s+*'\"-]+", symbol) else f"'{symbol}'"
        factor = "" if abs(weight) == 1 else f"{abs(weight):.10g}*"
        words.append(f"{'-' if weight < 0 else '+' if words else ''}{factor}{name}")
    return "".join(words)


def grammar() -> str:
    """What a spread may be, for messages and help texts."""
    return GRAMMAR.format(names=", ".join(USUAL_SPREADS))

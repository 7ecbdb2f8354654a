"""Decimal marks and thousands separators, decided from all price columns of a table."""

import re
from collections.abc import Sequence

from torchcommodity.data._sources.columns.cells import MISSING, parse_price

SPACES = "' \u00a0\u202f\u2019"  # thousands separators that are never decimal marks
_NUMBER = {
    mark: re.compile(
        rf"[+-]?(?:[0-9]{{1,3}}(?:([{other}{SPACES}])[0-9]{{3}})(?:\1[0-9]{{3}})*|[0-9]*)(?:[{mark}][0-9]*)?(?:[eE][+-]?[0-9]+)?",
        re.ASCII,
    )
    for mark, other in ((".", ","), (",", "."))
}
_DIGITS = rf"[+-]?[0-9.,{SPACES}]*[0-9][0-9.,]*"
_SIGN = "[$€£¥]|USD|EUR|GBP|JPY|CNY|CHF|AUD|CAD|INR|BRL|RUB"
_WITH_CURRENCY = re.compile(rf"[-+(]*(?:({_SIGN}) ?{_DIGITS}|{_DIGITS}[ \u00a0]?({_SIGN}))\)?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_THREE_DIGITS = re.compile("[+-]?[1-9][0-9]{2}")
_MARKED = re.compile(rf"[+-]?[0-9.,{SPACES}]+(?:[eE][+-]?[0-9]+)?", re.ASCII)


def decimal_evidence(cell: str) -> str:
    """The decimal mark that a number proves, or "": 1.234 and 1,234 prove nothing.

    >>> [decimal_evidence(cell) for cell in ("1.234,50", "61,17", "1,234,567", "1,234")]
    [',', ',', '.', '']
    """
    cell = re.sub("[eE].*", "", cell.strip().replace("\u2212", "-"))
    marks = re.sub(r"[^.,]", "", cell)
    if not marks or not _MARKED.fullmatch(cell) or not any(map(str.isdigit, cell)):
        return ""
    last = marks[-1]
    if len(set(marks)) == 2:
        return last
    if len(marks) > 1:
        return "," if last == "." else "."
    before, after = re.sub(r"[+-]", "", cell).split(last)
    is_group = len(after) == 3 and 1 <= len(before) <= 3 and before != "0"
    return "" if is_group else last


def grouped_by_points(cells: Sequence[str]) -> str:
    """A cell whose point may separate thousands: all have three digits after it, and a number of three has none.

    >>> grouped_by_points(["985", "1.021"]), grouped_by_points(["2.050", "1.985"]), grouped_by_points(["985", "1.02"])
    ('1.021', '', '')
    """
    first = next((cell for cell in cells if "." in cell), "").strip()
    if not _GROUPED.fullmatch(first) or not any(_THREE_DIGITS.fullmatch(cell.strip()) for cell in cells):
        return ""
    return first if all(_GROUPED.fullmatch(cell.strip()) for cell in cells if "." in cell) else ""


def could_prove_another(cells: Sequence[str], mark: str) -> bool:
    """Whether a cell may prove another decimal mark than this one; False without a look at every cell.

    >>> could_prove_another(["61,17", "1234,5"], ","), could_prove_another(["61,17", "61.17"], ",")
    (False, True)
    """
    text = ";".join(cells)
    return ("." if mark == "," else ",") in text or bool(re.search(rf"[{mark}][0-9]*[{mark}]", text))


def with_point(cells: list[str], mark: str) -> list[str]:
    """The cells with a decimal point for this mark and without thousands separators; "" = as they are.

    Raises:
        ValueError: a cell that is not a number with this mark.

    >>> with_point(["61,17", "1.234,5", "1.234"], ",")
    ['61.17', '1234.5', '1234.0']
    """
    if mark != ",":
        return cells
    return [repr(parse_number(cell, mark)) if "." in cell else cell.replace(",", ".") for cell in cells]


def has_comma(cells: Sequence[str]) -> bool:
    """Whether a number of these has a comma."""
    return "," in "".join(cells) and any("," in cell and _MARKED.fullmatch(cell.strip()) for cell in cells)


def without_currency(cells: list[str]) -> list[str]:
    """The cells without the currency that the first number has; another one in the column is left, and is no price.

    >>> without_currency(["$78.20", "-$36.98"]), without_currency(["78,20 EUR", ""])
    (['78.20', '-36.98'], ['78,20', ''])
    """
    first = next((cell for cell in cells if any(map(str.isdigit, cell))), "").strip()
    if not (match := _WITH_CURRENCY.fullmatch(first)):
        return cells
    currency = match[1] or match[2]
    return [cell.replace(currency, "", 1).strip() for cell in cells]


def parse_number(text: str, decimal: str) -> float:
    """Parse a price with this decimal mark and with or without thousands separators in groups of three.

    A price in parentheses is negative, as accountants write it.

    Raises:
        ValueError: another text; the message continues "expected ...".

    >>> parse_number("1.234,50", ","), parse_number("1 234", "."), parse_number("(37.63)", ".")
    (1234.5, 1234.0, -37.63)
    """
    cell = re.sub(r"^\(([0-9].*)\)$", r"-\1", text.strip().replace("\u2212", "-"))
    if cell.lower() in MISSING or not _MARKED.fullmatch(cell):
        return parse_price(cell)
    if not (match := _NUMBER[decimal].fullmatch(cell)):
        words = "comma" if decimal == "," else "point"
        raise ValueError(f"a price with a decimal {words} and thousands in groups of three; got {cell[:60]!r}")
    return parse_price(cell.replace(match[1] or "\0", "").replace(decimal, "."))

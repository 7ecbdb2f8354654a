"""Prices as text: with which decimal mark and thousands separators a cell is a number, and why another is none."""

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.prices import Array

MISSING = frozenset(
    {"", ".", "..", "...", "\u2026", "nan", "<na>", "na", "n/a", "#n/a", "#n/a n/a", "null", "none", "nd"}
    | {"-", "--", "\u2013", "\u2014"}
)
SPACES = "' \u00a0\u202f\u2019"  # thousands separators that are never decimal marks

_NAN, _INF = float("nan"), float("inf")
_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GROUPED = re.compile(  # with thousands in groups of three, of one separator
    rf"[+-]?(?:[0-9]{{1,3}}(?:([,{SPACES}])[0-9]{{3}})(?:\1[0-9]{{3}})*|[0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"
)
_INDIAN = re.compile(r"[+-]?[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?")  # 1,03,824.00: lakhs and crores
_MARKED = re.compile(rf"[+-]?[0-9.,{SPACES}]+(?:[eE][+-]?[0-9]+)?")
_DIGITS = rf"[+-]?[0-9.,{SPACES}]*[0-9][0-9.,]*"
_SIGN = "[$€£¥₹₽₩₺]|USD|EUR|GBP|JPY|CNY|CHF|AUD|CAD|INR|BRL|RUB"
_WITH_CURRENCY = re.compile(rf"[-+(]*(?:({_SIGN}) ?{_DIGITS}|{_DIGITS}[ \u00a0]?({_SIGN}))\)?")
_GROUP_OF_THREE = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_THREE_DIGITS = re.compile("[+-]?[1-9][0-9]{2}")


class Parsed(NamedTuple):
    """The cells of a column as numbers or times.

    Args:
        values: `(R,)`; those of bad cells mean nothing.
        bad: `(R,)` mask of the cells that are no number or time.
        problem: what was expected and received in a bad row, as an error says it.
    """

    values: Array
    bad: Array
    problem: Callable[[int], str]


def to_number(text: str, mark: str = "") -> float:
    """The price in a cell, NaN = missing, infinity = no price.

    Args:
        text: the cell.
        mark: the decimal mark, "." or ",", of a number with or without thousands separators; a price in parentheses is
            negative, as accountants write it. "" = only a decimal point and no separators.

    >>> to_number("1.234,50", ","), to_number("1 234", "."), to_number("(37.63)", "."), to_number("1 234")
    (1234.5, 1234.0, -37.63, inf)
    >>> to_number("1,03,824.00", ".")  # lakhs
    103824.0
    """
    cell = text.strip()
    plain = _swap_marks(cell) if mark == "," else cell
    if _PLAIN.fullmatch(plain):
        return float(plain)
    cell = _signed(cell) if mark else cell
    if cell.lower() in MISSING:
        return _NAN
    number = _without_separators(cell, mark) if mark else None
    return _INF if number is None else to_number(number)


def is_number_text(text: str) -> bool:
    """Whether a cell is a number with one of the decimal marks, or a time of day.

    >>> is_number_text("2.073,40"), is_number_text("16.06.2025"), is_number_text("09:30")
    (True, False, True)
    """
    return bool(re.fullmatch("[0-9]+:[0-9:.]+", text)) or any(to_number(text, mark) != _INF for mark in ".,")


def to_numbers(cells: Sequence[str], mark: str = "") -> Array:
    """The prices `(R,)` in cells, NaN = missing, infinity = no price; see `to_number`."""
    plain = list(map(_swap_marks, cells)) if mark == "," else cells
    numbers, rest = list[float](), map(float, plain)
    while len(numbers) < len(plain):
        try:
            numbers.extend(rest)
        except ValueError:  # at a word, after the numbers before it
            numbers.append(_NAN)
    prices = np.fromiter(numbers, dtype=np.float64, count=len(numbers))
    others = np.isnan(prices)  # words; and float() reads underscores, and digits of other alphabets
    if "_" in (text := "".join(plain)) or not text.isascii():
        others |= [not text.isascii() or "_" in text for text in plain]
    number = cache(partial(to_number, mark=mark))  # few are different
    for row in np.flatnonzero(others).tolist():
        prices[row] = number(cells[row])
    return prices


def _swap_marks(cell: str) -> str:
    """A number with a decimal comma as one with a decimal point, and its points as commas."""
    return cell.replace(".", "\0").replace(",", ".").replace("\0", ",")


def price_problem(text: str, mark: str = "") -> str:
    """What was expected and received of a cell that is no price, to continue "expected ..."."""
    cell = text.strip()
    if mark:
        cell = _signed(cell)
        plain = _without_separators(cell, mark)
        if plain is None and _MARKED.fullmatch(cell):
            words = "comma" if mark == "," else "point"
            return f"a price with a decimal {words} and thousands in groups of three; got {cell[:60]!r}"
        cell = (cell if plain is None or not _MARKED.fullmatch(cell) else plain).strip()
    if _PLAIN.fullmatch(cell) or cell.lower().lstrip("+-") in ("inf", "infinity"):
        return f"a finite price; got {cell[:60]!r}"
    if re.fullmatch(r"[+-]?[0-9][0-9.,' \u00a0_]*", cell):
        return f"a price with a decimal point and no thousands separator or decimal comma; got {cell[:60]!r}"
    hint = "" if any(map(str.isdigit, cell)) else " (leave the cell empty where there is no price)"
    if re.fullmatch(r"#[A-Z0-9/]+[!?]|#N/A .*", cell):
        hint = " (an error of the spreadsheet; correct it there, or leave the cell empty)"
    elif re.fullmatch(r"[+-]?[0-9.,]+ ?%", cell):
        hint = " (a change in percent? read prices, or name their column with --column)"
    return f"a price; got {cell[:60]!r}{hint}"


def parse_prices(cells: Sequence[str], mark: str = "") -> Parsed:
    """The prices `(R,)` in cells, NaN = missing; see `to_number`.

    >>> parsed = parse_prices(["18.27", "NA", "n.a."])
    >>> parsed.values[:2].tolist(), parsed.bad.tolist(), parsed.problem(2)[:28]
    ([18.27, nan], [False, False, True], "expected a price; got 'n.a.'")
    """
    prices = to_numbers(cells, mark)
    return Parsed(prices, np.isinf(prices), lambda row: f"expected {price_problem(cells[row], mark)}")


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


def decimal_proofs(cells: Sequence[str], known: str = "") -> dict[str, int]:
    """The first row that proves each decimal mark, of those that may prove another than the `known` one.

    >>> decimal_proofs(["1,234", "61,17", "1.234,50", "61.17"])
    {',': 1, '.': 3}
    """
    rows: dict[str, int] = {}
    if known and not _could_prove_another(cells, known):
        return rows
    for row, cell in enumerate(cells):
        if (mark := decimal_evidence(cell)) and mark not in rows:
            rows[mark] = row
            if not _could_prove_another(cells, mark):
                break
    return rows


def grouped_by_points(cells: Sequence[str], dots: bool = False) -> str:
    """A cell whose point may separate thousands: all have three digits after it, and a number of three has none.

    Beside dates with dots, such as 04.03.2024, no number of three is needed: there 8.450 can be eight thousand.

    >>> grouped_by_points(["985", "1.021"]), grouped_by_points(["2.050", "1.985"]), grouped_by_points(["985", "1.02"])
    ('1.021', '', '')
    """
    first = next((cell for cell in cells if "." in cell), "").strip()
    is_group = dots or any(_THREE_DIGITS.fullmatch(cell.strip()) for cell in cells)
    if not is_group or not _GROUP_OF_THREE.fullmatch(first):
        return ""
    return first if all(_GROUP_OF_THREE.fullmatch(cell.strip()) for cell in cells if "." in cell) else ""


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


def _signed(cell: str) -> str:
    """A number with an ASCII sign in the place of a typographic minus or of parentheses."""
    return re.sub(r"^\(([0-9].*)\)$", r"-\1", cell.replace("\u2212", "-"))


def _without_separators(cell: str, mark: str) -> str | None:
    """A number with this decimal mark as one with a decimal point and no separators; None for other text."""
    if mark == "." and _INDIAN.fullmatch(cell):
        return cell.replace(",", "")
    match = _GROUPED.fullmatch(_swap_marks(cell) if mark == "," else cell)
    return None if match is None else match[0].replace(match[1] or "\0", "")


def _could_prove_another(cells: Sequence[str], mark: str) -> bool:
    """Whether a cell may prove another decimal mark than this one; False without a look at every cell."""
    text = ";".join(cells)
    return ("." if mark == "," else ",") in text or bool(re.search(rf"[{mark}][0-9]*[{mark}]", text))

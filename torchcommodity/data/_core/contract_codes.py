"""Codes of futures contracts as vendors write them: product and delivery month of `CLZ24`, `CL-2024Z`, `C H97`."""

import re
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.arrays import Months
from torchcommodity.data._core.contracts import CONTRACTS, MONTHS

# Codes of the electronic session where they differ from the exchange's own, which `CONTRACTS` has.
ELECTRONIC = {
    "ZC": "C", "ZW": "W", "KE": "KW", "ZO": "O", "ZR": "RR", "ZS": "S", "ZM": "SM", "ZL": "BO", "LE": "LC", "GF": "FC",
    "HE": "LH",
}  # fmt: skip
NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
FORMS = "CLZ24, CL Z24, CLZ4, CLZ2024, CL-2024Z, CL 2024-12 or 202412"

_YEAR = "[12][0-9]{3}|[0-9]{1,2}"
_MONTH = "0[1-9]|1[0-2]"
_ROOT = "[A-Z0-9]{0,6}?"
_OUTRIGHT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?P<root>[A-Z0-9]{{1,6}}) +)?(?P<name>{'|'.join(NAMES)})[A-Z]*[ -]?'?(?P<year>{_YEAR})",  # ZC DEC 24
        rf"(?P<root>{_ROOT})(?P<letter>[{MONTHS}])(?P<last>[0-9])\^(?P<decade>[0-9])",  # CLZ4^2, LSEG
        rf"(?P<root>{_ROOT})[ _-]*(?P<letter>[{MONTHS}])[ -]?(?P<year>{_YEAR})",  # CLZ24, C H97, CLZ4
        rf"(?P<root>{_ROOT}) *(?P<letter>[{MONTHS}])(?P<last>[0-9]) (?P<year>[0-9](?P=last))",  # HOQ8 08, Bloomberg
        rf"(?P<root>{_ROOT})[ _-]*(?P<year>[12][0-9]{{3}})[ -]?(?P<letter>[{MONTHS}])",  # CL-2024Z
        rf"(?:(?P<root>[A-Z][A-Z0-9]{{0,5}})[ _-]*)?(?P<year>[12][0-9]{{3}})-?(?P<month>{_MONTH})(?:00|-?01)?",
        rf"(?P<root>[A-Z]+) +FM(?P<letter>[{MONTHS}])00(?P<year>[0-9]{{2}})!",  # ICE Europe's raw symbols
    )
)
_COMBINED = re.compile(r".*[A-Z0-9][-:/+ ].*[0-9].*[-:/+].*|.+:.+|.*[0-9] ?[-/+] ?[A-Z].*|.*[0-9] [CP] ?[0-9.]+")
_PARENT = re.compile(r"[A-Z0-9]+(\.(FUT|OPT|[A-Z]\.[0-9]+)|=F)")
_DECORATION = re.compile(r"^(?:[A-Z]{2,8}:)(?=[A-Z0-9]+$)|\.[A-Z]{1,4}$| COMDTY$| COMB$| ?\(.*\)$")  # CLZ24.NYM


class ContractCode(NamedTuple):
    """A contract code before its year is completed.

    Args:
        root: the product as written, "" if the code has none.
        month: 1 to 12.
        year: as written.
        digits: of the year: 1, 2 or 4.
    """

    root: str
    month: int
    year: int
    digits: int


def parse_contract(text: str) -> ContractCode | None:
    """Parse the code of one contract; None for a spread, an option or a combination of contracts.

    Raises:
        ValueError: another text; the message continues "expected ...".

    >>> parse_contract("CLZ24"), parse_contract("C H97").root, parse_contract("CLF4-CLG4")
    (ContractCode(root='CL', month=12, year=24, digits=2), 'C', None)
    """
    code = text.strip().upper()
    if _PARENT.fullmatch(code):
        raise ValueError(f"the code of one contract, such as {FORMS}; got {text!r}, which stands for many")
    plain = _DECORATION.sub("", code)
    for pattern in _OUTRIGHT:
        if match := pattern.fullmatch(plain):
            fields = match.groupdict()
            year = fields.get("year") or _full_year(fields["decade"], fields["last"])
            return ContractCode(fields.get("root") or "", _month(fields), int(year), len(year))
    if _COMBINED.fullmatch(code):
        return None
    hint = f" (delivery months are {MONTHS})" if re.fullmatch(r"[A-Z0-9]*[A-Z][0-9]{1,4}", plain) else ""
    raise ValueError(f"the code of one contract, such as {FORMS}{hint}; got {text!r}")


def delivery_months(codes: list[ContractCode], days: Months) -> Months:
    """Delivery months `(R,)` of codes quoted on `days (R,)`.

    A year of one digit is the first such year whose delivery month is not before the day; one of two digits is the
    nearest to the day.

    >>> delivery_months([parse_contract("CLZ4")], np.array(["2014-12-01"], dtype="datetime64[D]")).astype(str).tolist()
    ['2014-12']
    """
    numbers: dict[ContractCode, int] = {}  # few codes, many rows
    rows = np.fromiter((numbers.setdefault(code, len(numbers)) for code in codes), np.int64, len(codes))
    month, year, digits = np.array([code[1:] for code in numbers], dtype=np.int64).T[:, rows]
    quoted = days.astype("datetime64[M]").astype(np.int64) + 12 * 1970
    today = quoted // 12
    decade = today - (today - year) % 10  # the latest year that ends in the digit
    decade += 10 * (12 * decade + month - 1 < quoted)
    century = year + 100 * np.round((today - year) / 100).astype(np.int64)
    full = np.select([digits == 1, digits == 2], [decade, century], year)
    months: Months = (12 * (full - 1970) + month - 1).astype("datetime64[M]")
    return months


def _month(fields: dict[str, str]) -> int:
    if "letter" in fields:
        return MONTHS.index(fields["letter"]) + 1
    return NAMES.index(fields["name"]) + 1 if "name" in fields else int(fields["month"])


def _full_year(decade: str, last: str) -> str:
    return ("20" if decade < "6" else "19") + decade + last


def find_product(code: str) -> str | None:
    """The key of `CONTRACTS` for a code of the exchange or of its electronic session, or None.

    >>> find_product("ZC"), find_product("CL"), find_product("XX")
    ('C', 'CL', None)
    """
    code = ELECTRONIC.get(code.upper(), code.upper())
    return code if code in CONTRACTS else None

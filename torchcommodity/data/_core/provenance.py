"""Origin of prices: symbols, units and provenance, accepted texts of untrusted sources, marks of generated prices."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timezone
from typing import Any

import torch

from torch_opkit import MetadataTensor
from torch_opkit.arguments import current_operation
from torchcommodity.data._core.errors import DataError, Finding

SYNTHETIC = "synthetic"
PREFIX = f"{SYNTHETIC}:"
MAX_NAME = 128  # characters of a symbol or unit
MAX_TEXT = 2_000  # characters of a publisher, license, location or series
FORMULA_STARTS = ("=", "+", "-", "@")
_USUAL = re.compile(r"\^?[A-Za-z0-9][A-Za-z0-9 ^=&._-]{0,60}(?<! )")  # nearly all symbols: one look instead of nine
# letters and marks without a glyph, which str.isprintable accepts: two names with and without them look the same
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
NAMES = """
    SPX SP500 GSPC INX NDX NASDAQ NASDAQ100 NASDAQCOM IXIC DJI DJIA RUT RUSSELL2000 DAX GDAXI CAC40 FCHI FTSE FTSE100
    UKX SX5E STOXX50 STOXX50E EUROSTOXX50 N225 NKY NIKKEI NIKKEI225 TOPIX HSI HANGSENG KOSPI ASX200 AXJO SENSEX NIFTY
    NIFTY50 IBOV BVSP MSCIWORLD
"""
INDICES = frozenset(NAMES.split())
FUTURES = frozenset({"ES=F", "NQ=F", "YM=F", "RTY=F"})  # Yahoo's symbols; the letters alone may be anything
NOT_STATED = "not stated"


class SyntheticTensor(MetadataTensor):
    """A tensor of generated values; results of torch functions that involve it are SyntheticTensors too.

    Only leaving torch (`.numpy()`, `.tolist()`) or `.plain()` removes the marker. Writing synthetic values into an
    ordinary tensor raises an error.

    Args:
        data: anything `torch.as_tensor` accepts, of any shape.
        metadata: any values, by name.

    Raises:
        ValueError: generated values are written into an ordinary tensor.

    >>> import torch
    >>> mean = torch.tensor([0.01, -0.02]) + SyntheticTensor([0.00, 0.01])
    >>> type(mean[:1].clone()).__name__
    'SyntheticTensor'
    """

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        outputs = [args[0]] if args and _is_inplace(func) else []
        outputs += [out for out in [(kwargs or {}).get("out")] if out is not None]
        if any(isinstance(x, torch.Tensor) and not isinstance(x, SyntheticTensor) for x in outputs):
            raise ValueError(
                f"{func.__name__}: expected to write synthetic values into a SyntheticTensor; got a tensor of real ones"
            )
        return super().__torch_function__(func, types, args, kwargs)


def synthetic_symbol(symbol: str) -> str:
    """Symbol of the generated prices of `symbol` in tables.

    >>> synthetic_symbol("WTI"), synthetic_symbol("synthetic:WTI")
    ('synthetic:WTI', 'synthetic:WTI')
    """
    return symbol if symbol.startswith(PREFIX) else PREFIX + symbol


def is_synthetic(value: Any) -> bool:
    """Whether a tensor, symbol, panel, DataFrame or set of scenarios is or contains generated data.

    >>> from torchcommodity import data
    >>> is_synthetic(data.embedded()), is_synthetic("synthetic:WTI"), is_synthetic(SyntheticTensor([0.01]))
    (False, True, True)
    """
    if isinstance(value, str):
        return value.startswith(PREFIX)
    if isinstance(value, torch.Tensor):
        return isinstance(value, SyntheticTensor)
    if hasattr(value, "columns"):
        return any(is_synthetic(str(name)) for name in value.columns)
    return bool(getattr(value, "synthetic", False))


def check_not_synthetic(*values: Any) -> None:
    """Check that prices are real: training and scoring reject generated prices.

    The error names the function that checks its arguments, see `opkit.arguments.operation`.

    Raises:
        ValueError: one of `values` is synthetic.

    >>> from torch_opkit.arguments import operation
    >>> with operation("fit"):
    ...     check_not_synthetic(SyntheticTensor([0.01]))
    Traceback (most recent call last):
    ...
    ValueError: fit: expected real prices; got synthetic ones, which training and scoring do not accept
    """
    if any(is_synthetic(value) for value in values):
        got = "synthetic ones, which training and scoring do not accept"
        raise ValueError(f"{current_operation('check_not_synthetic')}: expected real prices; got {got}")


def _is_inplace(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__")
    return inplace or name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__invert__"))


def check_several(operation: str, symbols: object) -> None:
    """Reject one text where several symbols are expected: its characters would be taken for symbols.

    >>> check_several("read", "WTI")
    Traceback (most recent call last):
    TypeError: read: symbols must be a list of names, such as ['WTI']; got 'WTI'
    """
    if isinstance(symbols, str):
        raise TypeError(f"{operation}: symbols must be a list of names, such as {[symbols]}; got {symbols!r}")


def symbol_problem(symbol: object) -> str:
    """What a symbol must be and is not, to continue "expected a symbol ..."; "" for a good one.

    A symbol has 1 to 128 visible characters, among them a letter or a digit, and no space at either end. It does not
    begin with `= + - @`, which a spreadsheet would run, has no `<`, `>` or backslash, and is not a path: no part
    between slashes is empty, `.` or `..`. All other characters are accepted, of any alphabet, and escaped at output.

    >>> [symbol_problem(symbol) for symbol in ("CL=F", "^GSPC", "S&P 500", "Crude oil, Brent", "EUR/USD", "黄金")]
    ['', '', '', '', '', '']
    >>> symbol_problem("=cmd()"), symbol_problem("../../etc/passwd")
    ('that does not begin with = + - or @', 'that is not a path')
    """
    if isinstance(symbol, str) and _USUAL.fullmatch(symbol):
        return ""
    if problem := unit_problem(symbol):
        return problem
    text = str(symbol)
    if not any(map(str.isalnum, text)):
        return "with a letter or a digit"
    if {"", ".", ".."} & set(text.split("/")):
        return "that is not a path"
    return ""


def unit_problem(unit: object) -> str:
    """Like `symbol_problem`, for a unit: `$/bbl`, `%` and "" are units too."""
    if not isinstance(unit, str):
        return "that is text"
    if len(unit) > MAX_NAME:
        return f"of at most {MAX_NAME} characters"
    if unit != unit.strip():
        return "without spaces at its ends"
    if not unit.isprintable() or _INVISIBLE.search(unit):
        return "of visible characters"
    if set("<>\\") & set(unit):
        return "without < > and backslash"
    if len(unit) > 1 and unicodedata.normalize("NFKC", unit[0]).startswith(FORMULA_STARTS):
        return "that does not begin with = + - or @"
    return ""


def check_symbol(symbol: str, label: str) -> None:
    """Raise a `DataError` for a symbol that is not accepted; `label` opens the message: "prices.csv, line 7"."""
    if problem := symbol_problem(symbol):
        raise DataError(f"{label}: expected a symbol {problem}; got {repr(symbol)[:80]}; rename it")


def check_names(symbols: Iterable[str], units: Iterable[str]) -> None:
    """Raise a `DataError` for a symbol or unit of a panel that is not accepted."""
    for symbol in symbols:
        check_symbol(symbol, "panel")
    for unit in units:
        if problem := unit_problem(unit):
            raise DataError(f"panel: expected a unit {problem}; got {repr(unit)[:80]}")


def text_problem(text: object) -> str:
    """Like `symbol_problem`, for a publisher and other descriptions: printable text of at most 2,000 characters."""
    if not isinstance(text, str) or not text.isprintable():
        return "of printable characters"
    return f"of at most {MAX_TEXT} characters" if len(text) > MAX_TEXT else ""


def equity_indices(symbols: Iterable[str]) -> tuple[str, ...]:
    """The symbols that are named like equity indices, whatever their case and punctuation.

    >>> equity_indices(["WTI", "^GSPC", "S&P 500", "ES=F"])
    ('^GSPC', 'S&P 500', 'ES=F')
    """
    return tuple(s for s in symbols if s.upper() in FUTURES or "".join(filter(str.isalnum, s)).upper() in INDICES)


@dataclass(frozen=True)
class Provenance:
    """Source of one column of prices.

    Args:
        publisher: who published the prices.
        location: address or file they were read from.
        license: terms of use, or "not stated".
        retrieved: time of retrieval, ISO 8601 in UTC.
        sha256: checksum of the bytes received.
        series: the publisher's name for the series.
        credit: line that has to be shown wherever the prices are, or "".

    Raises:
        DataError: a field is not one line of printable text.

    >>> Provenance("EIA", "https://api.eia.gov/v2/", "public", "2024-01-02T00:00:00Z", "", "PET.RWTC.D").publisher
    'EIA'
    """

    publisher: str
    location: str
    license: str
    retrieved: str
    sha256: str
    series: str
    credit: str = ""

    def __post_init__(self) -> None:
        for field, text in zip(fields(self), astuple(self)):
            if problem := text_problem(text):
                raise DataError(f"provenance: expected a {field.name} {problem}; got {repr(text)[:80]}")

    @property
    def is_stated(self) -> bool:
        """Whether a publisher is named."""
        return self.publisher not in ("", NOT_STATED)


def drop_origin_findings(findings: Iterable[Finding], records: Iterable[Provenance]) -> tuple[Finding, ...]:
    """The findings without "origin not stated", if every record names a publisher."""
    is_stated = all(record.is_stated for record in records)
    return tuple(finding for finding in findings if not (is_stated and finding.kind == "origin not stated"))


def utc_now() -> str:
    """The current time, ISO 8601 in UTC to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

"""What the columns of a table mean, from their names alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from torchcommodity.data._errors import DataError, Finding, found

DATES = ("date", "datetime", "timestamp", "ds", "observation_date")
SYMBOLS = ("symbol", "unique_id", "ticker", "id")
PRICES = ("close", "price", "value", "settle", "y")
BARS = {"open", "high", "low"}


@dataclass(frozen=True)
class Layout:
    """Places of the columns: a long table has a symbol and one price column, a wide one a price column a symbol.

    A long table of nearby contracts has their number besides, `nth`.
    """

    date: int
    prices: tuple[int, ...]
    names: tuple[str, ...]
    symbol: int | None = None
    unit: int | None = None
    source: int | None = None
    nth: int | None = None
    findings: tuple[Finding, ...] = ()


def layout(header: Sequence[str], place: str, *, curve: bool = False) -> Layout:
    """The layout of a table with these column names; `place` ("prices.csv, line 1") opens the messages.

    With `curve` a long table with a column `nth` is asked for; without, that column is one to ignore.

    >>> layout(["date", "WTI", "CORN"], "prices.csv, line 1").names
    ('WTI', 'CORN')
    """
    names = [name.strip() for name in header]
    _check(names, place)
    lower = [name.lower() for name in names]
    date = _one(lower, DATES, place)
    if curve or any(name in SYMBOLS for name in lower):
        return _long(names, lower, date, place, _one(lower, ("nth",), place) if curve else None)
    columns = tuple(column for column in range(len(names)) if column != date)
    if not columns:
        raise DataError(f"{place}: expected a price column beside {names[date]!r}; got none")
    if BARS.issubset(lower):
        raise DataError(
            f"{place}: expected one price a symbol (date,symbol,close or date and a column a symbol); "
            f"got bars {','.join(names)}"
        )
    generic = [found("generic name", names[c], line=1, value=names[c]) for c in columns if lower[c] in PRICES]
    return Layout(date, columns, tuple(names[c] for c in columns), findings=tuple(generic))


def _long(names: list[str], lower: list[str], date: int, place: str, nth: int | None) -> Layout:
    symbol, price = _one(lower, SYMBOLS, place), _one(lower, PRICES, place)
    unit = lower.index("unit") if "unit" in lower else None
    source = lower.index("source") if "source" in lower else None
    rest = [name for column, name in enumerate(names) if column not in (date, symbol, price, unit, source, nth)]
    ignored = tuple(found("ignored column", line=1, value=name) for name in rest)
    return Layout(date, (price,), (names[price],), symbol, unit, source, nth, ignored)


def _check(names: list[str], place: str) -> None:
    if "" in names:
        raise DataError(f"{place}: expected a name for every column; got none for column {names.index('') + 1}")
    if odd := [name for name in names if not name.isprintable()]:
        raise DataError(f"{place}: expected printable column names; got {odd[0]!r}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{place}: expected distinct column names; got {name!r} twice")
        seen.add(name)


def _one(lower: list[str], known: tuple[str, ...], place: str) -> int:
    places = [column for column, name in enumerate(lower) if name in known]
    if len(places) != 1:
        got = ", ".join(lower[c] for c in places) or "none among " + ", ".join(lower[:8])
        raise DataError(f"{place}: expected one column {' or '.join(known)}; got {got}")
    return places[0]

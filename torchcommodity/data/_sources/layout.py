"""Roles of the columns of a table, by their names."""

from collections.abc import Sequence

from torchcommodity.data._core.errors import DataError, ignored_columns, make_finding
from torchcommodity.data._core.names import check_symbol
from torchcommodity.data._sources.roles import Layout

DATES = ("date", "datetime", "timestamp", "ds", "observation_date")
SYMBOLS = ("symbol", "unique_id", "ticker", "id")
PRICES = ("close", "price", "value", "settle", "y")
BARS = {"open", "high", "low"}


def detect_layout(header: Sequence[str], label: str) -> Layout:
    """Detect the layout of a table from its column names, in upper or lower case.

    Args:
        header: the column names.
        label: opens the error messages, such as "prices.csv, line 1".

    Raises:
        DataError: a role without a column or with several, or ambiguous columns.

    >>> detect_layout(["date", "WTI", "CORN"], "prices.csv, line 1").names
    ('WTI', 'CORN')
    """
    names = [name.strip() for name in header]
    _check_names(names, label)
    lower = [name.lower() for name in names]
    date = _find_one(lower, DATES, label)
    if any(name in SYMBOLS for name in lower):
        return _long_layout(names, lower, date, label)
    columns = tuple(column for column in range(len(names)) if column != date)
    if not columns:
        raise DataError(f"{label}: expected a price column besides {names[date]!r}; got none")
    if BARS.issubset(lower):
        raise DataError(
            f"{label}: expected one price per symbol (date,symbol,close or date and a column per symbol); "
            f"got bars {','.join(names)}"
        )
    for column in columns:
        check_symbol(names[column], label)
    generic = [make_finding("generic name", names[c], line=1, value=names[c]) for c in columns if lower[c] in PRICES]
    return Layout(date, columns, tuple(names[c] for c in columns), findings=tuple(generic))


def _long_layout(names: list[str], lower: list[str], date: int, label: str) -> Layout:
    symbol, price = _find_one(lower, SYMBOLS, label), _find_one(lower, PRICES, label)
    unit = lower.index("unit") if "unit" in lower else None
    source = lower.index("source") if "source" in lower else None
    others = [name for column, name in enumerate(names) if column not in (date, symbol, price, unit, source)]
    return Layout(date, (price,), (names[price],), symbol, unit, source, findings=ignored_columns(others))


def _check_names(names: list[str], label: str) -> None:
    if "" in names:
        raise DataError(f"{label}: expected a name for every column; got none for column {names.index('') + 1}")
    if unprintable := [name for name in names if not name.isprintable()]:
        raise DataError(f"{label}: expected printable column names; got {unprintable[0]!r}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{label}: expected distinct column names; got {name!r} twice")
        seen.add(name)


def _find_one(lower: list[str], known: tuple[str, ...], label: str) -> int:
    """The column with one of these names; `symbol` is preferred to an `id` or `ticker` beside it."""
    columns = [column for column, name in enumerate(lower) if name in known]
    if known is SYMBOLS and "symbol" in lower:
        columns = [column for column in columns if lower[column] == "symbol"]
    if len(columns) != 1:
        got = ", ".join(lower[c] for c in columns) or "none among " + ", ".join(lower[:8])
        raise DataError(f"{label}: expected one column {' or '.join(known)}; got {got}")
    return columns[0]

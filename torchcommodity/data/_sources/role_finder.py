"""`RoleFinder`: which column of a table is the date, the symbol, the price: as stated, by names, by the cells."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import Any, cast

import numpy as np

from torchcommodity.data._core.errors import DataError, Finding, ignored_columns, make_finding, summarize_names
from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.columns.numbers import decimal_proofs
from torchcommodity.data._sources.evidence import (
    COUNT,
    FEW_MISSING,
    MOST_FIELDS,
    Bars,
    amount_words,
    cell_values,
    find_bars,
    is_change_of,
    is_deviation_of,
    looks_like_changes,
    not_prices,
    positive_rows,
)
from torchcommodity.data._sources.formats import (
    ADJUSTED,
    CLOSES,
    DATE_COLUMNS,
    DATES,
    FIELDS,
    HIGHS,
    LOWS,
    OPENS,
    OTHER_SYMBOLS,
    PERIOD_COLUMNS,
    PRICES,
    SETTLES,
    SYMBOLS,
    Format,
    is_bar,
    is_never_price,
    key,
)
from torchcommodity.data._sources.headers import symbol_of_file
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.tables.table import Table

PERIODS = ("year", "quarter", "month", "week", "time", "period", "obs", "jahr", "quartal", "monat", "woche")
BAR_NAMES = (*OPENS, *HIGHS, *LOWS)
_PRICE = re.compile(r"\b(price|close|settle|last|mid|preis|prix|precio|preco|prezzo|kurs|cena|value|y)\b")
_OTHER = re.compile(
    r"\b(date|code|id|no|min|max|high|low|open(?! interest)|prev|previous|bid|ask|offer|forecast|adj)\b"
)
ROW_NUMBERS = ("index", "#", "no", "nr", "row", "id", "level 0")


@dataclass(frozen=True)
class Layout:
    """Column numbers of a table.

    Args:
        date: the date column.
        prices: the price column of a long table; one column per symbol of a wide one.
        names: their names.
        symbol: the symbol column; None = a wide table.
        unit: the unit column of a long table, if any.
        source: the source column of a long table, if any.
        nth: the contract number in a long table of nearby contracts.
        bars: open, high, low and close of one series, where the numbers say so.
        findings: ignored columns and generic names.
    """

    date: int
    prices: tuple[int, ...]
    names: tuple[str, ...]
    symbol: int | None = None
    unit: int | None = None
    source: int | None = None
    nth: int | None = None
    bars: Bars | None = None
    findings: tuple[Finding, ...] = ()


class RoleFinder:
    """Finds the roles of the columns of a table with one row of names; columns are numbers, `keys` their names."""

    def __init__(self, table: Table, record: Format, options: ReadOptions) -> None:
        self.table, self.record, self.options = table, record, options
        self.columns, self.keys = table.columns, tuple(map(key, table.names))
        self._known_values: dict[int, Array] = {}
        self._known_bars: list[Any] = []

    def find_layout(self) -> Layout:
        """The layout of the table.

        Raises:
            DataError: no column of dates or several; no column of prices, or several that could be meant.
        """
        date = self._find_date()
        rest = [n for n in range(len(self.columns)) if n != date and not self._is_row_number(n)]
        if not rest:
            raise self._error(f"a price column besides {self.table.names[date]!r}", "none")
        symbol, is_wide = self._find_symbol(date, rest), self.options.format == "wide"
        if symbol is not None and not is_wide:
            rest.remove(symbol)
            units = self._named(("unit", "units"), rest) or self._named(("currency",), rest)
            sources, numbers = self._named(("source",), rest), self._named(("nth",), rest)
            unit, source, nth = (next(iter(columns), None) for columns in (units, sources, numbers))
            values = [n for n in rest if n not in (unit, source)]
            price, findings, bars = self.find_price(values)
            findings += self._ignored((n for n in values if n not in (price, nth)), price, bars)
            name = self.table.names[price]
            return Layout(date, (price,), (name,), symbol, unit, source, nth, bars, findings)
        # one series that the columns do not name, or a column for each symbol
        is_one = is_bar(set(self.keys)) or bool(self.record.prices) or self.options.column is not None
        if not is_wide and (is_one or self._find_bars(rest) is not None):
            return self._one_series(date, rest, rest)
        if empty := [n for n in rest if not self.table.names[n]]:
            raise self._error("a name for every column", f"none for column {empty[0] + 1}")
        prices = [n for n in rest if not self._is_no_price(n)]
        texts = [n for n in prices if self.columns[n].holds_names and len(rest) > 1]
        if len(texts) == len(prices):
            amounts = [n for n in rest if n not in texts and not self.columns[n].holds_names] or rest
            name = quote(self.table.names[self._likeliest(amounts)])
            got = f"{self._words(rest)}, whose names say positions, amounts, changes or identifiers"
            hint = (
                f"; if one is a price, name it with --column {name} (column=); what is none, read by data.to_covariates"
            )
            raise self._error("a price column", got, hint)
        if texts and any(re.search(r"[^\W\d]{2}", self.columns[n].sample[0]) for n in texts):
            raise self._holds_text("prices beside the dates", texts)
        reasons = self._reasons(prices)
        if is_wide:  # as stated: each is a symbol, but for 250.11K and -1.66%
            reasons = {n: reason for n, reason in reasons.items() if amount_words(self.columns[n])}
        if len(reasons) == len(prices):
            if numbers := [n for n in prices if not amount_words(self.columns[n])]:
                words = "; ".join(f"{self.table.names[n]!r} is {reason}" for n, reason in list(reasons.items())[:5])
                hint = f"; if one is a price, name it with --column {quote(self.table.names[numbers[0]])} (column=)"
                raise self._error("a column of prices", words, hint)
            reasons = {}  # whoever reads the cells names the first
        prices = [n for n in prices if n not in reasons]
        generic = self._named((*PRICES, *ADJUSTED), prices)
        if len(prices) > 1:  # `y` beside `x` is a symbol like it
            generic = [n for n in generic if self.keys[n] != "y"]
        if len(generic) == len(prices):
            return self._one_series(date, generic, rest)
        is_field = any(amount_words(self.columns[n]) or "volume" in reasons.get(n, "") for n in rest)
        if (generic or (is_field and len(prices) > 1)) and not is_wide:
            raise self._several(prices)
        names = tuple(self.table.names[n] for n in prices)
        unnamed = [self._generic_name(self.table.names[n]) for n in generic]
        ignored = self._ignored(n for n in rest if n not in prices and n not in reasons)
        return Layout(date, tuple(prices), names, findings=(*ignored, *self._no_prices(reasons), *unnamed))

    @cached_property
    def _mark(self) -> str:
        """The decimal mark that the text proves, for a look at the numbers; whoever reads the prices decides it."""
        texts = [column for column in self.columns if column.is_text and not column.holds_names]
        marks = {mark for column in texts if column.has_comma for mark in decimal_proofs(column.amounts)}
        return self.options.decimal or ("," if marks == {","} else ".")

    @cached_property
    def _order(self) -> Array:
        """The rows `(R,)` in order of their symbols and dates, as far as these can be read."""
        date = self._find_date()
        times = self.columns[date].times(self.options.date_order or self.record.date_order)
        days = np.arange(len(self.table)) if times.bad.any() else times.values
        symbol = self._find_symbol(date, [n for n in range(len(self.columns)) if n != date])
        names = np.zeros(len(self.table)) if symbol is None else np.array(self.columns[symbol].texts)
        return np.lexsort((days, names))

    def _values(self, n: int) -> Array:
        """The numbers `(R,)` of a column, NaN = none."""
        if n not in self._known_values:
            self._known_values[n] = cell_values(self.columns[n], self._mark)
        return self._known_values[n]

    def _reasons(self, columns: Iterable[int]) -> dict[int, str]:
        """Why the cells of some of the columns say that they are no prices."""
        columns = list(columns)
        reasons = {n: amount_words(self.columns[n]) or not_prices(self._values(n)) for n in columns}
        counts = [n for n in columns if reasons[n] == COUNT]
        if len(counts) == len(columns) and all(np.ptp(np.diff(self._values(n))) == 0 for n in counts):
            return {}  # nothing but lines, which have a finding of their own
        for n in counts:
            if self.columns[n].dtype.startswith(("float", "double")):  # whole numbers, but of prices
                reasons[n] = ""
        order = self._order if len(columns) <= MOST_FIELDS * 2 else None
        for n in columns if order is not None else ():
            if reasons[n] or not (self._values(n) < 0).any():
                continue
            for m in (m for m in columns if m != n):
                if is_change_of(self._values(n)[order], self._values(m)[order]):
                    reasons[n] = f"the change of {self.table.names[m]!r}"
                elif is_deviation_of(self._values(n), self._values(m)):
                    reasons[n] = f"a deviation of {self.table.names[m]!r}"
        rows: Any = slice(None) if order is None else order
        signed = [n for n in columns if not reasons[n] and looks_like_changes(self._values(n)[rows])]
        if len(signed) < sum(not reason for reason in reasons.values()):  # a panel of spreads has no other columns
            for n in signed:
                known = self._values(n)[np.isfinite(self._values(n))]
                reasons[n] = f"negative in {(known < 0).sum():,} of {len(known):,} rows, like changes"
        return {n: reason for n, reason in reasons.items() if reason}

    def _no_prices(self, reasons: Mapping[int, str]) -> tuple[Finding, ...]:
        return tuple(
            make_finding("no price", line=1, value=f"{self.table.names[n]!r} is {reason}")
            for n, reason in reasons.items()
        )

    def _find_bars(self, rest: list[int]) -> Bars | None:
        """Open, high, low and close among columns whose names do not say so."""
        if rest not in self._known_bars:
            self._known_bars[:] = [rest, self._look_for_bars(rest)]
        return cast("Bars | None", self._known_bars[1])

    def _look_for_bars(self, rest: list[int]) -> Bars | None:
        numeric = [n for n in rest if not self.columns[n].holds_names and not self.columns[n].is_time]
        if is_bar(set(self.keys)) or len(numeric) > 2 * MOST_FIELDS or len(numeric) < 3:
            return None
        reasons = self._reasons(numeric)
        order = self._order
        possible = [n for n in numeric if self.keys[n] in BAR_NAMES or not self._is_no_price(n)]
        prices = {n: self._values(n)[order] for n in possible if n not in reasons}
        prices = {n: np.where(values == 0, np.nan, values) for n, values in prices.items()}  # a day without trading
        changes = {n: self._values(n)[order] for n in numeric if n not in prices}
        words = [amount_words(self.columns[n]).split(",")[0] for n in rest]
        names = [self.table.names[n] for n in prices]
        return find_bars(
            prices,
            changes,
            is_investing=len(rest) == 6 and [bool(word) for word in words] == [False] * 4 + [True, True],
            has_symbols=any(name.isascii() for name in names) and not any(key(name) in FIELDS for name in names),
        )

    def _error(self, expected: str, got: str, hint: str = "") -> DataError:
        return DataError(f"{self.table.header}: expected {expected}; got {got}{hint}")

    def _named(self, names: Iterable[str], columns: Iterable[int]) -> list[int]:
        """Those of `columns` whose key is among `names`."""
        return [n for n in columns if self.keys[n] in names]

    def _words(self, columns: Iterable[int]) -> str:
        """The names of columns, for a message."""
        return summarize_names((self.table.names[n] or "''" for n in columns), limit=12)

    def _ignored(
        self, columns: Iterable[int], price: int | None = None, bars: Bars | None = None
    ) -> tuple[Finding, ...]:
        """A finding for columns that are not read; open, high and low beside a price are, see `add_bars`."""
        fields = set() if bars is None or bars.open is None else {bars.open, bars.high, bars.low}
        if price is not None and self.keys[price] in PRICES and is_bar(set(self.keys)):
            fields |= {n for n, name in enumerate(self.keys) if name in BAR_NAMES}
        return ignored_columns(self.table.names[n] for n in columns if n not in fields)

    def _find_date(self) -> int:
        if self.options.date is not None:
            return self.table.find(self.options.date, "date", by=key)
        columns = range(len(self.keys))
        dated = [n for n in columns if self.columns[n].holds_dates(by_name=self.keys[n] in DATES)]
        if self.record.date and (of_format := self._named((self.record.date,), dated)):
            return of_format[0]
        named = self._named(DATE_COLUMNS, dated) or self._named(PERIOD_COLUMNS, dated) or dated
        if len(named) > 1:
            hint = f"; name it with --date {quote(self.table.names[named[0]])} (date=)"
            raise self._error("one column of dates", self._words(named), hint)
        if not named:  # numbers such as 20240304 under a name that says nothing
            days = [n for n in columns if self.columns[n].holds_days]
            named = days if len(days) == 1 else []
        # where none is one of dates, the cells of the one that is named so say why not
        named = named or self._named(DATE_COLUMNS, columns) or self._named(PERIODS, columns)
        if not named:
            hint = "; name it with --date NAME (date=)"
            if self.table.kind == "DataFrame":
                hint = "; make them the index, as pd.to_datetime reads them, or a column date"
            elif len(columns) == 1 and self.table.kind == "CSV":
                hint = "; separate the columns by comma, semicolon, tab or bar"
            raise self._error("one column of dates, such as date", f"none among {self._words(columns)}", hint)
        return named[0]

    def _is_row_number(self, n: int) -> bool:
        """A column without a name, or of a name for row numbers, that counts the rows."""
        is_unnamed = not self.table.names[n] or self.keys[n].startswith("unnamed: ")
        if not is_unnamed and self.keys[n] not in ROW_NUMBERS:
            return False
        numbers = self.columns[n].integers
        if numbers is None or not numbers.size:
            return False
        steps = np.diff(numbers)
        return bool((steps > 0).all()) if is_unnamed else bool((steps == 1).all()) and numbers[0] in (0, 1)

    def _find_symbol(self, date: int, rest: list[int]) -> int | None:
        if self.options.symbol is not None and self.table.origin.row_word != "column":
            return self.table.find(self.options.symbol, "symbol", by=key)
        names = (self.record.symbol,) if self.record.symbol else SYMBOLS
        columns = [n for n in self._named(names, rest) if self.keys[n] != "id" or self._names_symbols(n, rest)]
        if len(columns) > 1 and (symbols := self._named(("symbol",), columns)):
            return symbols[0]
        if len(columns) > 1:
            hint = f"; name it with --symbol {quote(self.table.names[columns[0]])} (symbol=)"
            raise self._error("one column symbol or ticker", self._words(columns), hint)
        if columns:
            return columns[0]
        candidates = [n for n in rest if self.keys[n] not in ("unit", "source", "currency", "exchange")]
        texts = [n for n in candidates if self.columns[n].holds_names]
        by_name = [n for n in self._named(OTHER_SYMBOLS, candidates) if n in texts or not self.record.columns]
        by_name = by_name or self._named(("instrument id",), candidates)
        by_name = [n for n in by_name if self._names_symbols(n, rest)]
        if len(by_name) > 1:
            several = [n for n in by_name if len(set(self.columns[n].texts)) > 1]
            by_name = several or sorted(by_name, key=lambda n: self.keys[n] == "market")[:1]
        if len(by_name) > 1:
            hint = f"; name it with --symbol {quote(self.table.names[by_name[0]])} (symbol=), or rename it to symbol"
            raise self._error("one column of symbols", self._words(by_name), hint)
        if by_name:
            return by_name[0]
        if len(candidates) > 1 and len(set(self.columns[date].texts)) < len(self.table):
            if len(texts) == 1:
                return texts[0]  # the only names beside dates that stand several times
            if several := [n for n in texts if len(set(self.columns[n].texts)) > 1]:
                raise self._holds_text("a column of symbols, since dates stand in several rows", several)
        return None

    def _names_symbols(self, n: int, rest: list[int]) -> bool:
        """Text names symbols; numbers do beside a column named `price` or the like, but not beside one named WTI."""
        return self.columns[n].holds_names or bool(self._named((*PRICES, *ADJUSTED, *self.record.prices), rest))

    def find_price(self, columns: list[int]) -> tuple[int, tuple[Finding, ...], Bars | None]:
        """The price column of a long table or of bars, columns that are no prices, and the bars."""
        if (wanted := self.options.column) is not None:
            return self.table.find(wanted, "column", by=key), (), None
        for name in self.record.prices:
            if matches := self._named((name,), columns):
                return matches[0], (), None
        named = sorted(self._named(PRICES, columns), key=lambda n: PRICES.index(self.keys[n]))
        usable, findings = self.usable(named)
        if len(usable) == 1 or (usable and is_bar(set(self.keys))):
            bars = self._find_bars(columns)
            own = bars if bars is not None and bars.close == usable[0] else None
            return usable[0], findings if usable[0] != named[0] else (), own
        if len(usable) > 1:
            raise self._several(sorted(usable))
        if (bars := self._find_bars(columns)) is not None:
            if bars.close is None or not bars.is_certain:
                raise self._cannot_tell(bars)
            return bars.close, (), bars
        others = [
            n
            for n in columns
            if self.keys[n] not in ADJUSTED and not self._is_no_price(n) and not self.columns[n].holds_names
        ]
        reasons = self._reasons(others)
        others = [n for n in others if n not in reasons] or others
        if len(others) > 1:
            raise self._several(others)
        if others and others[0] not in reasons:
            return others[0], self._no_prices(reasons), None
        if adjusted := self._named(ADJUSTED, columns):
            return adjusted[0], (), None
        words = " or ".join((*SETTLES[:1], *CLOSES[:1], "price"))
        got = f"none among {self._words(range(len(self.keys)))}"
        raise self._error(f"a price column, such as {words}", got, "; name it with --column NAME (column=)")

    def usable(self, columns: list[int]) -> tuple[list[int], tuple[Finding, ...]]:
        """Those of several price columns that have a price where the others have one, and a finding for the others."""
        if len(columns) < 2:
            return columns, ()
        rows = {n: positive_rows(self._values(n)) for n in columns}
        most = max(rows.values())
        usable = [n for n in columns if rows[n] >= most - max(1, FEW_MISSING * most) and rows[n] > 0]
        if not usable:
            return columns, ()
        findings = tuple(
            make_finding(
                "no price",
                line=1,
                value=f"{self.table.names[n]!r} has a price in {rows[n]:,} rows, {self.table.names[usable[0]]!r} in "
                f"{rows[usable[0]]:,}, and is read in its place",
            )
            for n in columns
            if n not in usable
        )
        return usable, findings

    def _cannot_tell(self, bars: Bars) -> DataError:
        """Columns that may be the close, or the symbols of a wide table."""
        columns = sorted((bars.high, bars.low, *bars.inner))
        name = quote(self.table.names[bars.inner[-1]])
        if bars.is_certain:
            got = self._words(bars.inner)
            return self._error("one close beside open, high and low", got, f"; name it with --column {name} (column=)")
        hint = "; say which with --column NAME (column=), or with --format wide (format='wide') for symbols"
        return self._error(
            "names that say what the columns are",
            f"{self._words(columns)}, which can be open, high, low and close of one series (of which {name} can be the "
            "close) or the prices of four symbols",
            hint.replace("NAME", name),
        )

    def _holds_text(self, expected: str, columns: list[int]) -> DataError:
        """Columns of text, of which one may be the symbol or the contract."""
        n = columns[0]
        name, texts = quote(self.table.names[n]), self.columns[n].sample
        hint = (
            f"; if it names the symbols, say so with --symbol {name} (symbol=); if the contracts, with "
            f"--contract {name} (contract=)"
        )
        return self._error(expected, f"text in {self._words(columns)}, such as {texts[0]!r}", hint)

    def _several(self, columns: list[int]) -> DataError:
        hint = f"; name it with --column {quote(self.table.names[self._likeliest(columns)])} (column=)"
        return self._error("one price column", self._words(columns), hint)

    def _likeliest(self, columns: list[int]) -> int:
        """The column that a message names as an example of a price: by preference one that says so, and no extreme."""
        return min(columns, key=lambda n: (not _PRICE.search(self.keys[n]), bool(_OTHER.search(self.keys[n]))))

    def _is_no_price(self, n: int) -> bool:
        """Whether name or cells say that a column is no price: a volume, a contract number, another date."""
        column = self.columns[n]
        return is_never_price(self.keys[n]) or column.holds_identifiers or column.holds_dates(by_name=False)

    def _one_series(self, date: int, columns: list[int], rest: list[int]) -> Layout:
        """The layout of one series; its symbol is the column's name or, where that is `Close`, the file's."""
        price, unusable, bars = self.find_price(columns)
        name = self.table.names[price].strip("<>")
        findings = (*self._ignored((n for n in rest if n != price), price, bars), *unusable)
        if key(name) in FIELDS or bars is not None:
            if symbol := symbol_of_file(self.table.origin.file, self.record.file_name):
                name = symbol
            else:
                findings += (self._generic_name(name),)
        return Layout(date, (price,), (name,), bars=bars, findings=findings)

    def _generic_name(self, name: str) -> Finding:
        return make_finding("generic name", name, line=1, value=name)

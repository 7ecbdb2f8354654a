"""`LongFormat`: how a long table that does not fit in memory is read, decided from its first rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.dates import DateFormat
from torchcommodity.data._sources.columns.numbers import Parsed, decimal_proofs, parse_prices
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.roles import assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame


class LongFormat(NamedTuple):
    """The columns of a long table, and how text in them is read.

    Args:
        date: number of the date column.
        symbol: number of the symbol column.
        price: number of the price column.
        dates: how dates are written, as text or as integers such as 20200420; None = dates or times.
        decimal: the decimal mark that the text of the prices proves; "" = a decimal point, no thousands separators.
    """

    date: int
    symbol: int
    price: int
    dates: DateFormat | None = None
    decimal: str = ""

    @classmethod
    def detect(cls, rows: Any, label: str) -> "LongFormat":
        """Decide the format of a table from its first rows, as `read` decides it from all of them.

        Args:
            rows: a pandas, polars, DuckDB or Arrow frame.
            label: opens the error messages.

        Raises:
            DataError: no date, symbol or price column, or several that could be meant; dates or numbers that can be
                read in two ways.

        >>> import pandas as pd
        >>> rows = pd.DataFrame({"Datum": ["20.04.2020", "21.04.2020"], "id": "WTI", "Kurs": ["-37,63", "10,01"]})
        >>> form = LongFormat.detect(rows, "panels")
        >>> form.price, form.parse_prices(["8,91"]).values.tolist(), str(form.parse_dates(["22.04.2020"]).values[0])
        (2, [8.91], '2020-04-22')
        """
        table = open_frame(rows, label)
        if table is None:
            raise TypeError(f"LongFormat: rows must be a frame; got {type(rows).__name__}")
        reading = assign_roles(table, ReadOptions())
        layout = reading.layout
        date, price = table.columns[layout.date], table.columns[layout.prices[0]]
        if layout.symbol is None:
            got = ", ".join(table.names[:12])
            raise DataError(f"{label}: expected columns of dates, symbols and prices; got {got}")
        if reading.record.name == "databento" and price.is_number and price.dtype.startswith("int"):
            raise DataError(f"{label}: {price.name!r}: expected prices; got Databento's integers in units of 1e-9")
        dates, decimal = None, ""
        if not date.is_time:
            texts = (
                date.texts if date.is_text else [str(int(x)) for x in date.cells if x == x] if date.is_number else []
            )
            try:
                dates = DateFormat.detect(filter(None, texts))
            except ValueError as error:
                raise DataError(f"{label}: {date.name!r}: {error}") from None
        if price.has_comma and len(marks := decimal_proofs(price.amounts)) == 1:
            (decimal,) = marks
        return cls(layout.date, layout.symbol, layout.prices[0], dates, decimal)

    def parse_dates(self, texts: Sequence[str]) -> Parsed:
        """The days `(R,) datetime64[D]` of dates as text, each on its own."""
        if self.dates is None:
            raise ValueError("LongFormat: dates must be text; got a format without one")
        parsed = self.dates.parse(texts)
        return parsed._replace(values=parsed.values.astype("datetime64[D]"))

    def parse_prices(self, texts: Sequence[str]) -> Parsed:
        """The prices `(R,)` of text, NaN = missing."""
        return parse_prices(texts, self.decimal)

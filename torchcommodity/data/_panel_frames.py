"""Conversions of a panel from and to frames: the part of `Panel` that pandas, polars and DuckDB see."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from torchcommodity.data._formats.format import DateOrder, Decimal, ReadOptions
from torchcommodity.data._provenance import Provenance, drop_origin_findings

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from torchcommodity.data._panel import Panel

TableLayout = Literal["wide", "long"]


class FrameConversions:
    """The methods `from_*` and `to_*` of `Panel`."""

    def to_pandas(self, layout: TableLayout = "wide") -> "pd.DataFrame":
        """Copy the prices to a pandas DataFrame, NaN = missing.

        Args:
            layout: "wide": index `date`, one column per symbol; "long": columns `date`, `symbol`, `price` and `unit`,
                one row per date and symbol, sorted by symbol and date.

        >>> from torchcommodity import data
        >>> data.embedded().to_pandas("long")[["symbol", "price", "unit"]].head(1).values.tolist()
        [['WTI', 25.56, '$/bbl']]
        """
        from torchcommodity.data._frames import long_frame, wide_frame  # that module imports this one

        if layout not in ("wide", "long"):
            raise ValueError(f"to_pandas: layout must be wide or long; got {layout!r}")
        panel = cast("Panel", self)
        return wide_frame(panel) if layout == "wide" else long_frame(panel)

    def to_polars(self, layout: TableLayout = "wide") -> "pl.DataFrame":
        """Copy the prices to a polars DataFrame with a `date` column; NaN = missing. Layouts as for `to_pandas`."""
        import polars as pl

        frame = self.to_pandas(layout)
        frame = frame.reset_index() if layout == "wide" else frame
        return pl.from_pandas(frame, nan_to_null=False).with_columns(pl.col("date").cast(pl.Date))

    @classmethod
    def from_pandas(
        cls,
        table: "pd.DataFrame | pd.Series[Any]",
        *,
        units: Iterable[str] | None = None,
        provenance: Iterable[Provenance] | None = None,
        contracts: Iterable[str | None] = (),
        format: str | None = None,
        column: str | None = None,
        decimal: Decimal | None = None,
        date_order: DateOrder | None = None,
    ) -> "Panel":
        """Build a panel from a wide or long DataFrame, from bars as yfinance returns them, or from a named Series.

        A wide table has its dates as index or column and one column per symbol; a long table has a date, a symbol and
        a price column. The roles of the columns are found as by `data.read`, `unique_id, ds, y` too. Rows may be in
        any order; `findings` reports that they were sorted, and all other data-quality warnings.

        Args:
            table: prices; NaN and None = missing.
            units: per symbol, in the order of the columns or of first appearance; default: the column `unit`, or "".
            provenance: per symbol; default: location "memory", with the sha256 of the prices.
            contracts: per symbol, as for `Panel`.
            format, column, decimal, date_order: as for `data.read`.

        Raises:
            DataError: no date column or several, cells that are not prices, two prices for one date and symbol.

        >>> import pandas as pd
        >>> from torchcommodity import data
        >>> prices = pd.Series([18.27, -37.63], index=pd.to_datetime(["2020-04-17", "2020-04-20"]), name="WTI")
        >>> data.Panel.from_pandas(prices)
        Panel(2 dates 2020-04-17 to 2020-04-20, 1 symbol: WTI)
        """
        options = ReadOptions(format, column, decimal, date_order)
        return _from_frame(table, "from_pandas", options, units, provenance, contracts)

    @classmethod
    def from_polars(
        cls,
        table: "pl.DataFrame",
        *,
        units: Iterable[str] | None = None,
        provenance: Iterable[Provenance] | None = None,
        contracts: Iterable[str | None] = (),
        format: str | None = None,
        column: str | None = None,
        decimal: Decimal | None = None,
        date_order: DateOrder | None = None,
    ) -> "Panel":
        """Build a panel from a wide or long polars DataFrame with a date column; see `from_pandas`."""
        options = ReadOptions(format, column, decimal, date_order)
        return _from_frame(table, "from_polars", options, units, provenance, contracts)

    @classmethod
    def from_duckdb(
        cls,
        source: "duckdb.DuckDBPyRelation | duckdb.DuckDBPyConnection",
        query: str | None = None,
        *,
        units: Iterable[str] | None = None,
        provenance: Iterable[Provenance] | None = None,
        contracts: Iterable[str | None] = (),
        format: str | None = None,
        column: str | None = None,
        decimal: Decimal | None = None,
        date_order: DateOrder | None = None,
    ) -> "Panel":
        """Build a panel from a relation of DuckDB, or from a query on a connection; see `from_pandas`.

        >>> import duckdb
        >>> from torchcommodity import data
        >>> data.Panel.from_duckdb(duckdb.sql("SELECT DATE '2020-04-20' AS date, -37.63 AS WTI")).values.tolist()
        [[-37.63]]
        """
        relation: Any = source if query is None else cast(Any, source).sql(query)
        options = ReadOptions(format, column, decimal, date_order)
        return _from_frame(relation, "from_duckdb", options, units, provenance, contracts)


def _from_frame(
    frame: Any,
    operation: str,
    options: ReadOptions,
    units: Iterable[str] | None,
    provenance: Iterable[Provenance] | None,
    contracts: Iterable[str | None],
) -> "Panel":
    from torchcommodity.data._frames import panel_from_frame  # that module imports this one

    if (panel := panel_from_frame(frame, operation, options)) is None:
        raise TypeError(f"{operation}: expected a table; got {type(frame).__name__}")
    records = panel.provenance if provenance is None else tuple(provenance)
    return replace(
        panel,
        units=panel.units if units is None else tuple(units),
        provenance=records,
        contracts=tuple(contracts),
        findings=drop_origin_findings(panel.findings, records),
    )

"""Panel: prices of several symbols over the same dates, with units and provenance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from torchcommodity.data._curve import Curve, check_curve, check_same_series
from torchcommodity.data._errors import DataError, Finding, summarize_names
from torchcommodity.data._panel_checks import check_shape, check_values, is_generated
from torchcommodity.data._provenance import Provenance
from torchcommodity.data._rolls import check_contracts, observed_rolls
from torchcommodity.data._synthetic import SyntheticTensor, is_synthetic
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

DateLike = Any  # whatever np.datetime64(..., "D") takes: "2020-04-20", datetime.date, np.datetime64
TableLayout = Literal["wide", "long"]


@dataclass(frozen=True, eq=False)
class Panel:
    """Prices `(T, N)` of N symbols on T dates, with units and provenance.

    Args:
        values: prices `(T, N)` in the units of their columns, float64, NaN = missing; stored as a `MetadataTensor` with
            `symbols`, `units` and `provenance`. Zero and negative prices are valid.
        dates: `(T,)`, strictly increasing, without NaT; stored as `datetime64[D]`.
        symbols: N distinct names.
        units: N units, such as "$/bbl"; "" where not stated.
        provenance: N records.
        contracts: N product codes, keys of `data.CONTRACTS`; None = a spot price, or no futures calendar is known.
            Default: all None.
        curve: closes of the nearby contracts `(T, N, C)`, the first in column 0, in the units of their symbols,
            float64, NaN = missing; or None.
        findings: what looks doubtful, and how it was treated.

    Raises:
        DataError: no row, no column, shapes that do not agree, dates not strictly increasing, a repeated symbol, an
            infinite price, an unknown product code, a curve in another unit, synthetic values in a column that is not
            marked as synthetic.

    >>> from torchcommodity import data
    >>> data.embedded()["WTI", "VIX"].between("2014-01-03", "2018-12-31").values.shape
    torch.Size([1258, 2])
    """

    values: MetadataTensor
    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    provenance: tuple[Provenance, ...]
    contracts: tuple[str | None, ...] = ()
    curve: MetadataTensor | None = None
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        symbols, units, provenance = tuple(self.symbols), tuple(self.units), tuple(self.provenance)
        contracts = tuple(self.contracts) or (None,) * len(symbols)
        dates = np.array(self.dates, dtype="datetime64[D]")
        dates.flags.writeable = False
        prices = torch.as_tensor(self.values).to(torch.float64)
        check_shape(prices, dates, symbols, units, provenance)
        check_values(prices, dates, symbols, provenance)
        check_contracts(contracts, symbols)
        metadata = {"symbols": symbols, "units": units, "provenance": provenance}
        kind = SyntheticTensor if any(map(is_generated, symbols, provenance)) else MetadataTensor
        fields: dict[str, Any] = {**metadata, "values": kind(prices, **metadata), "dates": dates}
        fields |= {"contracts": contracts, "findings": tuple(self.findings)}
        if self.curve is not None:
            fields["curve"] = MetadataTensor(check_curve(self.curve, prices, symbols, dates), **metadata)
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen; this is its constructor

    def __len__(self) -> int:
        return len(self.dates)

    @property
    def synthetic(self) -> bool:
        """Whether a column is marked as generated, in its symbol or publisher; training and scoring reject those."""
        return is_synthetic(self.values)

    def __getitem__(self, symbols: str | Sequence[str]) -> "Panel":
        return self.select([symbols] if isinstance(symbols, str) else symbols)

    def select(self, symbols: Iterable[str]) -> "Panel":
        """These symbols, in this order, on all dates; an unknown symbol is a `DataError` that lists the known ones."""
        symbols, columns = list(symbols), {symbol: column for column, symbol in enumerate(self.symbols)}
        if unknown := [symbol for symbol in symbols if symbol not in columns]:
            known = summarize_names(self.symbols, limit=20)
            raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}")
        chosen = [columns[symbol] for symbol in symbols]
        return Panel(
            MetadataTensor(self.values.plain()[:, chosen]),
            self.dates,
            tuple(symbols),
            tuple(self.units[c] for c in chosen),
            tuple(self.provenance[c] for c in chosen),
            tuple(self.contracts[c] for c in chosen),
            None if self.curve is None else MetadataTensor(self.curve[:, chosen]),
            tuple(finding for finding in self.findings if finding.symbol in ("", *symbols)),
        )

    def between(self, first: DateLike = None, last: DateLike = None) -> "Panel":
        """The rows from `first` to `last`, both included; None is open. No row is a `DataError`."""
        inside = np.ones(len(self), dtype=bool)
        if first is not None:
            inside &= self.dates >= _to_day(first)
        if last is not None:
            inside &= self.dates <= _to_day(last)
        if not inside.any():
            raise DataError(f"dates: expected rows between {first} and {last}; got {self.dates[0]} to {self.dates[-1]}")
        rows = torch.from_numpy(inside)
        curve = None if self.curve is None else MetadataTensor(self.curve[rows])
        return replace(self, values=MetadataTensor(self.values.plain()[rows]), dates=self.dates[inside], curve=curve)

    def with_contracts(self, contracts: Mapping[str, str | None]) -> "Panel":
        """Declare symbols as front-month futures of products, or as spot (None); other symbols stay as they are.

        >>> from torchcommodity import data
        >>> data.embedded().with_contracts({"WTI": "CL"}).contracts
        ('CL', None, None, None)
        """
        self.select(contracts or self.symbols)  # raises for an unknown symbol
        merged = {**dict(zip(self.symbols, self.contracts)), **contracts}
        return replace(self, contracts=tuple(merged.values()))

    def with_curve(self, curve: "Curve | torch.Tensor") -> "Panel":
        """Add the closes of nearby contracts: a `Curve` of `data.read_curve`, or a tensor `(T, N, C)`.

        A `Curve` is aligned by date and symbol: NaN where it has no close, and its other rows and symbols are dropped.
        One without a row of the panel, or of another series, is a `DataError`.
        """
        findings = self.findings
        if isinstance(curve, Curve):
            findings += curve.findings
            curve = curve.align(self.dates, self.symbols)
            check_same_series(curve, self.values.plain(), self.symbols)
        return replace(self, curve=MetadataTensor(curve), findings=findings)

    def rolls(self, ahead: int = 126) -> torch.Tensor:
        """Flag the rows on which a column switches to its next contract; `(T + ahead, N)` int64.

        The flag is the calendar month of the roll, or 0. It stands on the first row with a positive price on or after
        the day of the rule, where the return contains the gap. A column without a contract has none. See
        `data.roll_months` for the rows ahead.

        >>> from torchcommodity import data
        >>> wti = data.embedded()["WTI"].between("2018-12-01").with_contracts({"WTI": "CL"})  # as if it were no spot
        >>> wti.dates[wti.rolls(ahead=0)[:, 0] > 0]
        array(['2018-12-20'], dtype='datetime64[D]')
        """
        prices = self.values.plain().detach().numpy()
        columns = [observed_rolls(code, self.dates, prices[:, n], ahead) for n, code in enumerate(self.contracts)]
        return torch.from_numpy(np.stack(columns, axis=1))

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
        return wide_frame(self) if layout == "wide" else long_frame(self)

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
    ) -> "Panel":
        """Build a panel from a wide or long DataFrame, or from a named Series.

        A wide table has its dates as index or column and one numeric column per symbol; a long table has a date, a
        symbol and a price column. Column names are recognized as by `data.read`, `unique_id, ds, y` too. Rows may be in
        any order; `findings` reports that they were sorted, and everything else that looks doubtful.

        Args:
            table: prices; NaN and None = missing.
            units: per symbol, in the order of the columns or of first appearance; default: the column `unit`, or "".
            provenance: per symbol; default: location "memory", with the sha256 of the prices.
            contracts: per symbol, as for `Panel`.

        Raises:
            DataError: no date column or several, columns that are not numbers, two prices for one date and symbol.

        >>> import pandas as pd
        >>> prices = pd.Series([18.27, -37.63], index=pd.to_datetime(["2020-04-17", "2020-04-20"]), name="WTI")
        >>> Panel.from_pandas(prices)
        Panel(2 dates 2020-04-17 to 2020-04-20, 1 symbols: WTI)
        """
        from torchcommodity.data._frames import panel_from_pandas  # that module imports this one

        return panel_from_pandas(table, "from_pandas", units, provenance, contracts)

    @classmethod
    def from_polars(
        cls,
        table: "pl.DataFrame",
        *,
        units: Iterable[str] | None = None,
        provenance: Iterable[Provenance] | None = None,
        contracts: Iterable[str | None] = (),
    ) -> "Panel":
        """Build a panel from a wide or long polars DataFrame with a date column; see `from_pandas`."""
        from torchcommodity.data._frames import panel_from_pandas, polars_to_pandas

        frame = polars_to_pandas(table, "from_polars")
        return panel_from_pandas(frame, "from_polars", units, provenance, contracts)

    def equals(self, other: "Panel") -> bool:
        """Same bits, dates, symbols, units, provenance, contracts and curve; NaN equals NaN; findings may differ."""
        return (
            (self.symbols, self.units, self.provenance) == (other.symbols, other.units, other.provenance)
            and self.contracts == other.contracts
            and np.array_equal(self.dates, other.dates)
            and _equal(self.values, other.values)
            and _equal(self.curve, other.curve)
        )

    def sources(self) -> list[dict[str, str]]:
        """Symbol, unit, contract ("" = spot) and provenance of every column as plain records, for JSON and tables."""
        return [
            {"symbol": symbol, "unit": unit, "contract": code or "", **asdict(record)}
            for symbol, unit, code, record in zip(self.symbols, self.units, self.contracts, self.provenance)
        ]

    def __repr__(self) -> str:
        symbols = f"{len(self.symbols)} symbols: {summarize_names(self.symbols, limit=6)}"
        return f"Panel({len(self)} dates {self.dates[0]} to {self.dates[-1]}, {symbols})"


def _equal(x: torch.Tensor | None, y: torch.Tensor | None) -> bool:
    if x is None or y is None:
        return x is y
    return bool(x.shape == y.shape) and torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)


def _to_day(value: DateLike) -> np.datetime64:
    try:
        return np.datetime64(value, "D")
    except ValueError:
        raise DataError(f"date: expected YYYY-MM-DD; got {value!r}") from None

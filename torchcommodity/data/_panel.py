"""Prices of several symbols over the same dates, with where every column comes from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from torchcommodity.data._curve import Curve, check_series, checked_curve
from torchcommodity.data._errors import DataError, Finding, summarize_names
from torchcommodity.data._rolls import check_contracts, priced_rolls
from torchcommodity.data._synthetic import SYNTHETIC, SyntheticTensor, is_synthetic
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

DateLike = Any  # whatever np.datetime64(..., "D") takes: "2020-04-20", datetime.date, np.datetime64


@dataclass(frozen=True)
class Provenance:
    """Where one column comes from.

    Args:
        publisher: who published the prices.
        location: address or file they were read from.
        license: on what terms, or "not stated".
        retrieved: when, ISO 8601 in UTC.
        sha256: of the bytes received.
        series: the publisher's own name of the series.

    >>> Provenance("EIA", "https://api.eia.gov/v2/", "public", "2024-01-02T00:00:00Z", "", "PET.RWTC.D").publisher
    'EIA'
    """

    publisher: str
    location: str
    license: str
    retrieved: str
    sha256: str
    series: str


def utc_now() -> str:
    """Now, ISO 8601 in UTC to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, eq=False)
class Panel:
    """Prices `(T, N)` of N symbols on T dates, with units and provenance.

    Args:
        values: prices `(T, N)` in the units of their columns, float64, NaN = missing; made a `MetadataTensor` that
            carries `symbols`, `units` and `provenance`. Zero and negative prices are real and stay.
        dates: `(T,)`, strictly increasing, without NaT; kept as `datetime64[D]`.
        symbols: N distinct names.
        units: N units, such as "$/bbl"; "" where not stated.
        provenance: N records.
        contracts: N product codes, keys of `data.CONTRACTS`; None = no futures calendar is known, and the series is
            taken for a spot price. Default: all None.
        curve: closes of the nearby contracts `(T, N, C)`, the first of them in column 0, each in the unit of its
            symbol, float64, NaN = unknown; or None.
        findings: what looks doubtful, and how it was treated.

    Raises:
        DataError: no row, no column, shapes that do not agree, dates not strictly increasing, a symbol twice, an
            infinite price, an unknown product code, a curve in another unit, synthetic values without a column that
            says so.

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
        numbers = torch.as_tensor(self.values).to(torch.float64)
        _check(numbers, dates, symbols, units, provenance)
        check_contracts(contracts, symbols)
        facts = {"symbols": symbols, "units": units, "provenance": provenance}
        kind = SyntheticTensor if any(map(_generated, symbols, provenance)) else MetadataTensor
        values = kind(numbers, **facts)
        fields = {**facts, "values": values, "dates": dates, "contracts": contracts, "findings": tuple(self.findings)}
        if self.curve is not None:
            fields["curve"] = MetadataTensor(checked_curve(self.curve, numbers, symbols, dates), **facts)
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen; this is its constructor

    def __len__(self) -> int:
        return len(self.dates)

    @property
    def synthetic(self) -> bool:
        """Whether a column was generated, as its symbol or publisher says: training and scoring refuse the panel."""
        return is_synthetic(self.values)

    def __getitem__(self, symbols: str | Sequence[str]) -> "Panel":
        return self.select([symbols] if isinstance(symbols, str) else symbols)

    def select(self, symbols: Iterable[str]) -> "Panel":
        """These symbols, in this order, on all dates; an unknown symbol is a `DataError` that lists the known ones."""
        wanted, places = list(symbols), {symbol: column for column, symbol in enumerate(self.symbols)}
        if unknown := [symbol for symbol in wanted if symbol not in places]:
            known = summarize_names(self.symbols, limit=20)
            raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}")
        columns = [places[symbol] for symbol in wanted]
        return Panel(
            MetadataTensor(self.values.plain()[:, columns]),
            self.dates,
            tuple(wanted),
            tuple(self.units[c] for c in columns),
            tuple(self.provenance[c] for c in columns),
            tuple(self.contracts[c] for c in columns),
            None if self.curve is None else MetadataTensor(self.curve[:, columns]),
            tuple(finding for finding in self.findings if finding.symbol in ("", *wanted)),
        )

    def between(self, first: DateLike = None, last: DateLike = None) -> "Panel":
        """The rows from `first` to `last`, both included; None is open. No row left is a `DataError`."""
        inside = np.ones(len(self), dtype=bool)
        if first is not None:
            inside &= self.dates >= _day(first)
        if last is not None:
            inside &= self.dates <= _day(last)
        if not inside.any():
            raise DataError(f"dates: expected rows between {first} and {last}; got {self.dates[0]} to {self.dates[-1]}")
        rows = torch.from_numpy(inside)
        curve = None if self.curve is None else MetadataTensor(self.curve[rows])
        return replace(self, values=MetadataTensor(self.values.plain()[rows]), dates=self.dates[inside], curve=curve)

    def with_contracts(self, contracts: Mapping[str, str | None]) -> "Panel":
        """These symbols as front-month futures of these products; None makes a symbol spot, others stay as they are.

        >>> from torchcommodity import data
        >>> data.embedded().with_contracts({"WTI": "CL"}).contracts
        ('CL', None, None, None)
        """
        self.select(contracts or self.symbols)  # an unknown symbol is told
        known = dict(zip(self.symbols, self.contracts))
        return replace(self, contracts=tuple({**known, **contracts}.values()))

    def with_curve(self, curve: "Curve | torch.Tensor") -> "Panel":
        """With the closes of nearby contracts: `(T, N, C)`, or as `data.read_curve` read them.

        A `Curve` is aligned by date and symbol: what it does not know of the panel is NaN, what lies outside the panel
        is left out. One that knows no row of the panel, or is of another series, is a `DataError`.
        """
        findings = self.findings
        if isinstance(curve, Curve):
            findings += curve.findings
            curve = curve.along(self.dates, self.symbols)
            check_series(curve, self.values.plain(), self.symbols)
        return replace(self, curve=MetadataTensor(curve), findings=findings)

    def rolls(self, ahead: int = 126) -> torch.Tensor:
        """Where a column passes to its next contract: 0, or the calendar month of the roll; `(T + ahead, N)` int64.

        The flag stands on the first row from the rule's day on that has a positive price of the column, where the
        return holds the gap; a column without a contract has none. See `data.roll_months` for the rows ahead.

        >>> from torchcommodity import data
        >>> wti = data.embedded()["WTI"].between("2018-12-01").with_contracts({"WTI": "CL"})  # as if it were no spot
        >>> wti.dates[wti.rolls(ahead=0)[:, 0] > 0]
        array(['2018-12-20'], dtype='datetime64[D]')
        """
        prices = self.values.plain().detach().numpy()
        columns = [priced_rolls(code, self.dates, prices[:, n], ahead) for n, code in enumerate(self.contracts)]
        return torch.from_numpy(np.stack(columns, axis=1))

    def to_pandas(self, layout: Literal["wide", "long"] = "wide") -> "pd.DataFrame":
        """A copy as a pandas DataFrame, NaN = missing.

        Args:
            layout: "wide": index `date`, one column per symbol; "long": columns `date`, `symbol`, `price` and `unit`,
                one row per date and symbol, sorted by symbol and date.

        >>> from torchcommodity import data
        >>> data.embedded().to_pandas("long")[["symbol", "price", "unit"]].head(1).values.tolist()
        [['WTI', 25.56, '$/bbl']]
        """
        import pandas as pd

        prices: np.ndarray[Any, Any] = self.values.plain().detach().numpy().copy()
        if layout == "wide":
            index = pd.DatetimeIndex(self.dates, name="date")
            wide: pd.DataFrame = pd.DataFrame(prices, index=index, columns=list(self.symbols))
            return wide
        if layout != "long":
            raise ValueError(f"to_pandas: layout must be wide or long; got {layout!r}")
        T, N = prices.shape
        columns = {
            "date": pd.DatetimeIndex(np.tile(self.dates, N)),
            "symbol": np.repeat(np.array(self.symbols, dtype=object), T),
            "price": prices.T.ravel(),
            "unit": np.repeat(np.array(self.units, dtype=object), T),
        }
        long: pd.DataFrame = pd.DataFrame(columns)
        return long

    def to_polars(self, layout: Literal["wide", "long"] = "wide") -> "pl.DataFrame":
        """A copy as a polars DataFrame with a `date` column of type Date; layouts as for `to_pandas`, NaN = missing."""
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

        A wide table has one numeric column per symbol, and its dates as index or as a column; a long table has a date,
        a symbol and a price column. The recognized names are those of `data.read`: `unique_id, ds, y` too. Rows may be
        in any order; they are sorted, and `findings` reports it.

        Args:
            table: prices; NaN and None = missing.
            units: per symbol, in the order of the columns or of first appearance; default: the column `unit`, or "".
            provenance: per symbol; default: memory, with the sha256 of the prices.
            contracts: per symbol, as for `Panel`.

        Raises:
            DataError: no date column or several, columns that are not numbers, two prices for one date and symbol.

        >>> import pandas as pd
        >>> prices = pd.Series([18.27, -37.63], index=pd.to_datetime(["2020-04-17", "2020-04-20"]), name="WTI")
        >>> Panel.from_pandas(prices)
        Panel(2 dates 2020-04-17 to 2020-04-20, 1 symbols: WTI)
        """
        from torchcommodity.data._frames import panel_from_pandas  # which builds panels itself

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
            and _same(self.values, other.values)
            and _same(self.curve, other.curve)
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


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one.shape == other.shape) and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def _day(value: DateLike) -> np.datetime64:
    try:
        return np.datetime64(value, "D")
    except ValueError:
        raise DataError(f"date: expected YYYY-MM-DD; got {value!r}") from None


def _generated(symbol: str, record: Provenance) -> bool:
    return is_synthetic(symbol) or SYNTHETIC in record.publisher.split(", ")


def _check(
    numbers: torch.Tensor,
    dates: np.ndarray[Any, np.dtype[np.datetime64]],
    symbols: tuple[str, ...],
    units: tuple[str, ...],
    provenance: tuple[Provenance, ...],
) -> None:
    expected = (len(dates), len(symbols))
    if tuple(numbers.shape) != expected or 0 in expected:
        raise DataError(
            f"panel: expected values of shape (dates, symbols) = {expected}, none of them 0; got {tuple(numbers.shape)}"
        )
    if not len(symbols) == len(units) == len(provenance):
        got = f"{len(units)} and {len(provenance)}"
        raise DataError(f"panel: expected a unit and a provenance for each of {len(symbols)} symbols; got {got}")
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise DataError(f"panel: expected distinct symbols; got {twice!r} twice")
    if np.isnat(dates).any():
        raise DataError("panel: expected dates; got NaT")
    if (late := np.flatnonzero(np.diff(dates) <= np.timedelta64(0, "D"))).size:
        raise DataError(f"panel: expected strictly increasing dates; got {dates[late[0]]}, then {dates[late[0] + 1]}")
    if is_synthetic(numbers) and not any(map(_generated, symbols, provenance)):
        raise DataError(
            f"panel: expected {SYNTHETIC!r} as publisher of synthetic values; got {provenance[0].publisher!r}"
        )
    if (infinite := torch.nonzero(torch.isinf(numbers))).numel():
        row, column = infinite[0].tolist()
        raise DataError(
            f"panel: expected finite prices or NaN; got an infinite one for {symbols[column]!r} on {dates[row]}"
        )

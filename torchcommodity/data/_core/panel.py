"""Panel: prices of several symbols over the same dates, with units and provenance."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity.data._core.calendar import Frequency, infer_frequency, trading_calendar
from torchcommodity.data._core.curve import Curve, check_curve, check_curve_of, check_same_series, check_spot_curve
from torchcommodity.data._core.date_checks import DateLike, to_day
from torchcommodity.data._core.errors import DataError, Finding, summarize_names
from torchcommodity.data._core.panel_fields import (
    TableLayout,
    align_references,
    check_bars,
    check_contracts,
    check_references,
    check_shape,
    check_values,
    is_generated,
    join_panels,
    panel_frame,
    same_months,
    same_values,
)
from torchcommodity.data._core.prices import Months
from torchcommodity.data._core.provenance import Provenance, SyntheticTensor, check_names, check_several, is_synthetic
from torchcommodity.data._core.rolls import check_deliveries, column_roll_months, move_to_prices

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, eq=False)
class Panel:
    """Prices `(T, N)` of N symbols on T dates, with units and provenance.

    Args:
        values: prices `(T, N)` in the units of their columns, float64, NaN = missing; stored as a `MetadataTensor` with
            `symbols`, `units` and `provenance`. Zero and negative prices are valid.
        dates: `(T,)`, strictly increasing, without NaT; stored as `datetime64[D]`.
        symbols: N distinct names of 1 to 128 visible characters: not a path, not a formula of a spreadsheet (no
            `= + - @` at the start), without `<`, `>` and backslash.
        units: N units, such as "$/bbl", by the same rule; "" where not stated.
        provenance: N records.
        contracts: N product codes, keys of `data.CONTRACTS`; None = a spot price, or no futures calendar is known.
            Default: all None.
        curve: closes of the nearby contracts `(T, N, C)`, the first in column 0, in the units of their symbols,
            float64, NaN = missing; or None.
        findings: data-quality warnings, each with its treatment.
        deliveries: delivery month of the contract behind each price `(T, N) datetime64[M]`, NaT = not known; or None.
            Where it is known, rolls are those that the series made; otherwise those of the exchange's rule.
        read_as: how a file, a frame or the store was read, such as "yfinance, column Close, 1 symbol"; else "".
        averages: for each symbol whether its prices are averages of their period, as the World Bank's are of the month,
            and not prices of its last day. Forecasts expect the memory of averages, see `with_averages`. Default: all
            False.
        calendars: for each symbol without a contract the trading days of its market, on which the dates ahead of a
            forecast are: a name of pandas_market_calendars; None = the New York Stock Exchange. Default: all None.
        references: further prices on the same dates, which help to forecast those of `values` and are not forecast
            themselves, see `with_references`; or None.
        curve_of: N product codes of spot prices whose `curve` has the nearby contracts of that product, in any unit,
            see `with_curve`; None = the curve is that of the front-month series itself, or there is none. Default: all
            None.
        bars: open, high and low of each row `(T, N, 3)`, in the units of their symbols, float64, NaN = missing; or
            None. Forecasts take the variance of a day from them, see `usable_ranges`.

    Raises:
        DataError: no row, no column, shapes that do not agree, dates not strictly increasing, a repeated symbol, an
            infinite price, an unknown product code, a curve in another unit, synthetic values in a column that is not
            marked as synthetic, a curve of another product for a future.

    >>> from torchcommodity import data
    >>> data.embedded(["WTI", "BRENT"]).between("2014-01-03", "2018-12-31").values.shape
    torch.Size([1277, 2])
    """

    values: MetadataTensor
    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    provenance: tuple[Provenance, ...]
    contracts: tuple[str | None, ...] = ()
    curve: MetadataTensor | None = None
    findings: tuple[Finding, ...] = ()
    deliveries: Months | None = None
    read_as: str = ""
    averages: tuple[bool, ...] = ()
    calendars: tuple[str | None, ...] = ()
    references: "Panel | None" = None
    curve_of: tuple[str | None, ...] = ()
    bars: MetadataTensor | None = None

    def __post_init__(self) -> None:
        symbols, units, provenance = tuple(self.symbols), tuple(self.units), tuple(self.provenance)
        contracts = tuple(self.contracts) or (None,) * len(symbols)
        dates = np.array(self.dates, dtype="datetime64[D]")
        dates.flags.writeable = False
        prices = torch.as_tensor(self.values).to(torch.float64)
        check_shape(prices, dates, symbols, units, provenance)
        check_names(symbols, units)
        check_values(prices, dates, symbols, provenance)
        check_contracts(contracts, symbols)
        metadata = {"symbols": symbols, "units": units, "provenance": provenance}
        kind = SyntheticTensor if any(map(is_generated, symbols, provenance)) else MetadataTensor
        fields: dict[str, Any] = {**metadata, "values": kind(prices, **metadata), "dates": dates}
        averages = tuple(map(bool, self.averages)) or (False,) * len(symbols)
        if len(averages) != len(symbols):
            raise DataError(f"panel: expected averages of {len(symbols)} symbols; got {len(averages)}")
        calendars = tuple(self.calendars) or (None,) * len(symbols)
        if len(calendars) != len(symbols):
            raise DataError(f"panel: expected calendars of {len(symbols)} symbols; got {len(calendars)}")
        fields |= {"contracts": contracts, "findings": tuple(self.findings)}
        fields |= {"averages": averages, "calendars": calendars}
        fields["curve_of"] = curve_of = tuple(self.curve_of) or (None,) * len(symbols)
        check_curve_of(curve_of, symbols, contracts)
        if self.curve is not None:
            checked = check_curve(self.curve, prices, symbols, dates, curve_of)
            fields["curve"] = MetadataTensor(checked, **metadata)
        if self.deliveries is not None:
            fields["deliveries"] = np.array(self.deliveries, dtype="datetime64[M]")
            check_deliveries(fields["deliveries"], dates, symbols)
        if self.references is not None:
            check_references(self.references, dates, symbols)
        if self.bars is not None:
            fields["bars"] = MetadataTensor(check_bars(self.bars, prices, dates, symbols), **metadata)
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen; this is its constructor

    def __len__(self) -> int:
        return len(self.dates)

    @property
    def synthetic(self) -> bool:
        """Whether a column is marked as generated by its symbol or publisher; training and scoring reject such data."""
        return is_synthetic(self.values)

    @property
    def frequency(self) -> Frequency:
        """`daily`, `weekly` or `monthly`, from the median spacing of the rows that have a price.

        Up to 3 days apart are daily, up to 14 weekly, further ones monthly; a panel with one such row is daily.
        """
        has_price = torch.isfinite(self.values.plain()).any(dim=1).numpy()
        return infer_frequency(self.dates[has_price])

    def __getitem__(self, symbols: str | Sequence[str]) -> "Panel":
        return self.select([symbols] if isinstance(symbols, str) else symbols)

    def select(self, symbols: Iterable[str]) -> "Panel":
        """Select symbols, in this order, on all dates.

        Raises:
            TypeError: one name instead of a list.
            DataError: an unknown symbol; the message lists the known symbols.
        """
        check_several("select", symbols)
        symbols, columns = list(symbols), {symbol: column for column, symbol in enumerate(self.symbols)}
        if unknown := [symbol for symbol in symbols if symbol not in columns]:
            known = summarize_names(self.symbols, limit=20)
            raise DataError(f"symbols: expected names among {known}; got {summarize_names(map(repr, unknown))}")
        indices = [columns[symbol] for symbol in symbols]
        return replace(
            self,
            values=MetadataTensor(self.values.plain()[:, indices]),
            symbols=tuple(symbols),
            units=tuple(self.units[c] for c in indices),
            provenance=tuple(self.provenance[c] for c in indices),
            contracts=tuple(self.contracts[c] for c in indices),
            curve=None if self.curve is None else MetadataTensor(self.curve[:, indices]),
            findings=tuple(finding for finding in self.findings if finding.symbol in ("", *symbols)),
            deliveries=None if self.deliveries is None else self.deliveries[:, indices],
            averages=tuple(self.averages[c] for c in indices),
            calendars=tuple(self.calendars[c] for c in indices),
            curve_of=tuple(self.curve_of[c] for c in indices),
            bars=None if self.bars is None else MetadataTensor(self.bars[:, indices]),
        )

    def between(self, first: DateLike = None, last: DateLike = None) -> "Panel":
        """Select the rows from `first` to `last`, both included; None = no bound.

        Raises:
            DataError: no row in between.
        """
        inside = np.ones(len(self), dtype=bool)
        if first is not None:
            inside &= self.dates >= to_day(first)
        if last is not None:
            inside &= self.dates <= to_day(last)
        if not inside.any():
            raise DataError(f"dates: expected rows between {first} and {last}; got {self.dates[0]} to {self.dates[-1]}")
        return self._rows(inside)

    def drop_empty_rows(self) -> "Panel":
        """Drop the rows on which no symbol has a price; at least one row is kept.

        >>> from torchcommodity import data
        >>> len(data.embedded()), len(data.embedded()["HENRY_HUB"].drop_empty_rows())
        (10411, 7436)
        """
        has_price = torch.isfinite(self.values.plain()).any(dim=1).numpy()
        return self if has_price.all() or not has_price.any() else self._rows(has_price)

    def _rows(self, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> "Panel":
        rows = torch.from_numpy(mask)
        return replace(
            self,
            values=MetadataTensor(self.values.plain()[rows]),
            dates=self.dates[mask],
            curve=None if self.curve is None else MetadataTensor(self.curve[rows]),
            deliveries=None if self.deliveries is None else self.deliveries[mask],
            references=None if self.references is None else self.references._rows(mask),
            bars=None if self.bars is None else MetadataTensor(self.bars[rows]),
        )

    def join(self, *others: "Panel") -> "Panel":
        """Join further symbols: all of them on the dates of any panel, NaN where a panel has no row.

        Contracts, curves, bars, references and findings come along; a symbol is no longer a reference of the others.

        Raises:
            DataError: a symbol in two panels; panels of several frequencies.

        >>> from torchcommodity import data
        >>> oil = data.embedded(["BRENT", "WTI"])
        >>> oil.join(data.spread(oil, "BRENT-WTI")).symbols
        ('BRENT', 'WTI', 'BRENT-WTI')
        """
        return join_panels([self, *others])

    def with_contracts(self, contracts: Mapping[str, str | None]) -> "Panel":
        """Declare symbols as front-month futures of products, or as spot (None); other symbols are unchanged.

        >>> from torchcommodity import data
        >>> data.embedded().with_contracts({"WTI": "CL"}).contracts
        ('CL', None, None)
        """
        self.select(contracts or self.symbols)  # raises for an unknown symbol
        merged = {**dict(zip(self.symbols, self.contracts)), **contracts}
        # a symbol that is a future has the curve of its own contracts
        curve_of = [None if merged[symbol] else code for symbol, code in zip(self.symbols, self.curve_of)]
        return replace(self, contracts=tuple(merged.values()), curve_of=tuple(curve_of))

    def with_references(self, references: "Iterable[str] | Panel | None") -> "Panel":
        """Declare prices that help to forecast the others: prices of related goods revert toward each other.

        `forecast.fit` finds the relations. References keep only the rows on which one of the other symbols has a price.

        Args:
            references: names of symbols of this panel, which leave it; or another panel, of which the symbols that
                are not in this one are used, on the dates of this one. Both add to the references that there are. None:
                no references.

        Raises:
            DataError: an unknown symbol, no symbol left to forecast, no date or no further symbol in the other panel.

        >>> from torchcommodity import data
        >>> data.embedded(["WTI", "BRENT"]).with_references(["BRENT"])
        Panel(10226 dates 1986-01-02 to 2026-08-18, 1 symbol: WTI; 1 reference: BRENT)
        """
        if references is None:
            return replace(self, references=None)
        if isinstance(references, Panel):
            return replace(self, references=align_references(references, self))
        check_several("with_references", references)
        names = list(references)
        if not names:
            return self
        others, rest = self.select(names), [symbol for symbol in self.symbols if symbol not in names]
        if not rest:
            raise DataError("references: expected a symbol that is not a reference, to be forecast; got none")
        return self.select(rest).with_references(others).drop_empty_rows()

    def with_averages(self, symbols: Iterable[str] | None = None) -> "Panel":
        """Declare the prices of these symbols as averages of their period, those of all others as not.

        Returns of averages are correlated: of a price that rose late in the month, a part of the rise reaches only the
        next average. `forecast.fit` expects that part, see `training.moving_average`.

        Args:
            symbols: names; None = all symbols.

        >>> from torchcommodity import data
        >>> data.embedded(["WTI", "BRENT"]).with_averages(["BRENT"]).averages
        (False, True)
        """
        names = self.symbols if symbols is None else tuple(symbols)
        self.select(names or self.symbols)  # raises for an unknown symbol
        return replace(self, averages=tuple(symbol in names for symbol in self.symbols))

    def with_calendars(self, calendars: "str | Mapping[str, str | None]") -> "Panel":
        """State the calendar of the market of symbols without a contract: dates ahead of a forecast are on it.

        Args:
            calendars: name of a calendar of pandas_market_calendars, such as "XSHG" or "24/5", for all symbols, or
                names by symbol; other symbols are unchanged. Those with a contract have the calendar of its exchange.

        Raises:
            DataError: an unknown calendar or symbol.

        >>> from torchcommodity import data
        >>> data.embedded(["WTI", "BRENT"]).with_calendars({"WTI": "24/5"}).calendars
        ('24/5', 'LSE')
        """
        names = dict.fromkeys(self.symbols, calendars) if isinstance(calendars, str) else calendars
        self.select(names or self.symbols)  # raises for an unknown symbol
        for name in names.values():
            trading_calendar(None, name)  # raises for an unknown calendar
        return replace(self, calendars=tuple({**dict(zip(self.symbols, self.calendars)), **names}.values()))

    def with_curve(self, curve: "Curve | torch.Tensor", curve_of: Mapping[str, str | None] | None = None) -> "Panel":
        """Add the closes of nearby contracts: a `Curve` of `data.read_curve`, or a tensor `(T, N, C)`.

        A `Curve` is aligned by date and by symbol or product: NaN where it has no close; what else it has is dropped.
        It says of a front-month future what the coming rolls change, and of a spot price where it goes.

        Args:
            curve: the closes.
            curve_of: product codes of spot prices, such as {"HEATING_OIL_NYH": "HO"}; several may have one product.
                WTI, BRENT and HENRY_HUB without a contract have CL, BRN and NG, if the `Curve` has it.

        Raises:
            DataError: no row or symbol in common with the panel, a future whose curve is of another series; for spot
                prices an unknown symbol or product, one without a contract for every month, a curve of one contract, or
                prices that are not daily.

        >>> from torchcommodity import data
        >>> wti = data.embedded(["WTI"]).between("2020-04-20", "2020-04-21")
        >>> closes = torch.tensor([[[-37.63, 20.43]], [[10.01, 11.57]]])
        >>> wti.with_curve(data.Curve(closes, wti.dates, ("CL",))).curve_of
        ('CL',)
        """
        self.select(curve_of or self.symbols)  # raises for an unknown symbol
        findings, products = self.findings, {**dict(zip(self.symbols, self.curve_of)), **(curve_of or {})}
        if isinstance(curve, Curve):
            if curve_of is None:
                products |= curve.spot_products(symbol for symbol, spot in zip(self.symbols, self.spot) if spot)
            codes = {symbol: code or products[symbol] for symbol, code in zip(self.symbols, self.contracts)}
            names, has_own = curve.column_names(codes), [products[symbol] is None for symbol in self.symbols]
            if missing := [f"{s}={c}" for s, c in products.items() if c and not {s, c} & {*curve.symbols}]:
                known = summarize_names(curve.symbols, limit=20)
                raise DataError(f"curve_of: expected products of the curve, {known}; got {summarize_names(missing)}")
            findings += (*curve.findings, *curve.check_end(self.dates, names))
            curve = curve.align(self.dates, names)
            series = [symbol for symbol, own in zip(self.symbols, has_own) if own]
            check_same_series(curve[:, has_own], self.values.plain()[:, has_own], series)
        if any(products.values()):
            check_spot_curve(curve, self.frequency)
        return replace(self, curve=MetadataTensor(curve), findings=findings, curve_of=tuple(products.values()))

    def rolls(self, ahead: int = 126) -> torch.Tensor:
        """Flag the rows on which a column switches to its next contract; `(T + ahead, N)` int64.

        The flag is the calendar month of the roll, or 0. It is set on the first row with a positive price, or any price
        of a spread, on or after the day of the rule, or on which the delivery month changes where it is known: the
        return of that row contains the roll gap. A column without contract and delivery months has no flags. See
        `data.roll_months` for the rows ahead.

        >>> from torchcommodity import data
        >>> wti = data.embedded(["WTI"]).between("2018-12-01", "2019-01-03").with_contracts({"WTI": "CL"})
        >>> wti.dates[wti.rolls(ahead=0)[:, 0] > 0]
        array(['2018-12-20'], dtype='datetime64[D]')
        """
        prices, flags = self.values.plain().detach().numpy(), self.roll_months(ahead).numpy()
        return torch.from_numpy(np.stack([move_to_prices(flags[:, n], column) for n, column in enumerate(prices.T)], 1))

    def roll_months(self, ahead: int = 126) -> torch.Tensor:
        """`rolls` on the days of the roll, with or without a price, as `data.roll_months` flags those of one product.

        >>> from torchcommodity import data
        >>> wti = data.embedded(["WTI"]).between("2018-12-01", "2019-01-03").with_contracts({"WTI": "CL"})
        >>> wti.roll_months(ahead=0).shape == wti.values.shape
        True
        """
        deliveries = [None] * len(self.symbols) if self.deliveries is None else list(self.deliveries.T)
        columns = [
            column_roll_months(code, self.dates, months, ahead) for code, months in zip(self.contracts, deliveries)
        ]
        return torch.from_numpy(np.stack(columns, axis=1))

    def open_days(self) -> torch.Tensor:
        """Whether the market of each column is open on each row, by the exchange's calendar alone; `(T, N)` bool.

        A daily panel of several exchanges has rows on which some of them are closed. A spot price, and a row of weekly
        or monthly prices, is always open.

        >>> from torchcommodity import data
        >>> wti = data.embedded(["WTI"]).between("2018-12-20", "2018-12-27").with_contracts({"WTI": "CL"})
        >>> bool(wti.open_days().all())  # the panel has no row on Christmas Day
        True
        """
        columns = [
            np.ones(len(self), dtype=bool)
            if code is None or self.frequency != "daily"
            else np.is_busday(self.dates, busdaycal=trading_calendar(code))
            for code in self.contracts
        ]
        return torch.from_numpy(np.stack(columns, axis=1))

    @property
    def spot(self) -> tuple[bool, ...]:
        """For each symbol whether it is a spot price: without a contract, and without months of delivery."""
        if self.deliveries is None:
            return tuple(code is None for code in self.contracts)
        return tuple(code is None and np.isnat(held).all() for code, held in zip(self.contracts, self.deliveries.T))

    @property
    def has_own_rolls(self) -> bool:
        """Whether a column rolled on other days than by the rule of its exchange, as its `deliveries` tell."""
        scheduled = replace(self, deliveries=None).roll_months(ahead=0)
        return not torch.equal(self.roll_months(ahead=0), scheduled)

    def equals(self, other: "Panel") -> bool:
        """Whether two panels are equal, with NaN equal to NaN.

        Values, dates, symbols, units, provenance, contracts, averages, calendars, curve and its products,
        deliveries, references and bars are compared; findings are not.
        """
        return (
            (self.symbols, self.units, self.provenance) == (other.symbols, other.units, other.provenance)
            and (self.contracts, self.averages, self.curve_of) == (other.contracts, other.averages, other.curve_of)
            and self.calendars == other.calendars
            and np.array_equal(self.dates, other.dates)
            and same_values(self.values, other.values)
            and same_values(self.curve, other.curve)
            and same_values(self.bars, other.bars)
            and same_months(self.deliveries, other.deliveries)
            and (self.references is None) == (other.references is None)
            and (self.references is None or other.references is None or self.references.equals(other.references))
        )

    def to_pandas(self, layout: TableLayout = "wide") -> "pd.DataFrame":
        """Copy the prices to a pandas DataFrame, NaN = missing; without those of the references.

        Args:
            layout: "wide": index `date`, one column per symbol; "long": columns `date`, `symbol`, `price` and `unit`,
                one row per date and symbol, sorted by symbol and date.

        >>> from torchcommodity import data
        >>> data.embedded().to_pandas("long")[["symbol", "price", "unit"]].head(1).values.tolist()
        [['WTI', 25.56, '$/bbl']]
        """
        return panel_frame(self, layout)

    def to_polars(self, layout: TableLayout = "wide") -> "pl.DataFrame":
        """Copy the prices to a polars DataFrame with a `date` column; NaN = missing. Layouts as for `to_pandas`."""
        import polars as pl

        frame = self.to_pandas(layout)
        frame = frame.reset_index() if layout == "wide" else frame
        return pl.from_pandas(frame, nan_to_null=False).with_columns(pl.col("date").cast(pl.Date))

    def sources(self) -> list[dict[str, str]]:
        """Symbol, unit, contract ("" = spot), provenance and settings of each column, for JSON and tables."""
        columns = zip(self.symbols, self.units, self.contracts, self.provenance, self.settings)
        return [
            {"symbol": symbol, "unit": unit, "contract": code or "", **asdict(record), **settings}
            for symbol, unit, code, record, settings in columns
        ]

    @property
    def settings(self) -> list[dict[str, str]]:
        """Of each column what `with_averages`, `with_calendars` and `with_curve` stated, for files and the store."""
        columns = zip(("yes" if average else None for average in self.averages), self.calendars, self.curve_of)
        names = ("averages", "calendar", "curve_of")
        return [{name: text for name, text in zip(names, column) if text} for column in columns]

    def with_settings(self, settings: Iterable[Mapping[str, str]]) -> "Panel":
        """The panel with `settings`, one per column; products of curves only if it has a curve."""
        columns = list(settings)
        averages, calendars, products = (
            tuple(column.get(name) or None for column in columns) for name in ("averages", "calendar", "curve_of")
        )
        products = () if self.curve is None else products
        return replace(self, averages=tuple(map(bool, averages)), calendars=calendars, curve_of=products)

    def credits(self) -> tuple[str, ...]:
        """The credit lines of the columns, each once: show them wherever the prices are shown.

        >>> from torchcommodity import data
        >>> data.embedded().credits()
        ('Source: U.S. Energy Information Administration (Aug 2026; petroleum products Dec 2025)',)
        """
        return tuple(dict.fromkeys(record.credit for record in self.provenance if record.credit))

    def __repr__(self) -> str:
        noun = "symbol" if len(self.symbols) == 1 else "symbols"
        symbols = f"{len(self.symbols)} {noun}: {summarize_names(self.symbols, limit=6)}"
        if self.references is not None:
            names = self.references.symbols
            symbols += f"; {len(names)} reference{'s' * (len(names) > 1)}: {summarize_names(names, limit=2)}"
        return f"Panel({len(self)} dates {self.dates[0]} to {self.dates[-1]}, {symbols})"

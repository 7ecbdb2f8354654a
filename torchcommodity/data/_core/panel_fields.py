"""What the fields of a panel must be: prices, bars and references; and its table as a pandas DataFrame."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from torch_opkit import MetadataTensor
from torchcommodity._extras import extra
from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.errors import DataError, Finding, make_finding, summarize_names
from torchcommodity.data._core.prices import Dates, expected_range, overflows
from torchcommodity.data._core.provenance import SYNTHETIC, Provenance, is_synthetic

if TYPE_CHECKING:
    import pandas as pd

    from torchcommodity.data._core.panel import Panel

MIN_RANGE_SHARE = 0.5  # of the rows of a symbol; with fewer usable ranges its closes alone are used
MIN_ROWS = 20  # of a panel whose frequency must be that of the panel that it joins
TableLayout = Literal["wide", "long"]


def check_contracts(contracts: tuple[str | None, ...], symbols: tuple[str, ...]) -> None:
    """Raise a `DataError` unless each symbol has one known product code or None."""
    if len(contracts) != len(symbols):
        raise DataError(
            f"panel: expected a contract or None for each of {len(symbols)} symbols; got {len(contracts)} contracts"
        )
    for code in contracts:
        if code is not None:
            get_contract(code)


def is_generated(symbol: str, record: Provenance) -> bool:
    """Whether a column is marked as generated, in its symbol or its publisher."""
    return is_synthetic(symbol) or SYNTHETIC in record.publisher.split(", ")


def check_shape(
    prices: torch.Tensor,
    dates: Dates,
    symbols: tuple[str, ...],
    units: tuple[str, ...],
    provenance: tuple[Provenance, ...],
) -> None:
    """Shapes agree, nothing is empty, symbols are distinct."""
    expected = (len(dates), len(symbols))
    if tuple(prices.shape) != expected or 0 in expected:
        raise DataError(
            f"panel: expected values of shape (dates, symbols) = {expected}, none of them 0; got {tuple(prices.shape)}"
        )
    if not len(symbols) == len(units) == len(provenance):
        got = f"{len(units)} and {len(provenance)}"
        raise DataError(f"panel: expected a unit and a provenance for each of {len(symbols)} symbols; got {got}")
    if len(set(symbols)) < len(symbols):
        repeated = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise DataError(f"panel: expected distinct symbols; got {repeated!r} twice")


def check_values(
    prices: torch.Tensor,
    dates: Dates,
    symbols: tuple[str, ...],
    provenance: tuple[Provenance, ...],
) -> None:
    """Dates increase, prices are finite or NaN, and synthetic values are marked."""
    if np.isnat(dates).any():
        raise DataError("panel: expected dates; got NaT")
    if (late := np.flatnonzero(np.diff(dates) <= np.timedelta64(0, "D"))).size:
        before, after = dates[late[0]], dates[late[0] + 1]
        hint = "; convert intraday prices to daily closes, e.g. frame.resample('D').last()" if before == after else ""
        raise DataError(f"panel: expected strictly increasing dates; got {before}, then {after}{hint}")
    if is_synthetic(prices) and not any(map(is_generated, symbols, provenance)):
        raise DataError(
            f"panel: expected {SYNTHETIC!r} as publisher of synthetic values; got {provenance[0].publisher!r}"
        )
    if (unusable := torch.nonzero(overflows(prices))).numel():
        row, column = unusable[0].tolist()
        where = f"for {symbols[column]!r} on {dates[row]}"
        raise DataError(f"panel: expected {expected_range(prices[row, column].item())} {where}")


def same_values(x: torch.Tensor | None, y: torch.Tensor | None) -> bool:
    """Whether two tensors have the same shape and values; NaN equals NaN."""
    if x is None or y is None:
        return x is y
    return bool(x.shape == y.shape) and torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)


def same_months(x: Dates | None, y: Dates | None) -> bool:
    """Whether two arrays of months are equal; NaT equals NaT."""
    if x is None or y is None:
        return x is y
    return np.array_equal(x.astype(np.int64), y.astype(np.int64))


def usable_ranges(closes: Tensor, bars: Tensor) -> Tensor:  # (..., T, N), (..., T, N, 3) -> (..., T, N) bool
    """Rows with a range: open, high, low and close are positive, and the high is above the low.

    A close or open outside the range is no error: a settlement often is. The range then reaches up to it.

    >>> closes = torch.tensor([[70.4], [72.7], [73.1]])
    >>> bars = torch.tensor([[[71.7, 73.6, 70.1]], [[72.7, 72.7, 72.7]], [[73.0, 74.0, 0.0]]])  # open, high, low
    >>> usable_ranges(closes, bars)[:, 0]
    tensor([ True, False, False])
    """
    positive = ((bars > 0) & (bars < torch.inf)).all(-1) & (closes > 0) & (closes < torch.inf)
    return positive & (bars[..., 1] > bars[..., 2])


def range_share(closes: Tensor, bars: Tensor) -> Tensor:  # (T, N), (T, N, 3) -> (N,)
    """Share of the rows with a positive close that have a usable range; zero without any."""
    usable = usable_ranges(closes, bars).sum(0)
    return usable / (closes > 0).sum(0).clamp(min=1)


BAR = ("open", "high", "low")  # along the last axis of bars


def bar_columns(symbols: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of open, high and low in a table that has a column for each symbol.

    >>> bar_columns(["WTI"])
    ('WTI open', 'WTI high', 'WTI low')
    """
    return tuple(f"{symbol} {field}" for symbol in symbols for field in BAR)


def check_bars(bars: Tensor, closes: Tensor, dates: Dates, symbols: Sequence[str]) -> Tensor:  # (T, N, 3) float64
    """The bars without metadata.

    Raises:
        DataError: another shape, or a price that overflows.
    """
    values = torch.as_tensor(bars, dtype=torch.float64).as_subclass(Tensor)
    if values.shape != (*closes.shape, 3):
        rule = f"(T, N, 3) = {(*closes.shape, 3)}: open, high, low"
        raise DataError(f"panel: expected bars of shape {rule}; got {tuple(values.shape)}")
    if (wrong := overflows(values).nonzero()).numel():
        row, n, field = wrong[0].tolist()
        where = f"as {BAR[field]} of {symbols[n]!r} on {dates[row]}"
        raise DataError(f"panel: expected {expected_range(values[row, n, field].item())} {where}")
    return values


def range_findings(closes: Tensor, bars: Tensor, dates: Dates, symbols: Sequence[str]) -> Iterator[Finding]:
    """A finding for each symbol with ranges that are not usable; one for each whose closes alone are used."""
    usable, shares = usable_ranges(closes, bars), range_share(closes, bars).tolist()
    wrong = (closes > 0) & bars.isfinite().all(-1) & ~usable
    for n, symbol in enumerate(symbols):
        if rows := wrong[:, n].nonzero()[:, 0].tolist():
            prices = "open {:g}, high {:g}, low {:g}".format(*bars[rows[0], n].tolist())
            reason = "the high must be above the low" if (bars[rows[0], n] > 0).all() else "prices must be positive"
            yield make_finding("bad range", symbol, dates[rows[0]], value=f"{prices}; {reason}", count=len(rows))
        if shares[n] < MIN_RANGE_SHARE:
            count, total = int(usable[:, n].sum()), int((closes[:, n] > 0).sum())
            value = f"{count:,} of {total:,} rows with a usable range"
            yield make_finding("few ranges", symbol, value=value)


def check_references(references: "Panel", dates: Dates, symbols: Sequence[str]) -> None:
    """Raise DataError unless the references are on the same dates, and symbols of their own."""
    if both := [symbol for symbol in references.symbols if symbol in symbols]:
        raise DataError(f"panel: expected references other than its symbols; got {summarize_names(both)}")
    if not np.array_equal(references.dates, dates):
        raise DataError("panel: expected references on the dates of the panel; got others; see with_references")


def align_references(references: "Panel", panel: "Panel") -> "Panel":
    """The references of a panel and those of the other panel that it lacks, on its dates; NaN where there is no row.

    They are prices and no more: without contracts, curve and references of their own.
    """
    before = panel.references
    known = {*panel.symbols, *(() if before is None else before.symbols)}
    names = [symbol for symbol in references.symbols if symbol not in known]
    rows = np.searchsorted(references.dates, panel.dates).clip(max=len(references) - 1)
    shared = references.dates[rows] == panel.dates
    if not names and before is not None:
        return before
    if not names or not shared.any():
        spans = f"{references.dates[0]} to {references.dates[-1]} for {panel.dates[0]} to {panel.dates[-1]}"
        got = f"the symbols {summarize_names(references.symbols)}" if shared.any() else spans
        raise DataError(f"references: expected further symbols on dates of the panel; got {got}")
    others = references.select(names)
    values = others.values.plain()[torch.from_numpy(rows)].where(torch.from_numpy(shared)[:, None], torch.nan)
    units, provenance = others.units, others.provenance
    if before is not None:
        values = torch.cat([before.values.plain(), values], 1)
        names, units, provenance = [*before.symbols, *names], before.units + units, before.provenance + provenance
    return type(panel)(MetadataTensor(values), panel.dates, tuple(names), units, provenance)


def join_panels(panels: Sequence["Panel"]) -> "Panel":
    """The symbols of all panels on the dates of any of them, NaN where a panel has no row; see `Panel.join`."""
    if others := [type(panel).__name__ for panel in panels if not isinstance(panel, type(panels[0]))]:
        raise TypeError(f"join: expected panels, as data.to_panel makes them; got {summarize_names(others)}")
    symbols = [symbol for panel in panels for symbol in panel.symbols]
    if repeated := list(dict.fromkeys(symbol for symbol in symbols if symbols.count(symbol) > 1)):
        raise DataError(f"join: expected distinct symbols; got {summarize_names(repeated)} in two panels")
    # few rows have no frequency: that of a spread of few prices may be another than that of its legs
    if len(frequencies := list(dict.fromkeys(panel.frequency for panel in panels if len(panel) >= MIN_ROWS))) > 1:
        raise DataError(f"join: expected panels of one frequency; got {' and '.join(frequencies)} prices")
    dates: Dates = np.unique(np.concatenate([panel.dates for panel in panels]))
    ends = np.cumsum([0, *(len(panel.symbols) for panel in panels)])
    depth = max(0 if panel.curve is None else panel.curve.shape[2] for panel in panels)
    fields = {
        "values": torch.full((len(dates), len(symbols)), torch.nan, dtype=torch.float64),
        "curve": torch.full((len(dates), len(symbols), depth), torch.nan, dtype=torch.float64),
        "bars": torch.full((len(dates), len(symbols), 3), torch.nan, dtype=torch.float64),
    }
    deliveries = np.full((len(dates), len(symbols)), np.datetime64("NaT", "M"), dtype="datetime64[M]")
    for panel, first, last in zip(panels, ends, ends[1:]):
        rows = np.searchsorted(dates, panel.dates)
        for name, values in fields.items():
            if (own := getattr(panel, name)) is not None:
                block = values[:, first:last] if own.ndim == 2 else values[:, first:last, : own.shape[2]]
                block[torch.from_numpy(rows)] = own.plain()
        if panel.deliveries is not None:
            deliveries[rows, first:last] = panel.deliveries
    joined = type(panels[0])(
        MetadataTensor(fields["values"]),
        dates,
        tuple(symbols),
        tuple(unit for panel in panels for unit in panel.units),
        tuple(record for panel in panels for record in panel.provenance),
        contracts=tuple(code for panel in panels for code in panel.contracts),
        curve=MetadataTensor(fields["curve"]) if depth else None,
        findings=tuple(dict.fromkeys(finding for panel in panels for finding in panel.findings)),
        deliveries=deliveries if any(panel.deliveries is not None for panel in panels) else None,
        read_as=panels[0].read_as,
        averages=tuple(average for panel in panels for average in panel.averages),
        calendars=tuple(name for panel in panels for name in panel.calendars),
        curve_of=tuple(code for panel in panels for code in panel.curve_of),
        bars=MetadataTensor(fields["bars"]) if any(panel.bars is not None for panel in panels) else None,
    )
    for panel in panels:
        if panel.references is not None and set(panel.references.symbols) - {*symbols}:
            joined = joined.with_references(panel.references)
    return joined


def panel_frame(panel: "Panel", layout: TableLayout) -> "pd.DataFrame":
    """The table of `Panel.to_pandas`, a copy."""
    with extra("forecast"):
        import pandas as pd

    if layout not in ("wide", "long"):
        raise ValueError(f"to_pandas: layout must be wide or long; got {layout!r}")
    prices = panel.values.plain().detach().numpy().copy()
    if layout == "wide":
        index = pd.DatetimeIndex(panel.dates, name="date")
        frame: pd.DataFrame = pd.DataFrame(prices, index=index, columns=list(panel.symbols))
    else:
        T, N = prices.shape
        columns = {
            "date": pd.DatetimeIndex(np.tile(panel.dates, N)),
            "symbol": np.repeat(np.array(panel.symbols, dtype=object), T),
            "price": prices.T.ravel(),
            "unit": np.repeat(np.array(panel.units, dtype=object), T),
        }
        frame = pd.DataFrame(columns)
    return frame

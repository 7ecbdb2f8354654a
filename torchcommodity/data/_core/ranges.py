"""Bars of a panel: open, high and low beside its closes, which ranges are usable, and what is wrong with others."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from torchcommodity.data._core.errors import DataError, Finding, make_finding
from torchcommodity.data._core.prices import Dates, expected_range, overflows

MIN_RANGE_SHARE = 0.5  # of the rows of a symbol; with fewer usable ranges its closes alone are used


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


def bar_columns(symbols: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of open, high and low in a table that has a column for each symbol.

    >>> bar_columns(["WTI"])
    ('WTI open', 'WTI high', 'WTI low')
    """
    return tuple(f"{symbol} {field}" for symbol in symbols for field in ("open", "high", "low"))


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
        where = f"as {('open', 'high', 'low')[field]} of {symbols[n]!r} on {dates[row]}"
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

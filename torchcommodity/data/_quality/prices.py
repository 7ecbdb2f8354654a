"""Prices of one symbol: whether they are forecast as logs or as asinh(P / S), and what is doubtful about them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from torch_opkit.arguments import current_operation
from torchcommodity.data._core.calendar import Frequency, frequency_mismatch, latest_date
from torchcommodity.data._core.errors import Finding, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array, may_be_negative
from torchcommodity.data._core.provenance import check_several

SIGNED = "signed prices"  # kind of finding
RATIO_KINDS = {"nonpositive", "jump", "decimal slip"}  # rules of positive prices
LONG_GAP = 10  # business days; a slower series (monthly) is measured against its own step
SLOW_STEP = 3  # times the median step of the series
STALE_RUN = {"daily": 10, "weekly": 8, "monthly": 6}  # equal prices in a row
FROZEN_RUN = 5  # equal prices at the end
JUMP = 5.0  # factor, up or down; the largest of 146 real daily and monthly series is 4.4
SLIP_ROWS = 5  # longest decimal slip
SLIP_FACTOR = 1.25  # from 10, 100 or 1000; and, twice that, from the price before to the price after
FEW_CHANGES = 0.5  # share of unchanged prices
MIN_MOVES = 50  # moves or prices from which a share is told
BOTH_SIGNS = 0.2  # least share of negative, and of positive, values of returns
SMOOTH = 0.1  # share of the squared changes from change to change; of independent ones it is 2
EQUAL_SIZES = 1e-6  # relative variance of the sizes of changes
MEMORY = 0.5  # first autocorrelation of levels: returns are below, prices and spreads far above
BLOCK = 20  # prices that are repeated in a block
EXTREME = 1e9  # a magnitude at or above, or at or below its inverse
MIN_EQUAL = 20  # equal prices of two symbols
# of hashes of 2, 4, 8, 16 and 20 prices: odd numbers of 64 bits
MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F],
    dtype=np.uint64,
)


@dataclass(frozen=True)
class PriceForm:
    """How a model takes the prices of a symbol.

    Args:
        symbol: its name.
        form: "log" for ln P, where prices of zero or below are missing, or "asinh" for asinh(P / S).
        reason: what the prices say of it; empty for positive prices.
    """

    symbol: str
    form: Literal["log", "asinh"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.symbol} {self.form}" + (f": {self.reason}" if self.reason else "")


def price_forms(panel: Panel, signed: Iterable[str] = ()) -> tuple[PriceForm, ...]:
    """Decide for each symbol whether it is forecast in logs or in asinh(P / S).

    A symbol with at least two different negative prices, or one of `signed`, is "asinh". All others are "log": a single
    negative price, one number in the place of missing prices, such as -999, and prices of zero are left out of returns.

    Args:
        panel: the prices of a fit.
        signed: symbols whose prices may be zero or negative, whatever they were so far.

    Raises:
        ValueError: `signed` names a symbol that the panel lacks.
        TypeError: `signed` is a text.

    >>> from torchcommodity import data
    >>> oil = data.embedded(["BRENT", "WTI"])
    >>> print(*price_forms(oil), sep="; ")
    BRENT log; WTI log: one price below zero, -36.98 on 2020-04-20: left out of returns
    >>> print(price_forms(oil, signed=["WTI"])[1])
    WTI asinh: signed; 1 of 10,226 prices is below zero
    """
    check_several(current_operation("price_forms"), signed)
    signed = tuple(signed)
    if unknown := [symbol for symbol in signed if symbol not in panel.symbols]:
        rule = f"signed must name symbols of the prices, {summarize_names(panel.symbols)}"
        raise ValueError(f"{current_operation('price_forms')}: {rule}; got {summarize_names(unknown)}")
    columns = zip(panel.symbols, panel.values.plain().detach().numpy().T)
    return tuple(_price_form(symbol, prices, panel.dates, symbol in signed) for symbol, prices in columns)


def _price_form(symbol: str, prices: np.ndarray, dates: np.ndarray, is_signed: bool) -> PriceForm:
    negative = np.flatnonzero(prices < 0)
    if is_signed or may_be_negative(prices):
        verb = "is" if negative.size == 1 else "are"
        words = f"{negative.size:,} of {np.count_nonzero(~np.isnan(prices)):,} prices {verb} below zero"
        return PriceForm(symbol, "asinh", f"signed; {words}" if is_signed else words)
    reasons = [f"one price below zero, {prices[n]:g} on {dates[n]}" for n in negative[:1]]
    if negative.size > 1:
        reasons = [f"{negative.size:,} prices of {prices[negative[0]]:g}"]
    if zeros := int(np.count_nonzero(prices == 0)):
        reasons.append(f"{zeros:,} price{'s' * (zeros > 1)} of zero")
    return PriceForm(symbol, "log", f"{' and '.join(reasons)}: left out of returns" if reasons else "")


def signed_symbols(panel: Panel, signed: Iterable[str] = ()) -> tuple[str, ...]:
    """The symbols of a panel that `price_forms` takes in asinh(P / S).

    >>> from torchcommodity import data
    >>> signed_symbols(data.embedded(["BRENT", "WTI"]), ["WTI"])
    ('WTI',)
    """
    return tuple(form.symbol for form in price_forms(panel, signed) if form.form == "asinh")


def signed_findings(findings: Iterable[Finding], forms: Sequence[PriceForm]) -> tuple[Finding, ...]:
    """Findings without those that rest on positive prices or on ratios, for the symbols of any sign; with one of each.

    A finding of signed prices that was made on other rows, of a symbol that is in logs on these, becomes one of what
    its form leaves out.

    >>> from torchcommodity import data
    >>> wti = data.embedded(["WTI"])
    >>> print(*signed_findings(wti.findings, price_forms(wti, ["WTI"])))
    signed prices WTI: signed; 1 of 10,226 prices is below zero (forecast as asinh(P / S), without log-returns)
    """
    asinh = {form.symbol: form.reason for form in forms if form.form == "asinh"}
    log = {form.symbol: form.reason for form in forms if form.form == "log"}
    result = []
    for finding in findings:
        if finding.kind == SIGNED and finding.symbol in log:
            if reason := log[finding.symbol]:
                result.append(make_finding("nonpositive", finding.symbol, value=reason))
        elif finding.symbol not in asinh or finding.kind not in {SIGNED, *RATIO_KINDS}:
            result.append(finding)
    return (*result, *(make_finding(SIGNED, symbol, value=reason) for symbol, reason in asinh.items()))


@dataclass(frozen=True, eq=False)
class StackedPrices:
    """The prices of N symbols without the missing ones, one symbol after the other.

    Each rule is tested in all of them at once: nearly every panel has few findings, and many symbols.

    Args:
        prices: (P,) prices.
        rows: (P,) their rows in the panel.
        columns: (P,) their symbols.
        ends: (N + 1,) the prices of symbol n are those from `ends[n]` to `ends[n + 1]`.
    """

    prices: Array
    rows: Array
    columns: Array
    ends: Array

    @classmethod
    def of(cls, prices: Array) -> "StackedPrices":
        """Stack the columns of prices `(T, N)`."""
        by_symbol = np.ascontiguousarray(prices.T)
        present = ~np.isnan(by_symbol)
        counts = np.count_nonzero(present, axis=1)
        rows = np.broadcast_to(np.arange(len(prices)), present.shape)[present]
        columns = np.repeat(np.arange(len(counts)), counts)
        return cls(by_symbol[present], rows, columns, np.concatenate([[0], np.cumsum(counts)]))

    @cached_property
    def positive(self) -> "StackedPrices":
        """The positive prices."""
        mask = self.prices > 0
        if mask.all():
            return self
        ends = np.concatenate([[0], np.cumsum(mask)])[self.ends]
        return StackedPrices(self.prices[mask], self.rows[mask], self.columns[mask], ends)

    @cached_property
    def inside(self) -> Array:
        """`(P - 1,)` whether two neighbors are of one symbol."""
        inside: Array = self.columns[1:] == self.columns[:-1]
        return inside

    @cached_property
    def factors(self) -> Array:
        """`(P - 1,)` the factor, from 1, between two neighbors, up or down; 1 between two symbols."""
        ratio = self.prices[1:] / self.prices[:-1]
        return np.where(self.inside, np.maximum(ratio, 1 / ratio), 1.0)

    @cached_property
    def last(self) -> Array:
        """`(N,)` the last price of each symbol; NaN without any."""
        last = np.full(len(self.ends) - 1, np.nan)
        some = np.diff(self.ends) > 0
        last[some] = self.prices[self.ends[1:][some] - 1]
        return last

    def part(self, column: int) -> slice:
        """The prices of a symbol."""
        return slice(int(self.ends[column]), int(self.ends[column + 1]))


class Occurrence(NamedTuple):
    """A finding within one symbol, the number `column`; `row` of the panel, -1 = the whole series."""

    kind: str
    column: int
    row: int
    value: str


def series_findings(stacked: StackedPrices, dates: Array, clock: Array, stale: int) -> Iterator[Occurrence]:
    """All findings within single symbols, rule by rule, in the order of the table in `inspect`.

    Args:
        stacked: prices of all symbols.
        dates: `(T,)` dates of the rows.
        clock: `(T,)` business days to each row.
        stale: equal prices in a row that are a finding.
    """
    prices, rows, columns = stacked.prices, stacked.rows, stacked.columns
    if not prices.size:
        return
    magnitude = np.abs(prices)
    for kind, mask in {
        "nonpositive": prices <= 0,
        "extreme price": (magnitude >= EXTREME) | ((magnitude > 0) & (magnitude <= 1 / EXTREME)),
    }.items():
        for n in np.flatnonzero(mask).tolist():
            yield Occurrence(kind, int(columns[n]), int(rows[n]), f"{prices[n]:g}")
    yield from _gaps(stacked, dates, clock)
    yield from _runs(stacked, dates, stale)
    yield from _jumps(stacked.positive)
    yield from _repeated_blocks(stacked, dates)
    yield from _returns(stacked)
    yield from _no_market(stacked)


def _gaps(stacked: StackedPrices, dates: Array, clock: Array) -> Iterator[Occurrence]:
    """Long steps between two prices of a symbol."""
    rows = stacked.rows
    steps = np.diff(clock[rows])
    long = np.flatnonzero((steps > LONG_GAP) & stacked.inside)
    columns = stacked.columns[long]
    for column in np.unique(columns).tolist():
        limit = longest_step(clock[rows[stacked.part(column)]])
        own = long[columns == column]
        for n in own[steps[own] > limit].tolist():
            yield Occurrence("gap", column, int(rows[n + 1]), f"{steps[n]} business days since {dates[rows[n]]}")


def longest_step(clock: Array) -> float:
    """Business days between two prices of a series that are no gap."""
    return max(LONG_GAP, SLOW_STEP * float(np.median(np.diff(clock)))) if len(clock) > 1 else LONG_GAP


def _runs(stacked: StackedPrices, dates: Array, stale: int) -> Iterator[Occurrence]:
    """Equal prices: most of all, long runs, or one at the end that is longer than all before it."""
    prices, rows, N = stacked.prices, stacked.rows, len(stacked.ends) - 1
    equal = np.flatnonzero((prices[1:] == prices[:-1]) & stacked.inside)  # to the next one
    moves = np.diff(stacked.ends) - 1
    changes = moves - np.bincount(stacked.columns[equal], minlength=N)
    share = changes / np.maximum(moves, 1)
    few = (moves >= MIN_MOVES) & (share > 0) & (share < 1 - FEW_CHANGES)
    for column in np.flatnonzero(few).tolist():
        yield Occurrence("few changes", column, -1, f"{1 - share[column]:.0%} of the prices equal the one before")
    # runs of at least two equal prices; those of two symbols are apart
    is_first = np.diff(equal, prepend=-2) > 1
    starts, lengths = equal[is_first], np.diff(np.append(np.flatnonzero(is_first), equal.size)) + 1
    columns = stacked.columns[starts]
    frozen = (lengths >= FROZEN_RUN) & (starts + lengths == stacked.ends[columns + 1]) & (changes[columns] > 0)
    for run in np.flatnonzero(frozen).tolist():
        frozen[run] = lengths[run] > lengths[:run][columns[:run] == columns[run]].max(initial=1)
    for run in np.flatnonzero((frozen | (lengths >= stale)) & ~few[columns]).tolist():
        start, length = starts[run], lengths[run]
        kind, value = "stale", f"{length} equal prices {prices[start]:g} to {dates[rows[start + length - 1]]}"
        if frozen[run]:
            kind, value = "frozen", f"the last {length} prices equal {prices[start]:g}, the longest such run"
        yield Occurrence(kind, int(columns[run]), int(rows[start]), value)


def _jumps(positive: StackedPrices) -> Iterator[Occurrence]:
    """Large moves between positive prices; two that take a price to a power of ten and back are a decimal slip."""
    prices, columns = positive.prices, positive.columns
    moves = np.flatnonzero(positive.factors >= JUMP * (1 - 1e-12)).tolist()
    while moves:
        move = moves.pop(0)
        kind, words = "jump", f"{prices[move + 1]:g} after {prices[move]:g}"
        if moves and columns[moves[0]] == columns[move] and _is_slip(prices[move : moves[0] + 2]):
            length = moves.pop(0) - move
            kind, words = "decimal slip", words + (f", {length} rows" if length > 1 else "")
        else:  # a factor of about 10, 100 or 1000 that no later price takes back
            factor = float(np.log10(prices[move + 1]) - np.log10(prices[move]))
            power = round(factor)
            if 1 <= abs(power) <= 3 and abs(factor - power) <= np.log10(SLIP_FACTOR):
                words += f", about {10.0**power:g} times; check the decimal point"
        yield Occurrence(kind, int(columns[move]), int(positive.rows[move + 1]), words)


def _is_slip(prices: Array) -> bool:
    """Whether all but the first and the last price are about 10, 100 or 1000 times those two, or the inverse."""
    if len(prices) - 2 > SLIP_ROWS:
        return False
    before, *slip, after = np.log10(prices)
    factor = np.array(slip) - (before + after) / 2
    power = round(float(factor[0]))
    near = np.abs(factor - power).max() <= 1.5 * np.log10(SLIP_FACTOR)
    returns = abs(after - before) <= 2 * np.log10(SLIP_FACTOR)
    return bool(1 <= abs(power) <= 3 and near and returns)


def _repeated_blocks(stacked: StackedPrices, dates: Array) -> Iterator[Occurrence]:
    """Blocks of `BLOCK` prices, at least half of them changes, that are found a second time in the series."""
    prices, rows, columns = stacked.prices, stacked.rows, stacked.columns
    if prices.size < 2 * BLOCK:
        return
    # a hash of each block: integers of 64 bits that wrap around; equal blocks of one symbol have equal hashes
    hashes = prices.view(np.uint64) + columns.astype(np.uint64) * MULTIPLIERS[0]
    for shift, multiplier in zip((1, 2, 4, 8, 4), MULTIPLIERS):
        hashes = hashes[:-shift] * multiplier + hashes[shift:]
    ordered = np.sort(hashes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not repeated.size:  # nearly every panel
        return
    changes = np.concatenate([[0], np.cumsum(prices[1:] != prices[:-1])])
    is_moving = changes[BLOCK - 1 :] - changes[: 1 - BLOCK] >= BLOCK / 2
    is_block = is_moving & (columns[BLOCK - 1 :] == columns[: 1 - BLOCK]) & np.isin(hashes, repeated)
    first: dict[int, int] = {}
    last = -BLOCK
    for n in np.flatnonzero(is_block).tolist():
        copied = first.setdefault(int(hashes[n]), n)
        is_apart = n - copied >= BLOCK and n - last >= BLOCK
        if is_apart and np.array_equal(prices[n : n + BLOCK], prices[copied : copied + BLOCK]):
            words = f"{BLOCK} prices as from {dates[rows[copied]]}"
            yield Occurrence("repeated block", int(columns[n]), int(rows[n]), words)
            last = n


def _no_market(stacked: StackedPrices) -> Iterator[Occurrence]:
    """Series that no market makes: each change is nearly the one before, or all changes are of one size.

    Of independent changes d_t, sum (d_t - d_{t-1})^2 is twice sum d_t^2; of a sine it is a small part of it, of a line
    nothing. Sizes are equal where (sum |d_t|)^2 is n sum d_t^2.
    """
    moves = np.where(stacked.inside, np.diff(stacked.prices), 0.0)
    columns, size = stacked.columns[1:], len(stacked.ends) - 1
    largest = np.zeros(size)
    np.maximum.at(largest, columns, np.abs(moves))
    moves = moves / np.maximum(largest, np.finfo(float).tiny)[columns]
    both = stacked.inside[1:] & stacked.inside[:-1]
    counts, sizes, squares = (np.bincount(columns, x, size) for x in (moves != 0, np.abs(moves), moves**2))
    breaks = np.bincount(columns[1:], np.where(both, np.diff(moves) ** 2, 0.0), size)
    is_equal = sizes**2 >= (1 - EQUAL_SIZES) * counts * squares
    is_smooth = breaks < SMOOTH * squares
    for column in np.flatnonzero((counts >= MIN_MOVES) & (is_equal | is_smooth)).tolist():
        words = f"all {counts[column]:,.0f} changes are of the size {largest[column]:.6g}"
        smooth = "each change is nearly the one before, as on a line or a smooth curve"
        yield Occurrence("no market", column, -1, smooth if is_smooth[column] else words)


def _returns(stacked: StackedPrices) -> Iterator[Occurrence]:
    """Values of both signs that do not resemble the value before: returns; spreads of prices do resemble it."""
    size = np.diff(stacked.ends)
    negative = np.bincount(stacked.columns[stacked.prices < 0], minlength=len(size)) / np.maximum(size, 1)
    positive = np.diff(stacked.positive.ends) / np.maximum(size, 1)
    mixed = (size >= MIN_MOVES) & (negative >= BOTH_SIGNS) & (positive >= BOTH_SIGNS)
    for column in np.flatnonzero(mixed).tolist():
        prices = stacked.prices[stacked.part(column)]
        centered = prices / np.abs(prices).max()
        centered = centered - centered.mean()
        if (centered[1:] @ centered[:-1]) < MEMORY * (centered @ centered):
            words = f"{negative[column]:.0%} of the values are negative, without trend"
            yield Occurrence("looks like returns", column, -1, words)


def price_findings(
    prices: Array, dates: Array, symbols: Sequence[str], frequency: Frequency, lines: Array, stacked: StackedPrices
) -> Iterator[Finding]:
    """Findings of prices `(T, N)` on `dates (T,)`, of which `lines (T, N)` are the line numbers."""
    prices = np.asfortranarray(prices)  # most of what follows runs over the symbols of each row
    clock, present = np.busday_count(dates[0], dates), ~np.isnan(prices)
    yield from _ended(symbols, dates, present, clock)
    if len(symbols) > 1:
        shared = present[present.sum(axis=1) > 1]
        for column in np.flatnonzero(~shared.any(axis=0) & present.any(axis=0)).tolist():
            yield make_finding("no overlap", symbols[column], value="no date with a price of another symbol")
        yield from _identical_columns(symbols, prices, present)
    yield from _rows(dates, frequency, present, lines)
    occurrences: dict[int, list[Occurrence]] = {}
    for occurrence in series_findings(stacked, dates, clock, STALE_RUN[frequency]):
        occurrences.setdefault(occurrence.column, []).append(occurrence)
    for column, symbol in enumerate(symbols):
        for kind, _, row, value in occurrences.get(column, ()):
            date, line = ("", 0) if row < 0 else (dates[row], lines[row, column])
            yield make_finding(kind, symbol, date, line, value)
        rows = stacked.rows[stacked.part(column)]
        span = int(rows[-1] - rows[0]) + 1 if rows.size else 0
        if span > 2 * len(rows):
            words = f"{span - len(rows):,} of {span:,} rows between first and last price have none"
            yield make_finding("mostly missing", symbol, value=words)
        if mismatch := frequency_mismatch(dates[rows], frequency):
            yield make_finding("mixed frequency", symbol, value=f"{mismatch}; the rows of the panel are {frequency}")


def _ended(symbols: Sequence[str], dates: Array, present: Array, clock: Array) -> Iterator[Finding]:
    """Symbols whose prices end before those of others."""
    rows = np.flatnonzero(present.any(axis=1))
    if not rows.size:
        return
    last = rows[-1]
    for column in np.flatnonzero(~present[last]).tolist():
        own = np.flatnonzero(present[:, column])
        if own.size and (days := clock[last] - clock[own[-1]]) > longest_step(clock[own]):
            value = f"last price {days:,} business days before that of others, {dates[last]}"
            yield make_finding("ended", symbols[column], dates[own[-1]], value=value)


def _identical_columns(symbols: Sequence[str], prices: Array, present: Array) -> Iterator[Finding]:
    lowest, highest = np.fmin.reduce(prices), np.fmax.reduce(prices)
    if len(np.unique(lowest)) == len(np.unique(highest)) == len(symbols):
        return  # nearly every panel
    seen: dict[bytes, str] = {}
    for column in np.flatnonzero((lowest < highest) & (present.sum(axis=0) >= MIN_EQUAL)).tolist():
        symbol = symbols[column]
        first = seen.setdefault(np.where(present[:, column], prices[:, column], np.nan).tobytes(), symbol)
        if first != symbol:
            yield make_finding("identical columns", symbol, value=f"the prices of {first!r}")


def _rows(dates: Array, frequency: Frequency, present: Array, lines: Array) -> Iterator[Finding]:
    latest = latest_date(frequency)
    kinds = {
        "weekend": (~np.is_busday(dates) & (frequency == "daily"), "Saturday or Sunday"),
        "future": (dates > latest, f"later than {latest}"),
        "empty row": (~present.any(axis=1), "no price of any symbol"),
    }
    for kind, (mask, value) in kinds.items():
        for row in np.flatnonzero(mask):
            yield make_finding(kind, "", dates[row], lines[row].max(), value)

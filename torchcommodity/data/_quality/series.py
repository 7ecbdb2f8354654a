"""Data-quality checks of one symbol: from its prices `(P,)`, their dates and their business-day numbers."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.arrays import Array

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
MEMORY = 0.5  # first autocorrelation of levels: returns are below, prices and spreads far above
BLOCK = 20  # prices that are repeated in a block
EXTREME = 1e9  # a magnitude at or above, or at or below its inverse


class Occurrence(NamedTuple):
    """A finding within one symbol; `row` counts its prices, -1 = the whole series."""

    kind: str
    row: int
    value: str


def series_findings(prices: Array, clock: Array, dates: Array, stale: int) -> Iterator[Occurrence]:
    """All findings of one symbol, in the order of the table in `inspect`; `stale` equal prices in a row are one."""
    if not prices.size:
        return
    for row in np.flatnonzero(prices <= 0):
        yield Occurrence("nonpositive", int(row), f"{prices[row]:g}")
    magnitude = np.abs(prices)
    for row in np.flatnonzero((magnitude >= EXTREME) | ((magnitude > 0) & (magnitude <= 1 / EXTREME))):
        yield Occurrence("extreme price", int(row), f"{prices[row]:g}")
    steps = np.diff(clock)
    for row in np.flatnonzero(steps > longest_step(clock)):
        yield Occurrence("gap", int(row + 1), f"{steps[row]} business days since {dates[row]}")
    yield from _runs(prices, dates, stale)
    yield from _jumps(prices)
    yield from _repeated_blocks(prices, dates)
    yield from _returns(prices)


def longest_step(clock: Array) -> float:
    """Business days between two prices of a series that are no gap."""
    return max(LONG_GAP, SLOW_STEP * float(np.median(np.diff(clock)))) if len(clock) > 1 else LONG_GAP


def _runs(prices: Array, dates: Array, stale: int) -> Iterator[Occurrence]:
    """Equal prices: most of all, long runs, or one at the end that is longer than all before it."""
    changes = prices[1:] != prices[:-1]
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    lengths = np.diff(np.append(starts, prices.size))
    if len(changes) >= MIN_MOVES and 0 < changes.mean() < 1 - FEW_CHANGES:
        yield Occurrence("few changes", -1, f"{1 - changes.mean():.0%} of the prices equal the one before")
        return
    frozen = len(starts) > 1 and lengths[-1] >= FROZEN_RUN and lengths[-1] > lengths[:-1].max()
    for run in np.flatnonzero(lengths[:-1] >= stale if frozen else lengths >= stale):
        start, length = starts[run], lengths[run]
        last = dates[start + length - 1]
        yield Occurrence("stale", int(start), f"{length} equal prices {prices[start]:g} to {last}")
    if frozen:
        value = f"the last {lengths[-1]} prices equal {prices[-1]:g}, the longest such run"
        yield Occurrence("frozen", int(starts[-1]), value)


def _jumps(prices: Array) -> Iterator[Occurrence]:
    """Large moves between positive prices; two that take a price to a power of ten and back are a decimal slip."""
    positive = np.flatnonzero(prices > 0)
    logs = np.log10(prices[positive])
    moves = np.flatnonzero(np.abs(np.diff(logs)) >= np.log10(JUMP) * (1 - 1e-12)).tolist()
    while moves:
        move = moves.pop(0)
        before, after = positive[move], positive[move + 1]
        if moves and _is_slip(logs, move, moves[0]):
            rows = moves.pop(0) - move
            words = f"{prices[after]:g} after {prices[before]:g}" + (f", {rows} rows" if rows > 1 else "")
            yield Occurrence("decimal slip", int(after), words)
        else:
            words = f"{prices[after]:g} after {prices[before]:g}{_power_of_ten(logs[move + 1] - logs[move])}"
            yield Occurrence("jump", int(after), words)


def _power_of_ten(factor: float) -> str:
    """What to check after a jump by about 10, 100 or 1000 that no later price takes back; the factor as a logarithm."""
    power = round(float(factor))
    if not 1 <= abs(power) <= 3 or abs(factor - power) > np.log10(SLIP_FACTOR):
        return ""
    return f", about {10.0**power:g} times; check the decimal point"


def _is_slip(logs: Array, move: int, back: int) -> bool:
    """Whether prices `move + 1` to `back` are about 10, 100 or 1000 times those around them, or the inverse."""
    factor = logs[move + 1 : back + 1] - (logs[move] + logs[back + 1]) / 2
    power = round(float(factor[0]))
    near = np.abs(factor - power).max() <= 1.5 * np.log10(SLIP_FACTOR)
    returns = abs(logs[back + 1] - logs[move]) <= 2 * np.log10(SLIP_FACTOR)
    return bool(back - move <= SLIP_ROWS and 1 <= abs(power) <= 3 and near and returns)


def _repeated_blocks(prices: Array, dates: Array) -> Iterator[Occurrence]:
    """Blocks of `BLOCK` prices, at least half of them changes, that are found a second time in the series."""
    if prices.size < 2 * BLOCK:
        return
    # a hash of each window: integers of 64 bits that wrap around, so that equal windows have equal hashes
    bits = np.ascontiguousarray(prices).view(np.uint64)
    weights = np.random.default_rng(0).integers(1, 2**63, BLOCK, dtype=np.uint64) | np.uint64(1)
    windows = np.lib.stride_tricks.sliding_window_view(bits, BLOCK) @ weights
    moving = np.convolve(prices[1:] != prices[:-1], np.ones(BLOCK - 1), "valid") >= BLOCK / 2
    rows = np.flatnonzero(moving)
    if not (np.diff(np.sort(windows[rows])) == 0).any():  # nearly every series; a sort is faster than `unique`
        return
    _, first, inverse = np.unique(windows[rows], return_index=True, return_inverse=True)
    repeated = np.flatnonzero(rows - rows[first[inverse]] >= BLOCK) if rows.size else rows
    last = -BLOCK
    for row, copied in zip(rows[repeated], rows[first[inverse]][repeated]):
        if row - last >= BLOCK and np.array_equal(prices[row : row + BLOCK], prices[copied : copied + BLOCK]):
            yield Occurrence("repeated block", int(row), f"{BLOCK} prices as from {dates[copied]}")
            last = row


def _returns(prices: Array) -> Iterator[Occurrence]:
    """Values of both signs that do not resemble the value before: returns; spreads of prices do resemble it."""
    negative = float((prices < 0).mean())
    if prices.size < MIN_MOVES or negative < BOTH_SIGNS or float((prices > 0).mean()) < BOTH_SIGNS:
        return
    centered = prices / np.abs(prices).max()
    centered = centered - centered.mean()
    if (centered[1:] @ centered[:-1]) < MEMORY * (centered @ centered):
        yield Occurrence("looks like returns", -1, f"{negative:.0%} of the values are negative, without trend")

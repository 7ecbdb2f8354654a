"""Candles: their bodies, shadows and gaps, and what is long, short or near by TA-Lib's default candle settings.

Bodies are measured by the mean body of the ten candles before, shadows and distances by the mean range of the ten or
five before, so that one formula suits calm and wild markets.
"""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torchcommodity.ops.series import equal, lag, maximum, minimum, sma, where


class measure:  # noqa: N801 - used as a decorator, like `property`
    """A property of a candle: computed once for the current candle, and delayed for those before it."""

    def __init__(self, formula: Callable[[Any], Tensor]) -> None:
        self.formula = formula
        self.__doc__ = formula.__doc__

    def __get__(self, candle: Any, owner: type) -> Tensor:
        return lag(self.formula(Candle(candle.prices)), candle.age)


@dataclass(frozen=True)
class Candle:
    """The candle `age` rows ago; `prices` are the panels open, high, low, close."""

    prices: tuple[Tensor, Tensor, Tensor, Tensor]
    age: int = 0

    @measure
    def open(self) -> Tensor:
        return self.prices[0]

    @measure
    def high(self) -> Tensor:
        return self.prices[1]

    @measure
    def low(self) -> Tensor:
        return self.prices[2]

    @measure
    def close(self) -> Tensor:
        return self.prices[3]

    @measure
    def is_white(self) -> Tensor:
        """Whether the price did not fall."""
        return self.close >= self.open

    @measure
    def is_black(self) -> Tensor:
        return ~self.is_white

    @measure
    def color(self) -> Tensor:
        """1 for a white candle, -1 for a black one."""
        return where(self.is_white, 1, -1)

    @measure
    def top(self) -> Tensor:
        """Upper end of the body."""
        return maximum(self.open, self.close)

    @measure
    def bottom(self) -> Tensor:
        """Lower end of the body."""
        return minimum(self.open, self.close)

    @measure
    def body(self) -> Tensor:
        return abs(self.close - self.open)

    @measure
    def range(self) -> Tensor:
        return self.high - self.low

    @measure
    def upper_shadow(self) -> Tensor:
        return self.high - self.top

    @measure
    def lower_shadow(self) -> Tensor:
        return self.bottom - self.low

    @measure
    def is_long(self) -> Tensor:
        """Whether the body is larger than the mean of the ten before."""
        return self.body > mean_before(self.body, 10)

    @measure
    def is_short(self) -> Tensor:
        """Whether the body is smaller than the mean of the ten before."""
        return self.body < mean_before(self.body, 10)

    @measure
    def tiny(self) -> Tensor:
        """Largest body of a doji, and of a shadow that hardly exists: a tenth of the mean range."""
        return mean_before(self.range, 10) * 0.1

    @measure
    def is_doji(self) -> Tensor:
        """Whether open and close are about equal."""
        return self.body <= self.tiny

    @measure
    def lacks_upper_shadow(self) -> Tensor:
        return self.upper_shadow < self.tiny

    @measure
    def lacks_lower_shadow(self) -> Tensor:
        return self.lower_shadow < self.tiny

    @measure
    def lacks_shadows(self) -> Tensor:
        return self.lacks_upper_shadow & self.lacks_lower_shadow

    @measure
    def is_marubozu(self) -> Tensor:
        """Whether the body is long and makes up the whole range."""
        return self.is_long & self.lacks_shadows

    @measure
    def short_shadow(self) -> Tensor:
        """Bound of a short shadow: half the mean of both shadows together."""
        return mean_before(self.upper_shadow + self.lower_shadow, 10) / 2

    @measure
    def has_short_shadows(self) -> Tensor:
        return (self.upper_shadow < self.short_shadow) & (self.lower_shadow < self.short_shadow)

    @measure
    def has_long_shadows(self) -> Tensor:
        """Whether both shadows are longer than the body."""
        return (self.upper_shadow > self.body) & (self.lower_shadow > self.body)

    @measure
    def is_hammer(self) -> Tensor:
        """Whether the body is short, with a lower shadow that is longer, and no upper shadow."""
        return self.is_short & self.lacks_upper_shadow & (self.lower_shadow > self.body)

    @measure
    def is_inverted_hammer(self) -> Tensor:
        """Whether the body is short, with an upper shadow that is longer, and no lower shadow."""
        return self.is_short & self.lacks_lower_shadow & (self.upper_shadow > self.body)

    @measure
    def is_centered(self) -> Tensor:
        """Whether the body is near the middle of the range."""
        middle = self.low + self.range / 2
        return (self.bottom <= middle + self.near) & (self.top >= middle - self.near)

    @measure
    def opens_at_end(self) -> Tensor:
        """Whether a white candle opens at its low, a black one at its high."""
        return where(self.is_white, self.lacks_lower_shadow, self.lacks_upper_shadow)

    @measure
    def closes_at_end(self) -> Tensor:
        """Whether a white candle closes at its high, a black one at its low."""
        return where(self.is_white, self.lacks_upper_shadow, self.lacks_lower_shadow)

    @measure
    def near(self) -> Tensor:
        """A small distance: a fifth of the mean range."""
        return mean_before(self.range, 5) * 0.2

    @measure
    def far(self) -> Tensor:
        """A large distance: three fifths of the mean range."""
        return mean_before(self.range, 5) * 0.6

    @measure
    def tolerance(self) -> Tensor:
        """Largest distance of equal prices: a twentieth of the mean range."""
        return mean_before(self.range, 5) * 0.05

    def gaps_above(self, other: "Candle") -> Tensor:
        """Whether the body lies above the body of the other."""
        return self.bottom > other.top

    def gaps_below(self, other: "Candle") -> Tensor:
        """Whether the body lies below the body of the other."""
        return self.top < other.bottom

    def gaps_ahead_of(self, other: "Candle") -> Tensor:
        """Whether the body lies beyond the body of the other in the direction of the other's color."""
        return where(other.is_white, self.gaps_above(other), self.gaps_below(other))

    def is_above(self, other: "Candle") -> Tensor:
        """Whether the candle with its shadows lies above the other with its shadows."""
        return self.low > other.high

    def is_below(self, other: "Candle") -> Tensor:
        """Whether the candle with its shadows lies below the other with its shadows."""
        return self.high < other.low

    def is_within(self, other: "Candle") -> Tensor:
        """Whether the body lies within the body of the other, ends included."""
        return (self.top <= other.top) & (self.bottom >= other.bottom)

    def is_strictly_within(self, other: "Candle") -> Tensor:
        """Whether the body lies within the body of the other and shares no end with it."""
        return (self.top < other.top) & (self.bottom > other.bottom)

    def is_inside(self, other: "Candle") -> Tensor:
        """Whether the range lies within the range of the other and shares no end with it."""
        return (self.high < other.high) & (self.low > other.low)

    def is_lower_than(self, other: "Candle") -> Tensor:
        """Whether both ends of the range are lower."""
        return (self.high < other.high) & (self.low < other.low)

    def is_higher_than(self, other: "Candle") -> Tensor:
        """Whether both ends of the range are higher."""
        return (self.high > other.high) & (self.low > other.low)

    def reaches(self, other: "Candle") -> Tensor:
        """Whether a part of the body lies within the range of the other."""
        return (self.bottom < other.high) & (self.top > other.low)

    def opens_within(self, other: "Candle") -> Tensor:
        """Whether the open lies inside the body of the other."""
        return between(self.open, other.bottom, other.top)

    def closes_within(self, other: "Candle") -> Tensor:
        """Whether the close lies inside the body of the other."""
        return between(self.close, other.bottom, other.top)

    def opens_near(self, other: "Candle") -> Tensor:
        """Whether the open lies within or near the body of the other."""
        return (self.open >= other.bottom - other.near) & (self.open <= other.top + other.near)

    def steps_up_from(self, other: "Candle") -> Tensor:
        """Whether the close is higher, and the open higher but within or near the white body of the other."""
        opens = (self.open > other.open) & (self.open <= other.close + other.near)
        return (self.close > other.close) & opens

    def like(self, other: "Candle") -> Tensor:
        """Whether both have one color."""
        return equal(self.is_white, other.is_white)


def last_candles(count: int, *prices: Tensor) -> tuple[Candle, ...]:
    """The last `count` candles of open, high, low and close, the oldest first."""
    open, high, low, close = prices
    return tuple(Candle((open, high, low, close), age) for age in reversed(range(count)))


def mean_before(x: Tensor, rows: int) -> Tensor:
    """Mean of the rows before the current one."""
    return lag(sma(x, rows))


def between(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Whether x lies strictly between two values."""
    return (x > low) & (x < high)


def about(x: Tensor, y: Tensor, tolerance: Tensor) -> Tensor:
    """Whether x differs from y by the tolerance or less."""
    return (x <= y + tolerance) & (x >= y - tolerance)


def all_hold(*conditions: Tensor) -> Tensor:
    return functools.reduce(operator.and_, conditions)


def bullish(*conditions: Tensor) -> Tensor:
    """100 where all conditions hold, else 0; of a pattern without a direction too."""
    return 100 * all_hold(*conditions)


def bearish(*conditions: Tensor) -> Tensor:
    """-100 where all conditions hold, else 0."""
    return -100 * all_hold(*conditions)


def by_color(candle: Candle, *conditions: Tensor, size: Tensor | int = 100) -> Tensor:
    """Where all conditions hold 100, or `size`, if the candle is white, the negative if it is black; else 0."""
    return candle.color * size * all_hold(*conditions)


def two_sided(bullish: Tensor, bearish: Tensor, *conditions: Tensor) -> Tensor:
    """100 where a pattern is bullish, -100 where it is bearish, if the conditions of both sides hold, else 0."""
    return 100 * (bullish - bearish) * all_hold(*conditions)


def with_confirmation(trap: Tensor, last: Candle) -> Tensor:
    """The trap, and twice of it at the first close beyond the other side of its inside candle, within three rows."""
    _, high, low, close = last.prices
    signal = waiting = trap
    for age in (1, 2, 3):
        waiting = lag(waiting) * equal(trap, 0)  # a new trap replaces the one before
        bullish = (waiting > 0) & (close > lag(high, age + 1))
        bearish = (waiting < 0) & (close < lag(low, age + 1))
        signal = signal + 2 * waiting * (bullish | bearish)
        waiting = waiting * ~(bullish | bearish)
    return signal

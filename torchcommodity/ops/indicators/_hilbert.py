"""The Hilbert transform of a price with its dominant cycle, which the cycle indicators share.

A missing row is skipped: every value is that of the series without it.
"""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.series import atan, count, equal, is_valid, maximum, minimum, previous, recur, recurrence, where

DEGREES = 57.29577951308232  # in a radian


class Cycle(NamedTuple):
    """What is known of the dominant cycle; missing in the rows that fill the filters."""

    smooth: Tensor  # the smoothed price; zero before the filters start
    inphase: Tensor
    quadrature: Tensor
    period: Tensor  # in rows, smoothed


def earlier(x: Tensor, rows: int = 1) -> Tensor:
    """The value `rows` rows before this one, of those that are not missing."""
    value = x
    for _ in range(rows):
        value = where(is_valid(x), previous(value))
    return value


def smooth_price(x: Tensor) -> Tensor:
    """Weighted mean of the last four prices."""
    return (4 * x + 3 * earlier(x) + 2 * earlier(x, 2) + earlier(x, 3)) / 10


def dominant_cycle(x: Tensor, first: int) -> Cycle:
    """The cycle of the rows from number `first` on; the filters start with zeros there, as TA-Lib's do.

    Ehlers (2001), Rocket Science for Traders. The filters adapt to the period of the row before, so that they are part
    of the recurrence.
    """
    has_started = count(x) > first
    smooth = where(has_started, smooth_price(x), 0 * x)
    transform = where(has_started, hilbert(smooth, *(earlier(smooth, k) for k in (2, 4, 6))))
    is_row = is_valid(transform)

    def step(period: Tensor, re: Tensor, im: Tensor, i2: Tensor, q2: Tensor, *delays: Tensor) -> tuple[Tensor, ...]:
        d, h, q = delays[:6], delays[6:9], delays[9:]  # rows ago: 1 to 6, 1 to 3, 1 to 6
        gain = 0.075 * period + 0.54
        detrended = gain * transform
        d_transform = hilbert(detrended, d[1], d[3], d[5])
        quadrature, inphase = gain * d_transform, d[2]
        next_q2 = 0.2 * (quadrature + gain * h[2]) + 0.8 * q2
        next_i2 = 0.2 * (inphase - gain * hilbert(quadrature, q[1], q[3], q[5])) + 0.8 * i2
        next_re = 0.2 * (next_i2 * i2 + next_q2 * q2) + 0.8 * re
        next_im = 0.2 * (next_i2 * q2 - next_q2 * i2) + 0.8 * im
        shifted = (detrended, *d[:5], d_transform, *h[:2], quadrature, *q[:5])
        return (
            _next_period(period, next_re, next_im),
            *(next_re, next_im, next_i2, next_q2),
            *(where(is_row, value) for value in shifted),
        )

    period, _, _, _, _, *delays = recur(step, *[0.0] * 20)
    return Cycle(smooth, delays[3], delays[9], recurrence(0.67, 0.33 * period))


def hilbert(x: Tensor, two: Tensor, four: Tensor, six: Tensor) -> Tensor:
    """Hilbert transform of a value, given those two, four and six rows before."""
    return 0.0962 * (x - six) + 0.5769 * (two - four)


def _next_period(period: Tensor, re: Tensor, im: Tensor) -> Tensor:
    """The period, given by the change of the phase in a row; limited to 6 to 50 rows, and in its changes."""
    turns = where(equal(re, 0) | equal(im, 0), period, 360 / (DEGREES * atan(im / re)))
    limited = maximum(minimum(turns, 1.5 * period), 0.67 * period)
    return 0.2 * minimum(maximum(limited, 6), 50) + 0.8 * period

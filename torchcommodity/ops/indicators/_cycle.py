"""Ehlers' cycle indicators (TA-Lib: cycle indicators, and two overlap studies)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops.indicators._hilbert import DEGREES, Cycle, dominant_cycle, earlier, smooth_price
from torchcommodity.ops.series import (
    atan,
    cos,
    count,
    equal,
    fill,
    floor,
    forward_fill,
    is_valid,
    maximum,
    operator,
    sign,
    sin,
    skip,
    smooth,
    where,
)

LONGEST_CYCLE = 50  # rows
SHORT_START, LONG_START = 12, 37  # rows before the first one of the filters, of which TA-Lib has two
SHORT_WARMUP, LONG_WARMUP = 32, 63


class Phasor(NamedTuple):
    """The cycle as a complex number."""

    inphase: Tensor  # (..., T, N)
    quadrature: Tensor  # (..., T, N)


class Sine(NamedTuple):
    """The sine of the phase, and of the phase an eighth of a cycle ahead."""

    sine: Tensor  # (..., T, N), -1 to 1
    leadsine: Tensor  # (..., T, N), -1 to 1


class MAMA(NamedTuple):
    """An adaptive average, and an average of it that follows at half its speed."""

    mama: Tensor  # (..., T, N)
    fama: Tensor  # (..., T, N)


@operator
def ht_dcperiod(real: Tensor) -> Tensor:
    """Period of the dominant cycle in rows, by the Hilbert transform: 6 to 50.

    A missing row is skipped. TA-Lib HT_DCPERIOD; Ehlers (2001), Rocket Science for Traders. Warm-up: 32 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> wave = 100 + torch.sin(torch.arange(201) * 2 * torch.pi / 20).unsqueeze(-1)
        >>> indicators.ht_dcperiod(wave)[-1]
        tensor([20.0127])
    """
    return skip(dominant_cycle(real, SHORT_START).period, SHORT_WARMUP - SHORT_START)


@operator
def ht_phasor(real: Tensor) -> Phasor:
    """In-phase and quadrature components of the price without its trend, in its unit.

    A missing row is skipped. TA-Lib HT_PHASOR; Ehlers (2001). Warm-up: 32 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> wave = 100 + torch.sin(torch.arange(201) * 2 * torch.pi / 20).unsqueeze(-1)
        >>> inphase, quadrature = indicators.ht_phasor(wave)
        >>> (inphase**2 + quadrature**2).sqrt()[-1]
        tensor([1.0247])
    """
    cycle = dominant_cycle(real, SHORT_START)
    warmup = SHORT_WARMUP - SHORT_START
    return Phasor(skip(cycle.inphase, warmup), skip(cycle.quadrature, warmup))


@operator
def ht_dcphase(real: Tensor) -> Tensor:
    """Phase of the dominant cycle in degrees, -45 to 315.

    A missing row is skipped. TA-Lib HT_DCPHASE, except for a spectrum without a real part, where TA-Lib continues from
    the row before; equal prices have no phase, and the numbers there are rounding errors. Ehlers (2001). Warm-up: 63
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> wave = 100 + torch.sin(torch.arange(201) * 2 * torch.pi / 20).unsqueeze(-1)
        >>> indicators.ht_dcphase(wave)[-1]
        tensor([0.1709])
    """
    return skip(_phase(dominant_cycle(real, LONG_START)), LONG_WARMUP - LONG_START - 1)


@operator
def ht_sine(real: Tensor) -> Sine:
    """Sine of the phase of the dominant cycle, and of the phase 45 degrees ahead; they cross at its turns.

    A missing row is skipped. Equal prices have no phase: see `ht_dcphase`. TA-Lib HT_SINE; Ehlers (2001). Warm-up: 63
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> wave = 100 + torch.sin(torch.arange(201) * 2 * torch.pi / 20).unsqueeze(-1)
        >>> indicators.ht_sine(wave).sine[-1]
        tensor([0.0030])
    """
    waves = _sine(_phase(dominant_cycle(real, LONG_START)))
    return Sine(*(skip(wave, LONG_WARMUP - LONG_START - 1) for wave in waves))


@operator
def ht_trendline(real: Tensor) -> Tensor:
    """The price without its dominant cycle: its mean over one cycle, smoothed.

    A missing row is skipped. TA-Lib HT_TRENDLINE; Ehlers (2001). Warm-up: 63 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> wave = 100 + torch.sin(torch.arange(201) * 2 * torch.pi / 20).unsqueeze(-1)
        >>> indicators.ht_trendline(wave)[-1]
        tensor([100.])
    """
    return where(count(real) > LONG_WARMUP, _trendline(real, dominant_cycle(real, LONG_START)))


@operator(dtype=torch.int64)
def ht_trendmode(real: Tensor) -> Tensor:
    """1 in a trend, 0 in a cycle; int64 without a gradient, -1 in warm-up and missing rows.

    A cycle follows for half a period after sine and lead sine have crossed, and while the phase advances as in a cycle;
    a price 1.5 percent off the trendline is a trend. A missing row is skipped. Equal prices have no phase: see
    `ht_dcphase`. TA-Lib HT_TRENDMODE; Ehlers (2001). Warm-up: 63 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> rising = torch.arange(100.0).unsqueeze(-1) + 100
        >>> indicators.ht_trendmode(rising)[-1]
        tensor([1])
    """
    cycle = dominant_cycle(real, LONG_START)
    phase, trendline = _phase(cycle), _trendline(real, cycle)
    lead = _sine(phase).leadsine - _sine(phase).sine
    has_crossed = where(lead < 0, earlier(lead) >= 0, where(lead > 0, earlier(lead) <= 0, 0))
    row = count(real)
    rows_since = row - fill(forward_fill(where(has_crossed, row)), LONG_START)
    advance, degrees_per_row = phase - earlier(phase), 360 / cycle.period
    advances = (advance > 0.67 * degrees_per_row) & (advance < 1.5 * degrees_per_row)
    is_cycle = has_crossed | (rows_since + 1 < 0.5 * cycle.period) | advances
    is_off = abs(cycle.smooth / trendline - 1) >= 0.015
    return where(row > LONG_WARMUP, is_off | ~is_cycle)


@operator
def mama(real: Tensor, fastlimit: float = 0.5, slowlimit: float = 0.05) -> MAMA:
    """MESA adaptive moving average: its weight follows the speed at which the phase of the cycle changes.

    The weight is `fastlimit` / change of the phase in degrees, from `slowlimit` to `fastlimit`. A missing row is
    skipped. TA-Lib MAMA; Ehlers (2001), MESA adaptive moving averages, Stocks & Commodities 19. Warm-up: 32 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> prices = torch.full((40, 1), 50.0)
        >>> indicators.mama(prices).mama[-1]
        tensor([50.])
    """
    cycle = dominant_cycle(real, SHORT_START)
    phase = where(equal(cycle.inphase, 0), 0, DEGREES * atan(cycle.quadrature / cycle.inphase))
    slowing = where(is_valid(phase), fill(earlier(phase), 0)) - phase
    weight = where(slowing > 1, maximum(fastlimit / slowing, slowlimit), fastlimit)
    average = smooth(real, weight)
    following = smooth(where(is_valid(real), average), weight / 2)
    is_warm = count(real) > SHORT_WARMUP
    return MAMA(where(is_warm, average), where(is_warm, following))


def _recent(x: Tensor, rows: Tensor) -> list[Tensor]:
    """The last values, newest first, of as many as `rows` rows; then zeros."""
    return [where(rows > k, earlier(x, k), 0) for k in range(LONGEST_CYCLE)]


def _whole_rows(cycle: Cycle) -> Tensor:
    return floor(cycle.period + 0.5)


def _phase(cycle: Cycle) -> Tensor:
    """Phase in degrees: the angle of the Fourier component of one cycle, by Clenshaw's recurrence."""
    angle = 2 * math.pi / _whole_rows(cycle)
    newest, *values = _recent(cycle.smooth, _whole_rows(cycle))
    last, second = 0 * newest, 0 * newest
    for value in reversed(values):
        last, second = value + 2 * cos(angle) * last - second, last
    even, odd = newest + last * cos(angle) - second, last * sin(angle)
    direction = where(equal(even, 0), 90 * sign(odd), DEGREES * atan(odd / even))
    # the moving average of four prices lags by one row
    phase = direction + 90 + 360 / cycle.period + where(even < 0, 180, 0)
    return where(phase > 315, phase - 360, phase)


def _sine(phase: Tensor) -> Sine:
    return Sine(sin(phase / DEGREES), sin((phase + 45) / DEGREES))


def _trendline(x: Tensor, cycle: Cycle) -> Tensor:
    total, *values = _recent(x, _whole_rows(cycle))
    for value in values:
        total = total + value
    return smooth_price(total / _whole_rows(cycle))

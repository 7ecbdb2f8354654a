"""The parabolic stop and reverse in plain PyTorch: the state of each series, and one row of its recursion.

A short position is treated as a long one with negated prices: `level` and `extreme` are negated there ("mirrored"), so
that the stop is always below the price.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops._volatility.parameters import float64_constant


class StopRows(NamedTuple):
    """Rows of the stop, and how it depends on prices, which its gradient needs.

    stop = stop_weight x previous stop + price_weight x p; p is the high `high_lag` or the low `low_lag` rows ago, and
    the other lag is -1.
    """

    stop: Tensor
    position: Tensor  # int8
    stop_weight: Tensor
    price_weight: Tensor
    high_lag: Tensor  # int64
    low_lag: Tensor  # int64


class Acceleration(NamedTuple):
    """Acceleration factors, each for long and for short positions."""

    initial: tuple[float, float]
    step: tuple[float, float]
    maximum: tuple[float, float]


class StopState(NamedTuple):
    """StopState of each series after a row."""

    high: Tensor  # of the last row that is not missing
    low: Tensor
    row: Tensor
    level: Tensor  # the stop, mirrored
    extreme: Tensor  # mirrored
    extreme_row: Tensor
    factor: Tensor
    stop_weight: Tensor  # stop = stop_weight x previous stop + price_weight x price of the row `source`
    price_weight: Tensor
    source: Tensor
    source_is_near: Tensor  # the price is low for a long, high for a short position, not the extreme
    position: Tensor  # 1 long, -1 short, 0 none yet


def initial_state(high: Tensor) -> StopState:
    x = high.new_zeros(*high.shape[:-2], high.shape[-1])
    none = torch.full_like(x, -1, dtype=torch.int64)
    return StopState(x, x, none, x, x, none, x, x, x, none, none + 1, none + 1)


def trace(high: Tensor, low: Tensor, start: float, offset: float, *factors: float) -> StopRows:
    """All rows; `factors` are the initial one, the step and the maximum, for long and then for short positions."""
    acceleration = Acceleration(*zip(factors[:3], factors[3:]))
    return advance_rows(initial_state(high), high, low, start, offset, acceleration)[1]


def advance_rows(
    state: StopState, high: Tensor, low: Tensor, start: float, offset: float, acceleration: Acceleration
) -> tuple[StopState, StopRows]:
    """The state after some rows, and their outputs."""
    rows = []
    for t in range(high.shape[-2]):
        state, row = advance(state, high.select(-2, t), low.select(-2, t), t, start, offset, acceleration)
        rows.append(row)
    like = (high, state.position.to(torch.int8), high, high, state.row, state.row)
    outputs = [torch.stack(y, -2) for y in zip(*rows)] or [x.new_empty(high.shape) for x in like]
    return state, StopRows(*outputs)


def advance(
    state: StopState,
    high: Tensor,
    low: Tensor,
    t: int | Tensor,
    start: float,
    offset: float,
    acceleration: Acceleration,
) -> tuple[StopState, StopRows]:
    """The state after row t, and the outputs of row t."""
    present = high.isfinite() & low.isfinite()
    h, w, now = high.where(present, 0), low.where(present, 0), torch.zeros_like(state.row) + t
    is_entry = present & (state.row >= 0) & (state.position == 0)
    with_entry = _where(is_entry, _enter(state, h, w, now, start, acceleration), state)
    current = _where(present, _update(with_entry, h, w, now, offset, acceleration), with_entry)
    next_state = _bound(_accelerate(current), h, w, now)._replace(high=h, low=w, row=now)
    zero = torch.zeros_like(h)
    unchanged = current._replace(stop_weight=zero + 1, price_weight=zero, source=torch.full_like(now, -1))
    first = state._replace(high=h, low=w, row=now)
    has_position = current.position != 0
    next_state = _where(present, _where(has_position, next_state, first), _where(has_position, unchanged, state))
    return next_state, _outputs(current, now)


def _where(condition: Tensor, if_true: StopState, if_false: StopState) -> StopState:
    return StopState(*(a if a is b else torch.where(condition, a, b) for a, b in zip(if_true, if_false)))


def _near(position: Tensor, high: Tensor, low: Tensor) -> Tensor:
    """The mirrored price that can hit the stop."""
    return torch.where(position > 0, low, -high)


def _far(position: Tensor, high: Tensor, low: Tensor) -> Tensor:
    """The mirrored price that can be a new extreme."""
    return torch.where(position > 0, high, -low)


def _select(position: Tensor, long_short: tuple[float, float], like: Tensor) -> Tensor:
    return torch.where(position > 0, _constant(like, long_short[0]), _constant(like, long_short[1]))


def _constant(like: Tensor, number: float) -> Tensor:
    """`number` scaled up and down again: the optimizer of ONNX drops terms that it takes for zero."""
    return float64_constant(like, number * 2.0**30) / 2.0**30


def _enter(s: StopState, h: Tensor, w: Tensor, now: Tensor, start: float, acceleration: Acceleration) -> StopState:
    """The first position, at the second row."""
    zero = torch.zeros_like(h)
    is_short = (s.low - w > 0) & (h - s.high < s.low - w) if start == 0 else zero > (1 if start > 0 else -1)
    position = 1 - 2 * is_short.long()
    level = _near(position, s.high, s.low) if start == 0 else position * _constant(h, abs(start))
    source, price_weight = (s.row, zero + 1) if start == 0 else (torch.full_like(s.row, -1), zero)
    factor, extreme = _select(position, acceleration.initial, h), _far(position, h, w)
    near = torch.ones_like(now)
    return StopState(h, w, now, level, extreme, now, factor, zero, price_weight, source, near, position)


def _bound(s: StopState, h: Tensor, w: Tensor, now: Tensor) -> StopState:
    """Keep the stop below the prices of this and of the previous row."""
    for near, row in ((_near(s.position, s.high, s.low), s.row), (_near(s.position, h, w), now)):
        zero, is_near = torch.zeros_like(near), torch.ones_like(row)
        bounded = s._replace(level=near, stop_weight=zero, price_weight=zero + 1, source=row, source_is_near=is_near)
        s = _where(s.level > near, bounded, s)
    return s


def _update(s: StopState, h: Tensor, w: Tensor, now: Tensor, offset: float, acceleration: Acceleration) -> StopState:
    """Reverse the position if the price hits the stop; else update the extreme and the factor."""
    far, zero, is_near = _far(s.position, h, w), torch.zeros_like(h), torch.ones_like(now)
    increased = s.factor + _select(s.position, acceleration.step, h)
    factor = torch.minimum(increased, _select(s.position, acceleration.maximum, h))
    continued = _where(far > s.extreme, s._replace(extreme=far, extreme_row=now, factor=factor), s)
    mirrored = s._replace(
        position=-s.position,
        level=-s.extreme,
        stop_weight=zero,
        price_weight=zero + 1,
        source=s.extreme_row,
        source_is_near=is_near,
    )
    reversed_ = _bound(mirrored, h, w, now)
    scale, extreme = _select(reversed_.position, (1 - offset, 1 + offset), h), _far(reversed_.position, h, w)
    reversed_ = reversed_._replace(
        level=reversed_.level * scale,
        price_weight=reversed_.price_weight * scale,
        extreme=extreme,
        extreme_row=now,
        factor=_select(reversed_.position, acceleration.initial, h),
    )
    return _where(_near(s.position, h, w) <= s.level, reversed_, continued)


def _accelerate(s: StopState) -> StopState:
    """Move the stop towards the extreme."""
    return s._replace(
        level=s.level + s.factor * (s.extreme - s.level),
        stop_weight=1 - s.factor,
        price_weight=s.factor,
        source=s.extreme_row,
        source_is_near=torch.zeros_like(s.position),
    )


def _outputs(s: StopState, now: Tensor) -> StopRows:
    valid, lag = s.position != 0, torch.where(s.source < 0, -1, now - s.source)
    is_high = (s.source_is_near > 0) == (s.position < 0)
    stop = (s.level * s.position).where(valid, torch.nan)
    high_lag, low_lag = torch.where(valid & is_high, lag, -1), torch.where(valid & ~is_high, lag, -1)
    weights = s.stop_weight.where(valid, 0), s.price_weight.where(valid, 0)
    return StopRows(stop, s.position.to(torch.int8), *weights, high_lag, low_lag)

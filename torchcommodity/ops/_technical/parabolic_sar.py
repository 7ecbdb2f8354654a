"""Wilder's parabolic stop and reverse, and how each stop came from the one before: what its gradient needs."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit import Bad, Cases, Golden, Op, Sample
from torchcommodity.opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops._volatility.parameters import float64_constant


class ParabolicSAR(NamedTuple):
    stop: Tensor  # (..., T, N), unit of the price
    keep: Tensor  # (..., T, N)
    gain: Tensor  # (..., T, N)
    high_since: Tensor  # (..., T, N) int64
    low_since: Tensor  # (..., T, N) int64
    side: Tensor  # (..., T, N) int64


def parabolic_sar(
    high: Tensor,  # (..., T, N)
    low: Tensor,  # (..., T, N)
    start: float = 0.0,
    offset: float = 0.0,
    rising: tuple[float, float, float] = (0.02, 0.02, 0.2),
    falling: tuple[float, float, float] = (0.02, 0.02, 0.2),
) -> ParabolicSAR:
    """Parabolic stop and reverse: the stop moves towards the extreme by a factor that grows with each new one.

    A rising position has its stop below: stop += f (extreme - stop), but no higher than the low of this row and the one
    before. Where a low reaches it, the position turns: the stop becomes the extreme, f its first value, and all of it
    is mirrored.

    Args:
        high, low: prices in any unit. A row where one of them is not finite is missing.
        start: the first stop, of a rising position, or its negative of a falling one; 0: the extreme of the first row,
            on the side that the second row points to.
        offset: relative distance that is added to the stop when the position turns.
        rising, falling: the first factor, what each new extreme adds to it, and its largest value.

    Returns:
        stop, in the unit of the price; side, 1 where the position rises, -1 where it falls; and stop_t = keep_t
        stop_{t-1} + gain_t p, where p is the high `high_since_t` rows before, or the low `low_since_t` rows before, the
        other being -1. NaN, and 0 or -1, before the second row. A missing row leaves the stop where it is. Causal.

    Raises:
        ValueError, TypeError: no floating-point panels of one shape; factors that are negative.

    Devices: CPU and CUDA; elsewhere the reference. `stop` is differentiable to any order, in both modes; where it turns
    and which prices bound it is constant. The others are.

    References:
        Wilder (1978). New Concepts in Technical Trading Systems. ISBN 0894590278.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> high = torch.tensor([[10.0], [11.0], [12.0], [11.0]])
        >>> ops.parabolic_sar(high, high - 2).stop.squeeze(-1)
        tensor([   nan, 8.0000, 8.0600, 8.2176])
    """
    check_panel("parabolic_sar", high=high, low=low)
    if high.shape != low.shape:
        raise_invalid("parabolic_sar", "high and low must have one shape", high=high, low=low)
    if min(*rising, *falling) < 0:
        raise_invalid("parabolic_sar", "factors must be >= 0", rising=rising, falling=falling)
    factors = (min(rising[0], rising[2]), *rising[1:], min(falling[0], falling[2]), *falling[1:])
    return ParabolicSAR(*operator(high, low, float(start), float(offset), *map(float, factors)))


Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _reference(
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    most_long: float,
    initial_short: float,
    step_short: float,
    most_short: float,
) -> Outputs:
    factors = _Factors((initial_long, initial_short), (step_long, step_short), (most_long, most_short))
    state, rows = _nothing(high), []
    for t in range(high.shape[-2]):
        state, row = _advance(state, high.select(-2, t), low.select(-2, t), t, start, offset, factors)
        rows.append(row)
    kinds = (high, high, high, *[state.row] * 3)
    outputs = [torch.stack(y, -2) for y in zip(*rows)] or [kind.new_empty(high.shape) for kind in kinds]
    return tuple(outputs)  # type: ignore[return-value]


def _decomposition(
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    most_long: float,
    initial_short: float,
    step_short: float,
    most_short: float,
) -> Outputs:
    factors = _Factors((initial_long, initial_short), (step_long, step_short), (most_long, most_short))

    def step(state: tuple[Tensor, ...], row: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        after, output = _advance(_State(*state), row[0], row[1], row[2], start, offset, factors)
        return tuple(x.clone() for x in after), tuple(y.clone() for y in output)

    rows = high.movedim(-2, 0), low.movedim(-2, 0), torch.arange(high.shape[-2], device=high.device)
    outputs = torch._higher_order_ops.scan(step, tuple(x.clone() for x in _nothing(high)), rows)[1]
    return tuple(y.movedim(0, -2).contiguous() for y in outputs)


class _Factors(NamedTuple):
    """Of a rising and of a falling position."""

    first: tuple[float, float]
    grow: tuple[float, float]
    most: tuple[float, float]


class _State(NamedTuple):
    """Of each series. A falling position is a rising one in the mirror: level and extreme have its sign there."""

    high: Tensor  # of the last row there was
    low: Tensor
    row: Tensor
    level: Tensor
    extreme: Tensor
    extreme_row: Tensor
    factor: Tensor
    keep: Tensor
    gain: Tensor
    source: Tensor
    of_near: Tensor
    side: Tensor


def _nothing(high: Tensor) -> _State:
    x = high.new_zeros(*high.shape[:-2], high.shape[-1])
    none = torch.full_like(x, -1, dtype=torch.int64)
    return _State(x, x, none, x, x, none, x, x, x, none, none + 1, none + 1)


def _advance(
    state: _State, high: Tensor, low: Tensor, t: int | Tensor, start: float, offset: float, factors: _Factors
) -> tuple[_State, Outputs]:
    """One row: what the stop is on it, and what it will be."""
    known = high.isfinite() & low.isfinite()
    h, w, now = high.where(known, 0), low.where(known, 0), torch.zeros_like(state.row) + t
    fresh = known & (state.row >= 0) & (state.side == 0)
    begun = _where(fresh, _begin(state, h, w, now, start, factors), state)
    moved = _where(known, _met(begun, h, w, now, offset, factors), begun)
    after = _bounded(_towards(moved), h, w, now)._replace(high=h, low=w, row=now)
    none = torch.zeros_like(h)
    waits = moved._replace(keep=none + 1, gain=none, source=torch.full_like(now, -1))
    seen = state._replace(high=h, low=w, row=now)
    after = _where(known, _where(moved.side != 0, after, seen), _where(moved.side != 0, waits, state))
    return after, _output(moved, now)


def _where(condition: Tensor, yes: _State, no: _State) -> _State:
    return _State(*(torch.where(condition, a, b) for a, b in zip(yes, no)))


def _near(side: Tensor, high: Tensor, low: Tensor) -> Tensor:
    """The price that can hit the stop, in the mirror."""
    return torch.where(side > 0, low, -high)


def _far(side: Tensor, high: Tensor, low: Tensor) -> Tensor:
    return torch.where(side > 0, high, -low)


def _pick(side: Tensor, both: tuple[float, float], like: Tensor) -> Tensor:
    return torch.where(side > 0, _float64_constant(like, both[0]), _float64_constant(like, both[1]))


def _float64_constant(like: Tensor, number: float) -> Tensor:
    """Far from zero meanwhile: the optimizer of ONNX leaves out what it takes for one."""
    return float64_constant(like, number * 2.0**30) / 2.0**30


def _begin(s: _State, h: Tensor, w: Tensor, now: Tensor, start: float, factors: _Factors) -> _State:
    none = torch.zeros_like(h)
    falls = (s.low - w > 0) & (h - s.high < s.low - w) if start == 0 else none > (1 if start > 0 else -1)
    side = 1 - 2 * falls.long()
    level = _near(side, s.high, s.low) if start == 0 else side * _float64_constant(h, abs(start))
    source, gain = (s.row, none + 1) if start == 0 else (torch.full_like(s.row, -1), none)
    factor = _pick(side, factors.first, h)
    return _State(h, w, now, level, _far(side, h, w), now, factor, none, gain, source, torch.ones_like(now), side)


def _bounded(s: _State, h: Tensor, w: Tensor, now: Tensor) -> _State:
    """No nearer than the prices of this row and of the one before."""
    for near, at in ((_near(s.side, s.high, s.low), s.row), (_near(s.side, h, w), now)):
        none = torch.zeros_like(near)
        held = s._replace(level=near, keep=none, gain=none + 1, source=at, of_near=torch.ones_like(at))
        s = _where(s.level > near, held, s)
    return s


def _met(s: _State, h: Tensor, w: Tensor, now: Tensor, offset: float, factors: _Factors) -> _State:
    """The row as the stop meets it: the position turns, or the extreme moves on."""
    far, none, near = _far(s.side, h, w), torch.zeros_like(h), torch.ones_like(now)
    factor = torch.minimum(s.factor + _pick(s.side, factors.grow, h), _pick(s.side, factors.most, h))
    further = _where(far > s.extreme, s._replace(extreme=far, extreme_row=now, factor=factor), s)
    mirror = s._replace(side=-s.side, level=-s.extreme, keep=none, gain=none + 1, source=s.extreme_row, of_near=near)
    turned = _bounded(mirror, h, w, now)
    away, extreme = _pick(turned.side, (1 - offset, 1 + offset), h), _far(turned.side, h, w)
    turned = turned._replace(level=turned.level * away, gain=turned.gain * away, extreme=extreme, extreme_row=now)
    turned = turned._replace(factor=_pick(turned.side, factors.first, h))
    return _where(_near(s.side, h, w) <= s.level, turned, further)


def _towards(s: _State) -> _State:
    level = s.level + s.factor * (s.extreme - s.level)
    return s._replace(
        level=level, keep=1 - s.factor, gain=s.factor, source=s.extreme_row, of_near=torch.zeros_like(s.side)
    )


def _output(s: _State, now: Tensor) -> Outputs:
    known, since = s.side != 0, torch.where(s.source < 0, -1, now - s.source)
    of_high = (s.of_near > 0) == (s.side < 0)
    stop = (s.level * s.side).where(known, torch.nan)
    high_since, low_since = torch.where(known & of_high, since, -1), torch.where(known & ~of_high, since, -1)
    return stop, s.keep.where(known, 0), s.gain.where(known, 0), high_since, low_since, s.side


def _fake(high: Tensor, low: Tensor, *settings: float) -> Outputs:
    counts = [high.new_empty(high.shape, dtype=torch.int64) for _ in range(3)]
    stop, keep, gain = (high.new_empty(high.shape) for _ in range(3))
    return stop, keep, gain, counts[0], counts[1], counts[2]


def _backward(grad: Tensor, *constants: Tensor | None, output: Outputs) -> tuple[Tensor, Tensor]:
    # L_t = grad_t + keep_{t+1} L_{t+1}, backwards in time; the price that row t took gets gain_t L_t
    keep, gain, high_since, low_since = output[1:5]
    after = torch.cat([torch.zeros_like(keep[..., :1, :]), keep.flip(-2)], -2)[..., :-1, :]
    taken = gain * linear_recurrence(after, grad.flip(-2)).flip(-2)
    return gather_lag(taken, high_since, scatter=True), gather_lag(taken, low_since, scatter=True)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    middle = 50 + torch.randn(2, 12, 3, dtype=torch.double, generator=generator).cumsum(-2)
    spread = torch.rand(2, 2, 12, 3, dtype=torch.double, generator=generator)
    high, low = middle + spread[0], middle - spread[1]
    holed = high.clone()
    holed[0, 6, 1] = holed[1, 0, 0] = holed[1, 9:11, 2] = torch.nan
    by_hand = torch.tensor([torch.nan, 8, 8.06, 12], dtype=torch.double).unsqueeze(-1)
    tops = torch.tensor([10, 11, 12, 10], dtype=torch.double).unsqueeze(-1)
    return Cases(
        function=parabolic_sar,
        samples=(
            Sample(high, low),
            Sample(holed, low, rising=(0.05, 0.1, 0.3)),
            Sample(high, low, start=-52.0, offset=0.01),
            Sample(high[0, :, :1], low[0, :, :1], start=45.0),
        ),
        bad=(
            Bad(Sample(high, low[0]), r"parabolic_sar: high and low must have one shape; got high \(2, 12, 3\)"),
            Bad(Sample(high, low, rising=(-0.1, 0.1, 0.2)), r"factors must be >= 0; got rising=\(-0.1, 0.1, 0.2\)"),
            Bad(Sample(high.long(), low), "high must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(tops, tops - 2), by_hand, "by hand"),),
    )


operator = Op(
    "parabolic_sar",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    cases=_cases,
    warmup=lambda *settings: (1, 0, 0, 0, 0, 0),
)

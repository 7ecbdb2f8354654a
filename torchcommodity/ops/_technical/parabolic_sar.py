"""Wilder's parabolic stop and reverse."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit import Bad, Cases, Golden, Op, Past, Sample, has_kernel, live
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._scan.scan import Tensors, scan
from torchcommodity.ops._technical import parabolic_sar_backward
from torchcommodity.ops._technical.parabolic_sar_state import (
    Acceleration,
    StopState,
    advance,
    advance_rows,
    initial_state,
    trace,
)


class ParabolicSAR(NamedTuple):
    """Stops and positions of `parabolic_sar`."""

    stop: Tensor  # (..., T, N), in the unit of the price
    position: Tensor  # (..., T, N) int8


def update_stops(
    past: Past,
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    acceleration_long: tuple[float, float, float],
    acceleration_short: tuple[float, float, float],
) -> ParabolicSAR:
    """The stops of new rows."""
    settings = _settings(high, low, start, offset, acceleration_long, acceleration_short)
    x, y = (price.to(torch.promote_types(price.dtype, torch.float32)) for price in (high, low))
    if has_kernel("commodity::parabolic_sar_step", high.device):
        stop, position, state = torch.ops.commodity.parabolic_sar_step(x, y, past.get("state"), *settings)
        past.keep("state", state)
        return ParabolicSAR(stop.to(high.dtype), position)
    start, offset, *factors = settings
    before = StopState(**past.tensors) if past.tensors else initial_state(x)
    after, rows = advance_rows(before, x, y, start, offset, Acceleration(*zip(factors[:3], factors[3:])))
    for name, value in after._asdict().items():
        past.keep(name, value.clone())
    return ParabolicSAR(rows.stop.to(high.dtype), rows.position)


@live(update_stops, panels=2)
def parabolic_sar(
    high: Tensor,  # (..., T, N)
    low: Tensor,  # (..., T, N)
    start: float = 0.0,
    offset: float = 0.0,
    acceleration_long: tuple[float, float, float] = (0.02, 0.02, 0.2),
    acceleration_short: tuple[float, float, float] = (0.02, 0.02, 0.2),
) -> ParabolicSAR:
    """Parabolic stop and reverse (SAR): a stop that accelerates towards the extreme price of the position.

    The stop of a long position is below the price: stop += f (extreme - stop), but not above the lows of this and of
    the previous row. Each new extreme increases the factor f. Where a low reaches the stop, the position reverses: the
    stop becomes the extreme, f returns to its initial value, and the rule is mirrored.

    Args:
        high, low: Prices in any unit. A row where one of them is not finite is missing.
        start: Initial stop, of a long position; its negative for a short one. 0 means the extreme of the first row, on
            the side given by the second row.
        offset: Relative distance added to the stop when the position reverses.
        acceleration_long, acceleration_short: Initial factor, increase per new extreme, maximum.

    Returns:
        `ParabolicSAR`: stop, in the unit of the price; position, 1 for long and -1 for short. The first row has no
        position: NaN and 0. A missing row leaves the stop unchanged. Causal. Equal to TA-Lib's SAR and SAREXT.

    Raises:
        ValueError, TypeError: If `high` and `low` are not floating-point panels of one shape, or a factor is negative.

    Devices: CPU and CUDA; elsewhere the reference in plain PyTorch. `stop` is differentiable to any order, in reverse
    and forward mode, for fixed reversals and bounds; `position` is constant.

    References:
        Wilder (1978). New Concepts in Technical Trading Systems. ISBN 0894590278.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> high = torch.tensor([[10.0], [11.0], [12.0], [11.0]])
        >>> ops.parabolic_sar(high, high - 2).stop.squeeze(-1)
        tensor([   nan, 8.0000, 8.0600, 8.2176])
    """
    settings = _settings(high, low, start, offset, acceleration_long, acceleration_short)
    return ParabolicSAR(*operator(high, low, *settings))


def _settings(
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    acceleration_long: tuple[float, float, float],
    acceleration_short: tuple[float, float, float],
) -> tuple[float, ...]:
    """Check the arguments; the settings of the operator."""
    check_panel("parabolic_sar", high=high, low=low)
    if high.shape != low.shape:
        raise_invalid("parabolic_sar", "high and low must have one shape", high=high, low=low)
    if min(*acceleration_long, *acceleration_short) < 0:
        raise_invalid(
            "parabolic_sar",
            "acceleration factors must be >= 0",
            acceleration_long=acceleration_long,
            acceleration_short=acceleration_short,
        )
    factors = (
        factor
        for initial, step, maximum in (acceleration_long, acceleration_short)
        for factor in (min(initial, maximum), step, maximum)
    )
    return tuple(map(float, (start, offset, *factors)))


def _reference(
    high: Tensor,
    low: Tensor,
    start: float = 0.0,
    offset: float = 0.0,
    initial_long: float = 0.02,
    step_long: float = 0.02,
    max_long: float = 0.2,
    initial_short: float = 0.02,
    step_short: float = 0.02,
    max_short: float = 0.2,
) -> tuple[Tensor, Tensor]:
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    outputs = trace(high, low, *settings)
    return outputs.stop, outputs.position


def _decomposition(
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    max_long: float,
    initial_short: float,
    step_short: float,
    max_short: float,
) -> tuple[Tensor, Tensor]:
    acceleration = Acceleration((initial_long, initial_short), (step_long, step_short), (max_long, max_short))

    def step(state: Tensors, row: Tensors) -> tuple[Tensors, Tensors]:
        next_state, outputs = advance(StopState(*state), row[0], row[1], row[2], start, offset, acceleration)
        return tuple(x.clone() for x in next_state), (outputs.stop.clone(), outputs.position.clone())

    rows = high.movedim(-2, 0), low.movedim(-2, 0), torch.arange(high.shape[-2], device=high.device)
    outputs = scan(step, tuple(x.clone() for x in initial_state(high)), rows)
    stop, position = (y.movedim(0, -2).contiguous() for y in outputs)
    return stop, position


def _fake(high: Tensor) -> tuple[Tensor, Tensor]:
    return high.new_empty(high.shape), high.new_empty(high.shape, dtype=torch.int8)


def _backward(
    grad: Tensor,
    constant: Tensor | None,
    *,
    high: Tensor,
    low: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    max_long: float,
    initial_short: float,
    step_short: float,
    max_short: float,
) -> tuple[Tensor, Tensor]:
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    d_high, d_low = parabolic_sar_backward.operator(high, low, grad, *settings)
    return d_high, d_low


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    middle = 50 + torch.randn(2, 12, 3, dtype=torch.double, generator=generator).cumsum(-2)
    spread = torch.rand(2, 2, 12, 3, dtype=torch.double, generator=generator)
    high, low = middle + spread[0], middle - spread[1]
    gaps = high.clone()
    gaps[0, 6, 1] = gaps[1, 0, 0] = gaps[1, 9:11, 2] = torch.nan
    by_hand = torch.tensor([torch.nan, 8, 8.06, 12], dtype=torch.double).unsqueeze(-1)
    rising = torch.tensor([10, 11, 12, 10], dtype=torch.double).unsqueeze(-1)
    return Cases(
        function=parabolic_sar,
        samples=(
            Sample(high, low),
            Sample(gaps, low, acceleration_long=(0.05, 0.1, 0.3)),
            Sample(high, low, start=-52.0, offset=0.01),
            Sample(high[0, :, :1], low[0, :, :1], start=45.0),
        ),
        bad=(
            Bad(Sample(high, low[0]), r"parabolic_sar: high and low must have one shape; got high \(2, 12, 3\)"),
            Bad(
                Sample(high, low, acceleration_long=(-0.1, 0.1, 0.2)),
                r"acceleration factors must be >= 0; got acceleration_long=\(-0.1, 0.1, 0.2\)",
            ),
            Bad(Sample(high.long(), low), "high must be floating-point", TypeError),
        ),
        golden=(Golden(Sample(rising, rising - 2), by_hand, "by hand"),),
    )


operator = Op(
    "commodity::parabolic_sar",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    mask_nan_grad=False,
    cases=_cases,
    warmup=lambda *settings: (1, 0),
)

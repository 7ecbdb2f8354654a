"""Backward pass of `parabolic_sar`, the gradient of the prices in one forward and one reverse pass, and its transpose.

The stop is piecewise linear in the prices: its tangent and its gradient are each other's derivative.
"""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torchcommodity.ops._rolling.gather_lag import gather_lag
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops._technical.parabolic_sar_state import trace


def _reference(
    high: Tensor,
    low: Tensor,
    grad: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    max_long: float,
    initial_short: float,
    step_short: float,
    max_short: float,
) -> tuple[Tensor, Tensor]:
    # adjoint a_t = grad_t + stop_weight_{t+1} a_{t+1} in reverse time; the price of row t receives price_weight_t a_t
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    with torch.no_grad():
        rows = trace(high, low, *settings)
    next_weight = torch.cat([torch.zeros_like(high[..., :1, :]), rows.stop_weight.flip(-2)], -2)[..., :-1, :]
    adjoint = linear_recurrence(next_weight, grad.where((rows.position != 0) & ~grad.isnan(), 0).flip(-2)).flip(-2)
    d_price = rows.price_weight * adjoint
    return gather_lag(d_price, rows.high_lag, scatter=True), gather_lag(d_price, rows.low_lag, scatter=True)


def _fake(high: Tensor) -> tuple[Tensor, Tensor]:
    return high.new_empty(high.shape), high.new_empty(high.shape)


def _backward(
    grad_high: Tensor,
    grad_low: Tensor,
    *,
    high: Tensor,
    low: Tensor,
    grad: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    max_long: float,
    initial_short: float,
    step_short: float,
    max_short: float,
) -> tuple[Tensor, Tensor, Tensor]:
    # only the incoming gradient has a derivative
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    return 0 * grad_high, 0 * grad_low, tangent(high, low, grad_high, grad_low, *settings)


def _tangent_reference(
    high: Tensor,
    low: Tensor,
    d_high: Tensor,
    d_low: Tensor,
    start: float,
    offset: float,
    initial_long: float,
    step_long: float,
    max_long: float,
    initial_short: float,
    step_short: float,
    max_short: float,
) -> Tensor:
    # dstop_t = stop_weight_t dstop_{t-1} + price_weight_t dprice
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    with torch.no_grad():
        rows = trace(high, low, *settings)
    d_price = gather_lag(d_high, rows.high_lag) + gather_lag(d_low, rows.low_lag)
    return linear_recurrence(rows.stop_weight, rows.price_weight * d_price)


def _tangent_backward(
    grad: Tensor,
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
) -> tuple[Tensor, ...]:
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short
    d_high, d_low = operator(high, low, grad, *settings)
    return 0 * grad, 0 * grad, d_high, d_low


def _gradient(
    high: Tensor, low: Tensor, grad: Tensor, start: float = 0.0, offset: float = 0.0, maximum: float = 0.2
) -> tuple[Tensor, Tensor]:
    d_high, d_low = operator(high, low, grad, start, offset, *(0.02, 0.02, maximum), *(0.02, 0.02, 0.2))
    return d_high, d_low


def _tangent(
    high: Tensor,
    low: Tensor,
    d_high: Tensor,
    d_low: Tensor,
    start: float = 0.0,
    offset: float = 0.0,
    maximum: float = 0.2,
) -> Tensor:
    """The operator on finite tangents, since the contract also tries missing values."""
    d_high, d_low = (x.where(x.isfinite(), 0) for x in (d_high, d_low))
    d_stop: Tensor = tangent(high, low, d_high, d_low, start, offset, *(0.02, 0.02, maximum), *(0.02, 0.02, 0.2))
    return d_stop


def _panels() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """High with gaps, low, and two panels of gradients."""
    generator = torch.Generator().manual_seed(0)
    middle = 50 + torch.randn(2, 12, 3, dtype=torch.double, generator=generator).cumsum(-2)
    spread = torch.rand(2, 2, 12, 3, dtype=torch.double, generator=generator)
    high, low = middle + spread[0], middle - spread[1]
    high[0, 6, 1] = high[1, 0, 0] = high[1, 9:11, 2] = torch.nan
    grad, other = torch.randn(2, 2, 12, 3, dtype=torch.double, generator=generator)
    return high, low, grad, other


def _cases() -> Cases:
    high, low, grad, _ = _panels()
    return Cases(function=_gradient, samples=(Sample(high, low, grad, start=-52.0, offset=0.01, maximum=0.03),))


def _tangent_cases() -> Cases:
    settings: tuple[dict[str, float], ...] = ({"start": -52.0, "offset": 0.01, "maximum": 0.03}, {}, {"start": 45.0})
    return Cases(function=_tangent, samples=tuple(Sample(*_panels(), **setting) for setting in settings))


operator = Op(
    "commodity::parabolic_sar_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    cases=_cases,
    causal=False,
)
tangent = Op(
    "commodity::parabolic_sar_tangent",
    reference=_tangent_reference,
    backward=_tangent_backward,
    mask_nan_grad=False,
    cases=_tangent_cases,
)

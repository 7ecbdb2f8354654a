"""Backward pass of `parabolic_sar`: the gradient of the prices in one forward and one reverse pass."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample, vjp
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
    # the stop is piecewise linear in the prices: only the incoming gradient has a derivative
    settings = start, offset, initial_long, step_long, max_long, initial_short, step_short, max_short

    def gradient(grad: Tensor) -> Tensor:
        return torch.stack(_reference(high, low, grad, *settings))

    (d_grad,) = vjp(gradient, (grad,), torch.stack([grad_high, grad_low]))
    return 0 * grad_high, 0 * grad_low, d_grad


def _gradient(
    high: Tensor, low: Tensor, grad: Tensor, start: float = 0.0, offset: float = 0.0, maximum: float = 0.2
) -> tuple[Tensor, Tensor]:
    d_high, d_low = operator(high, low, grad, start, offset, *(0.02, 0.02, maximum), *(0.02, 0.02, 0.2))
    return d_high, d_low


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    middle = 50 + torch.randn(2, 4, 3, dtype=torch.double, generator=generator).cumsum(-2)
    spread = torch.rand(2, 2, 4, 3, dtype=torch.double, generator=generator)
    high, low = middle + spread[0], middle - spread[1]
    grad = torch.randn(2, 4, 3, dtype=torch.double, generator=generator)
    gaps = high.clone()
    gaps[0, 2, 1] = gaps[1, 0, 0] = torch.nan
    return Cases(
        function=_gradient,
        samples=(Sample(gaps, low, grad, start=-52.0, offset=0.01, maximum=0.03),),
    )


operator = Op(
    "commodity::parabolic_sar_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,
    cases=_cases,
    causal=False,
)

"""Backward pass of `technical_indicators`, and the parts of the relative strength index (RSI) that both compute."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Cases, Op, Sample, vjp, widest
from torchcommodity.ops._rolling.rolling_mean_var_backward import operator as rolling_mean_var_backward
from torchcommodity.ops._rolling.rolling_var import operator as rolling_var
from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


def changes(x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Changes from the last price, zero where undefined, and where they are defined.

    "simple" requires a price in the previous row; "wilder" takes the last one before a gap.
    """
    finite = x.isfinite()
    last = linear_recurrence((~finite).to(x), x.where(finite, 0))
    has_last = finite if mode == "simple" else finite.cumsum(-2) > 0
    valid = finite & (shift(has_last.to(x)) > 0)  # as a number: Inductor does not compile a padded bool
    return (x - shift(last)).where(valid, 0), valid


def shift(x: Tensor) -> Tensor:
    """x_{t-1}, zero in the first row."""
    return pad(x, (0, 0, 1, 0))[..., :-1, :]


def carry_factor(valid: Tensor, rsi: int, dtype: torch.dtype) -> Tensor:
    """Factor of the previous Wilder average: 1 for the first `rsi` changes and where there is no change."""
    return 1 - (valid & (valid.cumsum(-2) > rsi)).to(dtype) / rsi


def averages(change: Tensor, valid: Tensor, rsi: int, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """Average gain and average loss per step, and where they are defined."""
    moves = torch.stack([change.clamp(min=0), -change.clamp(max=0)]) / rsi
    if mode == "simple":
        gains, losses = window_sum(moves, rsi)
        return gains, losses, window_sum(valid.to(torch.int64), rsi) == rsi
    gains, losses = linear_recurrence(carry_factor(valid, rsi, moves.dtype), moves)
    return gains, losses, valid.cumsum(-2) >= rsi


def _reference(prices: Tensor, grad: Tensor, short: int, long: int, rsi: int, band: int, mode: str) -> Tensor:
    # averages: dx_s = sum of g_t / W over the windows that contain s
    # h = 2 sd: twice the gradient of the standard deviation
    finite = prices.isfinite()
    x = widest(prices).where(finite, 0)
    x = (x - x.detach().sum(-2, keepdim=True) / finite.sum(-2, keepdim=True).clamp(min=1)).where(finite, 0)
    g_short, g_long, g_rsi, g_half = widest(grad.where(grad.isfinite(), 0)).unbind(-1)
    g_short, g_long = (
        g.where(window_sum(finite.to(x), window) == window, 0) / window
        for g, window in ((g_short, short), (g_long, long))
    )
    dx = window_sum_ahead(g_short, short) + window_sum_ahead(g_long, long)
    x = x.where(finite, torch.nan)
    deviation = rolling_var(x, band, band, 0, True)
    dx = dx + rolling_mean_var_backward(2 * g_half, x, deviation, band, band, 0, 2)
    return (dx + _rsi_gradient(g_rsi, widest(prices), rsi, mode)).where(finite, 0).to(prices.dtype)


def _rsi_gradient(g: Tensor, x: Tensor, rsi: int, mode: str) -> Tensor:
    # dRSI = 100 (L dG - G dL) / (G + L)^2; then the averages and the changes, transposed, in reverse time
    change, valid = changes(x, mode)
    gains, losses, defined = averages(change, valid, rsi, mode)
    total = gains + losses
    d_average = (100 * g / total.where(total > 0, 1).square()).where(defined, 0)
    d_averages = torch.stack([d_average * losses, -d_average * gains])
    if mode == "simple":
        d_gain, d_loss = window_sum_ahead(d_averages, rsi) / rsi
    else:
        factor = shift(carry_factor(valid, rsi, x.dtype).flip(-2))
        d_gain, d_loss = linear_recurrence(factor, d_averages.flip(-2)).flip(-2) / rsi
    d_change = torch.where(change > 0, d_gain, 0) - torch.where(change < 0, d_loss, 0)
    # a change also depends on the last price before it: its gradient goes back to the first row that is not missing
    missing = shift((~x.isfinite()).to(x).flip(-2))
    d_last = linear_recurrence(missing, shift(d_change.flip(-2))).flip(-2)
    return d_change - d_last


def _backward(
    grad_dx: Tensor, *, prices: Tensor, grad: Tensor, short: int, long: int, rsi: int, band: int, mode: str
) -> tuple[Tensor, ...]:
    return vjp(lambda x, g: _reference(x, g, short, long, rsi, band, mode), (prices, grad), grad_dx)


def _weighted(prices: Tensor, weights: Tensor, short: int, long: int, rsi: int, band: int, mode: str) -> Tensor:
    """The operator with finite gradients of all indicators, derived from one tensor that the contract may alter."""
    w = weights.where(weights.isfinite(), 0)
    dx: Tensor = operator(prices, torch.stack([w, w.sin(), w.cos(), w.square()], -1), short, long, rsi, band, mode)
    return dx


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = 50 + torch.randn(2, 15, 3, dtype=torch.double, generator=generator).cumsum(-2)
    weights = torch.randn(2, 15, 3, dtype=torch.double, generator=generator)
    gaps = x.clone()
    gaps[0, 6, 1] = gaps[1, 0, 0] = gaps[1, 9:11, 2] = torch.nan
    gaps[0, 3, 2] = torch.inf
    small = {"short": 2, "long": 5, "rsi": 3, "band": 4}
    return Cases(
        function=_weighted,
        samples=(
            Sample(x, weights, **small, mode="wilder"),
            Sample(gaps, weights, **small, mode="wilder"),
            Sample(gaps, weights, **small, mode="simple"),
        ),
    )


operator = Op(
    "commodity::technical_indicators_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)

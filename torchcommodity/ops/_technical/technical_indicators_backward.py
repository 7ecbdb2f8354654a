"""Backward pass of `technical_indicators`, and the parts of the relative strength index (RSI) that both compute."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_opkit import Cases, Op, Sample, widest
from torchcommodity.ops._rolling.rolling_mean_var_backward import operator as rolling_mean_var_backward
from torchcommodity.ops._rolling.rolling_mean_var_backward import second_backward
from torchcommodity.ops._rolling.rolling_var import operator as rolling_var
from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


def changes(x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Changes from the last price, zero where undefined, and where they are defined.

    "simple" requires a price in the previous row; "wilder" takes the last one before a gap.
    """
    finite = x.isfinite()
    has_last = finite if mode == "simple" else finite.cumsum(-2) > 0
    valid = finite & (shift(has_last.to(x)) > 0)  # as a number: Inductor does not compile a padded bool
    return _from_last(x.where(finite, 0), finite, valid), valid


def _from_last(x: Tensor, finite: Tensor, valid: Tensor) -> Tensor:
    """Differences from the last finite row; zero where not valid."""
    return (x - shift(linear_recurrence((~finite).to(x), x))).where(valid, 0)


def shift(x: Tensor) -> Tensor:
    """x_{t-1}, zero in the first row."""
    return pad(x, (0, 0, 1, 0))[..., :-1, :]


def carry_factor(valid: Tensor, rsi: int, dtype: torch.dtype) -> Tensor:
    """Factor of the previous Wilder average: 1 for the first `rsi` changes and where there is no change."""
    return 1 - (valid & (valid.cumsum(-2) > rsi)).to(dtype) / rsi


def averages(change: Tensor, valid: Tensor, rsi: int, mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """Average gain and average loss per step, and where they are defined."""
    gains, losses = _average(torch.stack([change.clamp(min=0), -change.clamp(max=0)]), valid, rsi, mode)
    if mode == "simple":
        return gains, losses, window_sum(valid.to(torch.int64), rsi) == rsi
    return gains, losses, valid.cumsum(-2) >= rsi


def _average(moves: Tensor, valid: Tensor, rsi: int, mode: str) -> Tensor:
    if mode == "simple":
        return window_sum(moves / rsi, rsi)
    return linear_recurrence(carry_factor(valid, rsi, moves.dtype), moves / rsi)


def _reference(prices: Tensor, grad: Tensor, short: int, long: int, rsi: int, band: int, mode: str) -> Tensor:
    # averages: dx_s = sum of g_t / W over the windows that contain s
    # h = 2 sd: twice the gradient of the standard deviation
    finite = prices.isfinite()
    g_short, g_long, g_rsi, g_half = widest(grad.where(grad.isfinite(), 0)).unbind(-1)
    g_short, g_long = (
        g.where(window_sum(finite.to(g), window) == window, 0) / window
        for g, window in ((g_short, short), (g_long, long))
    )
    dx = window_sum_ahead(g_short, short) + window_sum_ahead(g_long, long)
    x = widest(prices)
    return (dx + _band_gradient(x, g_half, band) + _rsi_gradient(g_rsi, x, rsi, mode)).where(finite, 0).to(prices.dtype)


def _band_gradient(x: Tensor, g: Tensor, band: int) -> Tensor:
    x, std = _band(x, band)
    dx: Tensor = rolling_mean_var_backward(2 * g, x, std, band, band, 0, 2)
    return dx


def _band(x: Tensor, band: int) -> tuple[Tensor, Tensor]:
    """Prices about their mean, which the band does not depend on, and the standard deviation."""
    finite = x.isfinite()
    level = x.detach().where(finite, 0).sum(-2, keepdim=True) / finite.sum(-2, keepdim=True).clamp(min=1)
    x = (x - level).where(finite, torch.nan)
    return x, rolling_var(x, band, band, 0, True)


def _band_second_backward(u: Tensor, x: Tensor, g: Tensor, band: int) -> tuple[Tensor, Tensor]:
    """Gradients of x and g from that of `_band_gradient`, which depends on x also by the standard deviation."""
    x, std = _band(x, band)
    d_grad, dx, d_std = second_backward(u, grad=2 * g, x=x, std=std, window=band, min_periods=band, ddof=0, order=2)
    assert d_grad is not None
    return dx + rolling_mean_var_backward(d_std, x, std, band, band, 0, 2), 2 * d_grad


def _rsi_gradient(g: Tensor, x: Tensor, rsi: int, mode: str) -> Tensor:
    # dRSI = 100 (L dG - G dL) / (G + L)^2
    change, valid = changes(x, mode)
    gains, losses, defined = averages(change, valid, rsi, mode)
    weight = g * _rsi_slope(gains + losses, defined)
    return _changes_gradient(torch.stack([weight * losses, -weight * gains]), change, valid, x.isfinite(), rsi, mode)


def _rsi_slope(total: Tensor, defined: Tensor) -> Tensor:
    slope: Tensor = 100 / total.where(total > 0, 1).square()
    return slope.where(defined, 0)


def _changes_gradient(d_averages: Tensor, change: Tensor, valid: Tensor, finite: Tensor, rsi: int, mode: str) -> Tensor:
    """The gradient of the prices from that of the average gain and loss: averages and changes transposed."""
    if mode == "simple":
        d_gain, d_loss = window_sum_ahead(d_averages, rsi) / rsi
    else:
        factor = shift(carry_factor(valid, rsi, change.dtype).flip(-2))
        d_gain, d_loss = linear_recurrence(factor, d_averages.flip(-2)).flip(-2) / rsi
    d_change = torch.where(change > 0, d_gain, 0) - torch.where(change < 0, d_loss, 0)
    # a change also depends on the last price before it: its gradient goes back to the first row that is not missing
    missing = shift((~finite).to(change).flip(-2))
    d_last = linear_recurrence(missing, shift(d_change.flip(-2))).flip(-2)
    return d_change - d_last


def _backward(
    grad_dx: Tensor, *, prices: Tensor, grad: Tensor, short: int, long: int, rsi: int, band: int, mode: str
) -> tuple[Tensor, Tensor]:
    # With u the incoming gradient, dgrad is the tangent of the indicators along u; the averages have no other term.
    # RSI: with the tangents dG and dL along u, S = G + L, a = 100 g / S^2 and c = a (L dG - G dL), the gradients of G
    # and L are -a dL - 2 c / S and a dG - 2 c / S.
    finite = prices.isfinite()
    x, u = widest(prices), widest(grad_dx).where(finite, 0)
    g = widest(grad.where(grad.isfinite(), 0))
    complete = [window_sum(finite.to(x), window) == window for window in (short, long)]
    d_short, d_long = (window_sum(u, n).where(mask, 0) / n for n, mask in zip((short, long), complete))

    change, valid = changes(x, mode)
    gains, losses, defined = averages(change, valid, rsi, mode)
    move = _from_last(u, finite, valid)
    moves = torch.stack([torch.where(change > 0, move, 0), torch.where(change < 0, -move, 0)])
    d_gains, d_losses = _average(moves, valid, rsi, mode)
    total = gains + losses
    slope = _rsi_slope(total, defined)
    d_rsi = slope * (losses * d_gains - gains * d_losses)
    weight, common = g[..., 2] * slope, 2 * g[..., 2] * d_rsi / total.where(total > 0, 1)
    d_averages = torch.stack([-weight * d_losses - common, weight * d_gains - common])
    dx = _changes_gradient(d_averages, change, valid, finite, rsi, mode)

    d_band, d_half = _band_second_backward(u, x, g[..., 3], band)
    d_grad = torch.stack([d_short, d_long, d_rsi, d_half], -1).where(grad.isfinite(), 0)
    return (dx + d_band).where(finite, 0).to(prices.dtype), d_grad.to(grad.dtype)


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

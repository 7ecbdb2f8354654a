"""The distribution between and beyond the quantiles of a forecast.

Between two levels the quantile function is linear in the level, so that the density is constant there. Beyond the
outermost levels the tails are exponential, through the two outermost quantiles of each side:

    q(u) = q_1 + a ln(u / tau_1),                a = (q_2 - q_1) / ln(tau_2 / tau_1)                    u < tau_1
    q(u) = q_Q - b ln((1 - u) / (1 - tau_Q)),    b = (q_Q - q_{Q-1}) / ln((1 - tau_{Q-1}) / (1 - tau_Q))    u > tau_Q

Park, Robinson, Aich, Wang, Rangapuram, Gasthaus (2022). Learning quantile functions without quantile crossing for
distribution-free time series forecasting. AISTATS. arXiv:2111.06581.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from torch_opkit.arguments import check_tensor, current_operation, raise_invalid

Levels = Sequence[float]


def check_quantiles(quantiles: Tensor, levels: Levels) -> None:
    """Raise ValueError unless quantiles (..., Q) do not cross and their levels are increasing, in (0, 1)."""
    operation = current_operation()
    check_tensor(operation, quantiles=quantiles)
    ordered = all(a < b for a, b in pairwise(levels))
    if len(levels) < 2 or not ordered or levels[0] <= 0 or levels[-1] >= 1:
        raise_invalid(operation, "levels must be at least two increasing numbers in (0, 1)", levels=tuple(levels))
    if quantiles.dim() < 1 or quantiles.shape[-1] != len(levels) or not quantiles.is_floating_point():
        rule = f"quantiles must be floating point (..., {len(levels)}), one for each level"
        raise_invalid(operation, rule, dtype=quantiles.dtype, quantiles=quantiles)
    if bool((quantiles.diff(dim=-1) < 0).any()):
        crossing = int((quantiles.diff(dim=-1) < 0).any(-1).sum())
        raise_invalid(operation, "quantiles must not decrease with the level; sort them", crossing_rows=crossing)


def negate_quantiles(quantiles: Tensor, levels: Levels) -> tuple[Tensor, tuple[float, ...]]:  # (..., Q) -> (..., Q)
    """Quantiles of minus the variable, such as the return of a short position, and their levels."""
    return -quantiles.flip(-1), tuple(1 - tau for tau in reversed(levels))


def quantile_at(quantiles: Tensor, levels: Levels, level: float) -> Tensor:  # (..., Q) -> (...)
    """Quantile of any level in (0, 1)."""
    q, (lower, upper) = quantiles, tail_scales(quantiles, levels)
    if level < levels[0]:
        return q[..., 0] + lower * math.log(level / levels[0])
    if level > levels[-1]:
        return q[..., -1] - upper * math.log((1 - level) / (1 - levels[-1]))
    right = min(max(sum(tau < level for tau in levels), 1), len(levels) - 1)
    weight = (level - levels[right - 1]) / (levels[right] - levels[right - 1])
    return torch.lerp(q[..., right - 1], q[..., right], weight)


def lower_tail_mean(quantiles: Tensor, levels: Levels, level: float) -> Tensor:  # (..., Q) -> (...)
    """Mean of the quantile function over (0, level): the exponential tail, then trapezoids between the levels."""
    lower = tail_scales(quantiles, levels)[0]
    if level <= levels[0]:
        return quantile_at(quantiles, levels, level) - lower
    knots = [*(tau for tau in levels if tau < level), level]
    curve = torch.stack([quantile_at(quantiles, levels, knot) for knot in knots], -1)
    tail = knots[0] * (curve[..., 0] - lower)
    return (tail + torch.trapezoid(curve, curve.new_tensor(knots), dim=-1)) / level


def cdf(quantiles: Tensor, levels: Levels, x: Tensor) -> Tensor:  # (..., Q), (...) -> (...)
    """Probability of an outcome up to x; NaN where x or a quantile is NaN."""
    left, right, position = _bins(quantiles, x)
    tau = quantiles.new_tensor(levels)
    lower, upper = (scale.clamp(min=torch.finfo(scale.dtype).tiny) for scale in tail_scales(quantiles, levels))
    share = (x - _at(quantiles, left)) / (_at(quantiles, right) - _at(quantiles, left))
    inside = torch.lerp(tau[left], tau[right], share)
    below = levels[0] * ((x - quantiles[..., 0]) / lower).exp()
    above = 1 - (1 - levels[-1]) * ((quantiles[..., -1] - x) / upper).exp()
    return _select(quantiles, x, position, below, inside, above)


def log_density(quantiles: Tensor, levels: Levels, x: Tensor) -> Tensor:  # (..., Q), (...) -> (...)
    """Logarithm of the density at x; NaN where x or a quantile is NaN, or a tail has no width."""
    left, right, position = _bins(quantiles, x)
    tau = quantiles.new_tensor(levels)
    lower, upper = tail_scales(quantiles, levels)
    lower, upper = (torch.where(scale > 0, scale, torch.nan) for scale in (lower, upper))
    inside = ((tau[right] - tau[left]) / (_at(quantiles, right) - _at(quantiles, left))).log()
    below = (levels[0] / lower).log() + (x - quantiles[..., 0]) / lower
    above = ((1 - levels[-1]) / upper).log() + (quantiles[..., -1] - x) / upper
    return _select(quantiles, x, position, below, inside, above)


def tail_scales(quantiles: Tensor, levels: Levels) -> tuple[Tensor, Tensor]:  # (...) each
    """Scales a and b of the exponential tails, in the unit of the quantiles."""
    lower = (quantiles[..., 1] - quantiles[..., 0]) / math.log(levels[1] / levels[0])
    upper = (quantiles[..., -1] - quantiles[..., -2]) / math.log((1 - levels[-2]) / (1 - levels[-1]))
    return lower, upper


def _bins(quantiles: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers of the quantiles on either side of x, and how many quantiles are not above it."""
    position = torch.searchsorted(quantiles.contiguous(), x.unsqueeze(-1).contiguous(), right=True).squeeze(-1)
    right = position.clamp(1, quantiles.shape[-1] - 1)
    return right - 1, right, position


def _at(quantiles: Tensor, index: Tensor) -> Tensor:
    return quantiles.gather(-1, index.unsqueeze(-1)).squeeze(-1)


def _select(quantiles: Tensor, x: Tensor, position: Tensor, below: Tensor, inside: Tensor, above: Tensor) -> Tensor:
    value = torch.where(position == 0, below, torch.where(position == quantiles.shape[-1], above, inside))
    return torch.where(x.isnan() | quantiles.isnan().any(-1), torch.nan, value)

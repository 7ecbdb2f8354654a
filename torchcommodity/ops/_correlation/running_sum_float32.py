"""Running sums of float32 rows to the last digit, for devices without float64: each number is the sum of two."""

import torch
from torch import Tensor

from torchcommodity.opkit import Past

Pair = tuple[Tensor, Tensor]


def running_sum_float32(past: Past, name: str, x: Tensor) -> Tensor:
    """Sum of all rows so far of `x` (..., T, N); the sum (..., 2, N) after the last row is kept under `name`."""
    high, low = _running_pairs(x.detach(), torch.zeros_like(x))
    before = past.get(name)
    if before is not None:
        first_high, first_low = before.split(1, -2)
        high, low = _add((high, low), (first_high.expand_as(high), first_low.expand_as(low)))
    if past.live and x.shape[-2]:
        past.keep(name, torch.stack([high[..., -1, :], low[..., -1, :]], -2))
    total = x.cumsum(-2)  # for its gradient
    return total + (high - total).detach()


def _running_pairs(high: Tensor, low: Tensor) -> Pair:
    """Sums over the last 1, 2, 4, ... rows."""
    step, steps = 1, high.shape[-2]
    while step < steps:
        earlier = [torch.cat([torch.zeros_like(x[..., :step, :]), x[..., :-step, :]], -2) for x in (high, low)]
        high, low = _add((high, low), (earlier[0], earlier[1]))
        step *= 2
    return high, low


def _add(a: Pair, b: Pair) -> Pair:
    # Knuth (1997). The Art of Computer Programming, volume 2, theorem 4.2.2B: a + b = total + error
    total = a[0] + b[0]
    part = total - a[0]
    error = (a[0] - (total - part)) + (b[0] - part) + a[1] + b[1]
    high = total + error
    return high, error - (high - total)

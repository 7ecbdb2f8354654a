"""Sums over trailing windows, as a formula: what gradients of rolling operators are made of."""

import torch
from torch import Tensor
from torch.nn.functional import pad


def window_sum(x: Tensor, window: int) -> Tensor:
    """Sum over the last `window` rows of (..., T, N), by doubling; rows before the first are zero.

    No row is taken out of a sum again, so a huge value leaves no trace. Differentiable to any order.
    """
    rows, total, reach = x.shape[-2], torch.zeros_like(x), 0

    def delayed(x: Tensor, by: int) -> Tensor:
        return pad(x, (0, 0, by, 0))[..., :rows, :]

    for bit in range(window.bit_length()):
        if window >> bit & 1:
            total, reach = total + delayed(x, reach), reach + (1 << bit)
        if window >> bit > 1:
            x = x + delayed(x, 1 << bit)
    return total


def window_spread(x: Tensor, window: int) -> Tensor:
    """The transpose: the sum over the rows whose window holds this one, itself and the `window - 1` after it."""
    return window_sum(x.flip(-2), window).flip(-2)

"""LOESS of evenly spaced rows in plain PyTorch: a local line (or constant) under tricube weights at each row."""

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

ZERO_FROM, ONE_UP_TO = 0.999, 0.001  # distance in bandwidths from which the tricube weight is 0, up to which it is 1
MIN_STD = 0.001  # as a fraction of all rows: rows that are closer together determine no slope


class Smoother(NamedTuple):
    """Settings of a LOESS smoother."""

    length: int  # rows in the window
    degree: int  # of the polynomial, 0 or 1
    jump: int  # rows from one fit to the next; linear interpolation between


class Windows(NamedTuple):
    """The rows of the fits, and the signed distance and the tricube weight of each row in each fit."""

    at: Tensor  # (fits)
    distance: Tensor  # (fits, T)
    weight: Tensor  # (fits, T)


def windows(like: Tensor, smoother: Smoother, extend: bool) -> Windows:
    """Windows of the fits at every `jump`-th row and at the last row; with `extend`, also one row before and after.

    As in the Fortran program of Cleveland et al., a last row off the grid uses the window of the last grid row.
    """
    rows = int(like.shape[-2])  # a Python int: torch.compile makes one graph for each number of rows
    step, max_first = min(smoother.jump, rows - 1), max(rows - smoother.length, 0)
    row = torch.arange(rows, device=like.device, dtype=like.dtype)
    at = row[::step]
    first = (at - smoother.length // 2).clamp(0, max_first)
    if (rows - 1) % step:
        at, first = torch.cat([at, row[-1:]]), torch.cat([first, first[-1:]])
    if extend:
        at = pad(pad(at, (1, 0), value=-1), (0, 1), value=rows)
        first = pad(pad(first, (1, 0)), (0, 1), value=max_first)
    last = (first + (smoother.length - 1)).clamp(max=rows - 1)
    bandwidth = torch.maximum(at - first, last - at) + max(smoother.length - rows, 0) // 2
    distance = row - at.unsqueeze(-1)
    u = distance.abs() / bandwidth.unsqueeze(-1)
    inside = (row >= first.unsqueeze(-1)) & (row <= last.unsqueeze(-1)) & (u <= ZERO_FROM)
    return Windows(at, distance, ((1 - u**3) ** 3).where(u > ONE_UP_TO, 1).where(inside, 0))


class Loess:
    """A smoother of panels (..., T, N) under fixed weights; with `extend`, the smooth has a row more at both ends.

    A window whose weights are all zero has no fit. It is replaced by y at its row if present, else by the last fit
    before, else by the first fit after, else by zero.
    """

    def __init__(self, weights: Tensor, present: Tensor, smoother: Smoother, extend: bool = False) -> None:
        rows = weights.shape[-2]
        self.at, distance, self.kernel = windows(weights, smoother, extend)
        self.moment = self.kernel * distance
        self.second_moment = self.moment * distance
        self.min_variance = (MIN_STD * (rows - 1)) ** 2 if smoother.degree > 0 else inf
        self.fit_row = self.at.clamp(0, rows - 1).long()
        in_panel = ((self.at >= 0) & (self.at < rows)).unsqueeze(-1)
        self.has_row = in_panel & present.index_select(-2, self.fit_row)
        # for each row the fit before it, and its position between that and the next one
        row = torch.arange(rows + 2 * extend, device=self.at.device, dtype=self.at.dtype) + self.at[0]
        self.before = (row.unsqueeze(-1) >= self.at[:-1]).sum(-1) - 1
        start, end = self.at[self.before], self.at[self.before + 1]
        self.share = ((row - start) / (end - start)).unsqueeze(-1)
        self.set_weights(weights)

    def set_weights(self, weights: Tensor) -> None:
        """The fits under other weights; `present` stays."""
        self.weights, weight_sum = weights, self.kernel @ weights
        self.fitted = weight_sum > 0
        inverse = weight_sum.where(self.fitted, 1).reciprocal()
        center = self.moment @ weights * inverse
        variance = self.second_moment @ weights * inverse - center.square()
        has_slope = variance > self.min_variance
        tilt = (center / variance.where(has_slope, 1)).where(has_slope, 0)
        self.level, self.slope = (1 + tilt * center) * inverse * self.fitted, tilt * inverse * self.fitted
        valid = self.fitted | self.has_row
        fits = torch.arange(len(self.at), device=valid.device).unsqueeze(-1).expand(valid.shape)
        self.source, self.any_valid = _fill_forward_then_backward(fits, valid), valid.any(-2, keepdim=True)

    def smooth(self, y: Tensor) -> Tensor:
        weighted = self.weights * y
        fit = self.level * (self.kernel @ weighted) - self.slope * (self.moment @ weighted)
        fit = fit.where(self.fitted, y.index_select(-2, self.fit_row))
        fit = fit.gather(-2, self.source).where(self.any_valid, 0)
        before, after = fit.index_select(-2, self.before), fit.index_select(-2, self.before + 1)
        return before + self.share * (after - before)

    def transpose(self, grad: Tensor) -> Tensor:
        """The transpose of `smooth`, which is linear: each of its lines transposed, in reverse order."""
        zero = torch.zeros_like(self.level)
        before, after = grad * (1 - self.share), grad * self.share
        fit = zero.index_add(-2, self.before, before).index_add(-2, self.before + 1, after)
        fit = zero.scatter_add(-2, self.source, fit.where(self.any_valid, 0))
        replaced = torch.zeros_like(self.weights).index_add(-2, self.fit_row, fit.where(~self.fitted, 0))
        return replaced + self.weights * (self.kernel.mT @ (self.level * fit) - self.moment.mT @ (self.slope * fit))


def _fill_forward_then_backward(fits: Tensor, valid: Tensor) -> Tensor:
    """Replace invalid entries by the last valid one before, else by the first valid one."""
    last, reach = fits.where(valid, -1), 1
    while reach < fits.shape[-2]:  # a running maximum, since ONNX has no cummax
        last, reach = torch.maximum(last, pad(last, (0, 0, reach, -reach), value=-1)), 2 * reach
    first = fits.where(valid, fits.shape[-2] - 1).amin(-2, keepdim=True)
    return torch.maximum(last, first)

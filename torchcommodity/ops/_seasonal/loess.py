"""LOESS of evenly spaced rows, in plain PyTorch: a local line (or constant) under tricube weights, row by row."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

FAR, NEAR = 0.999, 0.001  # in bandwidths: from here the tricube weight is 0, up to here it is 1
SPREAD = 0.001  # of all rows: rows closer together than this carry no slope


class Smoother(NamedTuple):
    """`length` rows about a fitted one, a polynomial of `degree` 0 or 1, a fit every `jump` rows, lines between."""

    length: int
    degree: int
    jump: int


class Windows(NamedTuple):
    """The rows of the fits, and of each fit to each row the distance down and the weight."""

    at: Tensor  # (fits)
    distance: Tensor  # (fits, T)
    weight: Tensor  # (fits, T)


def windows(like: Tensor, smoother: Smoother, beyond: bool) -> Windows:
    """Of the fits every `jump` rows and at the last row; with `beyond` at the row before the first and after the last.

    A last row off the grid is fitted in the window of the grid's last row, as the authors' program does.
    """
    rows = int(like.shape[-2])  # the windows are Python's: each number of rows has a graph of its own
    step, room = min(smoother.jump, rows - 1), max(rows - smoother.length, 0)
    row = torch.arange(rows, device=like.device, dtype=like.dtype)
    at = row[::step]
    first = (at - smoother.length // 2).clamp(0, room)
    if (rows - 1) % step:
        at, first = torch.cat([at, row[-1:]]), torch.cat([first, first[-1:]])
    if beyond:
        at = pad(pad(at, (1, 0), value=-1), (0, 1), value=rows)
        first = pad(pad(first, (1, 0)), (0, 1), value=room)
    last = (first + (smoother.length - 1)).clamp(max=rows - 1)
    bandwidth = torch.maximum(at - first, last - at) + max(smoother.length - rows, 0) // 2
    distance = row - at.unsqueeze(-1)
    far = distance.abs() / bandwidth.unsqueeze(-1)
    seen = (row >= first.unsqueeze(-1)) & (row <= last.unsqueeze(-1)) & (far <= FAR)
    return Windows(at, distance, ((1 - far**3) ** 3).where(far > NEAR, 1).where(seen, 0))


class Loess:
    """The smoother of panels (..., T, N) under given weights; `beyond` fits the row before the first and one more.

    A window whose weights are all zero has no fit: y stands in where it is present, else the last fit before, else the
    first one after, else zero.
    """

    def __init__(self, weights: Tensor, present: Tensor, smoother: Smoother, beyond: bool = False) -> None:
        rows = weights.shape[-2]
        self.weights, (self.at, distance, self.kernel) = weights, windows(weights, smoother, beyond)
        self.moment, total = self.kernel * distance, self.kernel @ weights
        self.weighed = total > 0
        share = total.where(self.weighed, 1).reciprocal()
        center = self.moment @ weights * share
        spread = (self.moment * distance) @ weights * share - center.square()
        wide = (spread > (SPREAD * (rows - 1)) ** 2) & (smoother.degree > 0)
        tilt = (center / spread.where(wide, 1)).where(wide, 0)
        self.direct, self.tilted = (1 + tilt * center) * share * self.weighed, tilt * share * self.weighed
        self.itself = self.at.clamp(0, rows - 1).long()
        inside = ((self.at >= 0) & (self.at < rows)).unsqueeze(-1)
        known = self.weighed | (inside & present.index_select(-2, self.itself))
        fits = torch.arange(len(self.at), device=known.device).unsqueeze(-1).expand(known.shape)
        self.source, self.found = _carried(fits, known), known.any(-2, keepdim=True)
        self._lines(rows + 2 * beyond)

    def _lines(self, rows: int) -> None:
        """Between fits: the one before each row, and how far on to the next."""
        row = torch.arange(rows, device=self.at.device, dtype=self.at.dtype) + self.at[0]
        self.before = (row.unsqueeze(-1) >= self.at[:-1]).sum(-1) - 1
        start, end = self.at[self.before], self.at[self.before + 1]
        self.onward = ((row - start) / (end - start)).unsqueeze(-1)

    def smooth(self, y: Tensor) -> Tensor:
        weighted = self.weights * y
        fit = self.direct * (self.kernel @ weighted) - self.tilted * (self.moment @ weighted)
        fit = fit.where(self.weighed, y.index_select(-2, self.itself))
        fit = fit.gather(-2, self.source).where(self.found, 0)
        before, after = fit.index_select(-2, self.before), fit.index_select(-2, self.before + 1)
        return before + self.onward * (after - before)

    def spread(self, grad: Tensor) -> Tensor:
        """The transpose of every line of `smooth`, last to first."""
        none = torch.zeros_like(self.direct)
        before, after = grad * (1 - self.onward), grad * self.onward
        fit = none.index_add(-2, self.before, before).index_add(-2, self.before + 1, after)
        fit = none.scatter_add(-2, self.source, fit.where(self.found, 0))
        stood_in = torch.zeros_like(self.weights).index_add(-2, self.itself, fit.where(~self.weighed, 0))
        return stood_in + self.weights * (self.kernel.mT @ (self.direct * fit) - self.moment.mT @ (self.tilted * fit))


def _carried(fits: Tensor, known: Tensor) -> Tensor:
    """What is not known is the last before it, else the first after it."""
    for _ in range(2):
        reach = 1
        while reach < fits.shape[-2]:
            shift = (0, 0, reach, -reach)
            fits, known = (
                fits.where(known, pad(fits, shift)),
                known | (pad(known.to(fits), shift) > 0),
            )  # of a padded bool Inductor makes no C++
            reach *= 2
        fits, known = fits.flip(-2), known.flip(-2)
    return fits

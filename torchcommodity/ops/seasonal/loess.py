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
    """The rows of the fits, and the rows [first, last) that each of them sees."""

    at: list[int]
    first: list[int]
    last: list[int]


def windows(rows: int, smoother: Smoother, beyond: bool) -> Windows:
    """Of the fits every `jump` rows and at the last row; with `beyond` at the row before the first and after the last.

    A last row off the grid is fitted in the window of the grid's last row, as the authors' program does.
    """
    at = list(range(0, rows, min(smoother.jump, rows - 1)))
    room = max(rows - smoother.length, 0)
    first = [min(max(row - smoother.length // 2, 0), room) for row in at]
    if at[-1] < rows - 1:
        at, first = [*at, rows - 1], [*first, first[-1]]
    if beyond:
        at, first = [-1, *at, rows], [0, *first, room]
    return Windows(at, first, [min(left + smoother.length, rows) for left in first])


def loess(y: Tensor, weights: Tensor, present: Tensor, smoother: Smoother, beyond: bool = False) -> Tensor:
    """Smooth y (..., T, N); `beyond` adds the row before the first and the row after the last.

    A window whose weights are all zero has no fit: y stands in where it is present, else the last fit before, else the
    first one after, else zero.
    """
    rows = int(y.shape[-2])  # the windows are Python's: each number of rows has a graph of its own
    at, first, last = windows(rows, smoother, beyond)
    distance, kernel = _tricube(y, at, first, last, max(smoother.length - rows, 0) // 2)
    total = kernel @ weights
    share = total.where(total > 0, 1).reciprocal()
    fit = kernel @ (weights * y) * share
    if smoother.degree:
        centre = (kernel * distance) @ weights * share
        spread = (kernel * distance.square()) @ weights * share - centre.square()
        wide = spread > (SPREAD * (rows - 1)) ** 2
        slope = ((kernel * distance) @ (weights * y) * share - centre * fit) / spread.where(wide, 1)
        fit = fit - (centre * slope).where(wide, 0)
    inside = torch.tensor([0 <= row < rows for row in at], device=y.device).unsqueeze(-1)
    itself = torch.tensor([min(max(row, 0), rows - 1) for row in at], device=y.device)
    fit = fit.where(total > 0, y.index_select(-2, itself))
    fit = _carried(fit, (total > 0) | (inside & present.index_select(-2, itself)))
    if not beyond:
        return _joined(fit, at, rows)
    return torch.cat([fit[..., :1, :], _joined(fit[..., 1:-1, :], at[1:-1], rows), fit[..., -1:, :]], -2)


def _tricube(y: Tensor, at: list[int], first: list[int], last: list[int], extra: int) -> tuple[Tensor, Tensor]:
    """Of each fit to each row: how far down, and the weight."""
    row = torch.arange(y.shape[-2], device=y.device, dtype=y.dtype)
    places = zip(at, first, last)
    bandwidths = [max(here - left, right - 1 - here) + extra for here, left, right in places]
    here, left, right, bandwidth = (
        torch.tensor(values, device=y.device, dtype=y.dtype).unsqueeze(-1) for values in (at, first, last, bandwidths)
    )
    distance = row - here
    far = distance.abs() / bandwidth
    weight = (1 - far**3) ** 3
    seen = (row >= left) & (row < right) & (far <= FAR)
    return distance, weight.where(far > NEAR, 1).where(seen, 0)


def _carried(fit: Tensor, known: Tensor) -> Tensor:
    """What is not known is the last before it, else the first after it, else zero."""
    for _ in range(2):
        reach = 1
        while reach < fit.shape[-2]:
            shift = (0, 0, reach, -reach)
            fit, known = fit.where(known, pad(fit, shift)), known | pad(known, shift)
            reach *= 2
        fit, known = fit.flip(-2), known.flip(-2)
    return fit.where(known, 0)


def _joined(fit: Tensor, at: list[int], rows: int) -> Tensor:
    """Straight lines between fits."""
    if len(at) == rows:
        return fit
    piece = [max(i for i, row in enumerate(at[:-1]) if row <= t) for t in range(rows)]
    share = [(t - at[i]) / (at[i + 1] - at[i]) for t, i in enumerate(piece)]
    start = torch.tensor(piece, device=fit.device)
    fraction = torch.tensor(share, device=fit.device, dtype=fit.dtype).unsqueeze(-1)
    before, after = fit.index_select(-2, start), fit.index_select(-2, start + 1)
    return before + fraction * (after - before)

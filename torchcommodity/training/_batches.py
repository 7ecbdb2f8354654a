"""What a network learns from: windows of the past, cut anew every epoch, in pieces that add up to the whole."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from torchcommodity.models import HarOutput
from torchcommodity.training._calibration import targets
from torchcommodity.training._inputs import ModelInputs


class TrainingBatch(NamedTuple):
    """Rows to learn from; time is axis 1 of everything."""

    market: HarOutput
    targets: Tensor  # (B, T, H, N) over their baseline scale; NaN takes no part


class Step(NamedTuple):
    """One step of the optimizer: the first rows of the sequences of each piece, and what one target's loss weighs."""

    pieces: list[list[int]]
    weight: Tensor  # (H,)


class Windows(Dataset[TrainingBatch]):
    """Batches of sequences of `window` rows, by the list of their first rows."""

    def __init__(self, lesson: TrainingBatch, window: int) -> None:
        self.lesson, self.window = lesson, window

    def __getitem__(self, starts: list[int]) -> TrainingBatch:
        cut = [rows(self.lesson, s, s + self.window) for s in starts]
        market = HarOutput(*(torch.cat(parts) for parts in zip(*(piece.market for piece in cut))))
        return TrainingBatch(market, torch.cat([piece.targets for piece in cut]))


@torch.no_grad()
def lessons(har: Any, past: ModelInputs, start: int) -> tuple[TrainingBatch, TrainingBatch]:
    """All rows twice: with the targets that end before `start`, and with those of the rows from `start` on."""
    market = har(*past.batch())
    scale, horizons = market.log_scale.exp(), har.config.horizons
    early = (targets(past.prices[:start], horizons) - market.shift[0, :start]) / scale[0, :start]
    late = (targets(past.prices, horizons) - market.shift[0]) / scale[0]
    late[:start] = torch.nan
    return TrainingBatch(HarOutput(*(x[:, :start] for x in market)), early[None]), TrainingBatch(market, late[None])


def rows(lesson: TrainingBatch, start: int, stop: int) -> TrainingBatch:
    """The rows start..stop-1."""
    return TrainingBatch(HarOutput(*(x[:, start:stop] for x in lesson.market)), lesson.targets[:, start:stop])


def plan(
    lesson: TrainingBatch, free: Tensor, order: torch.Generator, window: int, batch: int, pieces: int, levels: int
) -> list[Step]:
    """An epoch cuts time anew, at a random offset, into shuffled sequences of one window, `batch` of them in a step.

    The loss of a step is the mean over the `free` horizons (H,) of the mean over the step's known targets. Its weights
    are those of the whole step, so that the sums over its pieces add up to it, however unequal the pieces.
    """
    offset = int(torch.randint(window, (), generator=order))
    starts = torch.arange(offset, lesson.targets.shape[1] - window + 1, window)
    steps = []
    for chosen in starts[torch.randperm(len(starts), generator=order)].split(batch):
        known = torch.stack([lesson.targets[0, s : s + window].isfinite().sum((0, 2)) for s in chosen.tolist()]).sum(0)
        takes_part = free & (known > 0)
        # in float32 and in this order: the bits of a mean of means
        weight = 1 / takes_part.sum() / (levels * known.clamp(min=1))
        steps.append(Step([chosen[i::pieces].tolist() for i in range(pieces)], torch.where(takes_part, weight, 0.0)))
    return steps


def load(lesson: TrainingBatch, pieces: list[list[int]], window: int, workers: int) -> "DataLoader[TrainingBatch]":
    """The sequences of each piece, in order, cut by `workers` processes beside this one."""
    return DataLoader(
        Windows(lesson, window),
        sampler=pieces,  # an index is the list of a piece's first rows
        batch_size=None,
        num_workers=workers,
        generator=torch.Generator(),  # the global one is left as it was
    )

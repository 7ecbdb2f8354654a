"""Training and validation splits, and the shuffled sequences of each epoch."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from torchcommodity.data import targets
from torchcommodity.models import Har, HarOutput, ModelInputs, positive_prices, to_device


class TrainingBatch(NamedTuple):
    """Inputs and targets of a network; time is axis 1 of every tensor."""

    har_output: HarOutput
    targets: Tensor  # (B, T, H, N) divided by the econometric scale; NaN is ignored by the loss

    def to(self, device: torch.device) -> "TrainingBatch":
        """Copy to a device; float32 on a device without float64."""
        har_output = HarOutput(*(to_device(x, device) for x in self.har_output))
        return TrainingBatch(har_output, to_device(self.targets, device))


class OptimizerStep(NamedTuple):
    """One optimizer step: first rows of the sequences of each micro-batch, and the weight of each target's loss."""

    micro_batches: list[list[int]]
    weight: Tensor  # (H,)


class SequenceDataset(Dataset[TrainingBatch]):
    """Batches of sequences of `window` rows, indexed by lists of first rows."""

    def __init__(self, split: TrainingBatch, window: int) -> None:
        self.split, self.window = split, window

    def __getitem__(self, starts: list[int]) -> TrainingBatch:
        sequences = [slice_rows(self.split, start, start + self.window) for start in starts]
        fields = zip(*(sequence.har_output for sequence in sequences))
        har_output = HarOutput(*(torch.cat(tensors) for tensors in fields))
        return TrainingBatch(har_output, torch.cat([sequence.targets for sequence in sequences]))


@torch.no_grad()
def make_splits(har: Har, inputs: ModelInputs, start: int) -> tuple[TrainingBatch, TrainingBatch]:
    """Split the rows into training and validation at row `start`.

    The training split holds the rows before `start`, with targets that end before it. The validation split holds all
    rows, for the warm-up of recurrent layers, with targets of the rows from `start` on.

    Args:
        har: a calibrated `models.Har`.
        inputs: prices of the training and validation rows.
        start: first validation row.

    Returns:
        The training and the validation split, each a batch of one sequence.
    """
    har_output, prices = har(*inputs.batch()), positive_prices(inputs.prices, har.scale)
    scale, horizons = har_output.log_scale.exp(), har.config.horizons
    train = (targets(prices[:start], horizons) - har_output.shift[0, :start]) / scale[0, :start]
    validation = (targets(prices, horizons) - har_output.shift[0]) / scale[0]
    validation[:start] = torch.nan
    train_output = HarOutput(*(x[:, :start] for x in har_output))
    return TrainingBatch(train_output, train[None]), TrainingBatch(har_output, validation[None])


def slice_rows(batch: TrainingBatch, start: int, stop: int) -> TrainingBatch:
    """Rows start..stop-1 of every sequence."""
    return TrainingBatch(HarOutput(*(x[:, start:stop] for x in batch.har_output)), batch.targets[:, start:stop])


def plan_epoch(
    split: TrainingBatch,
    trained_horizons: Tensor,  # (H,) bool
    generator: torch.Generator,
    *,
    window: int,
    batch_size: int,
    micro_batches: int,
    levels: int,
) -> list[OptimizerStep]:
    """Cut the rows into windows from a random offset, shuffle them and group them into optimizer steps.

    The loss of a step is the mean over `trained_horizons` of the mean over the step's finite targets. Its weights are
    those of the whole step, so that the losses of its micro-batches sum to it even if they differ in size.
    """
    offset = int(torch.randint(window, (), generator=generator))
    starts = torch.arange(offset, split.targets.shape[1] - window + 1, window)
    steps = []
    for batch in starts[torch.randperm(len(starts), generator=generator)].split(batch_size):
        counts = torch.stack([split.targets[0, s : s + window].isfinite().sum((0, 2)) for s in batch.tolist()]).sum(0)
        active = trained_horizons & (counts > 0)
        # in float32 and in this order, so that the bits are those of a mean of means
        weight = 1 / active.sum() / (levels * counts.clamp(min=1))
        parts = [batch[i::micro_batches].tolist() for i in range(micro_batches)]
        steps.append(OptimizerStep(parts, torch.where(active, weight, 0.0)))
    return steps


def make_loader(
    split: TrainingBatch, micro_batches: list[list[int]], window: int, num_workers: int
) -> "DataLoader[TrainingBatch]":
    """Load the given micro-batches in order."""
    return DataLoader(
        SequenceDataset(split, window),
        sampler=micro_batches,
        batch_size=None,
        num_workers=num_workers,
        generator=torch.Generator(),  # leaves the global generator untouched
    )

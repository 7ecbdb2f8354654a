"""Sparsity of a model, weight by weight."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from torchcommodity.forecast import Forecaster
from torchcommodity.opkit.arguments import operation
from torchcommodity.optimize._masks import copy_without_masks
from torchcommodity.optimize._table import format_table
from torchcommodity.optimize._weights import list_weights, reason_not_pruned


class WeightSparsity(NamedTuple):
    """Zeros of one weight."""

    name: str
    weights: int
    zeros: int
    note: str  # why `prune` leaves it as it is; empty if it is pruned

    @property
    def share(self) -> float:
        """Share of zeros, in [0, 1]."""
        return self.zeros / max(self.weights, 1)


@dataclass(frozen=True)
class Sparsity:
    """Zeros of every weight of a model; prints as a table. The totals count the weights that `prune` considers."""

    layers: tuple[WeightSparsity, ...]

    @property
    def weights(self) -> int:
        """Number of weights that `prune` considers."""
        return sum(row.weights for row in self.layers if not row.note)

    @property
    def zeros(self) -> int:
        """Number of those that are zero."""
        return sum(row.zeros for row in self.layers if not row.note)

    @property
    def share(self) -> float:
        """Share of zeros, in [0, 1]."""
        return self.zeros / max(self.weights, 1)

    def __str__(self) -> str:
        rows = [(row.name, f"{row.weights:,}", f"{row.zeros:,}", f"{row.share:.1%}", row.note) for row in self.layers]
        total = ("total of the pruned weights", f"{self.weights:,}", f"{self.zeros:,}", f"{self.share:.1%}", "")
        return format_table(("weight", "weights", "zeros", "share", "not pruned because"), [*rows, total])


@operation("sparsity")
def sparsity(model: nn.Module | Forecaster) -> Sparsity:
    """Count the zeros of every weight of a model.

    Args:
        model: any module, or a forecaster. A parametrized weight counts with its value, a tied one once.

    Returns:
        A Sparsity, which prints as a table.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> print(optimize.sparsity(optimize.prune(model, 0.5)).share)
        0.5
    """
    weights = list_weights(copy_without_masks(model))
    return Sparsity(
        tuple(
            WeightSparsity(weight.name, weight.value.numel(), int((weight.value == 0).sum()), reason_not_pruned(weight))
            for weight in weights
        )
    )

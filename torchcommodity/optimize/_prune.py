"""Pruning of weights: the least important become zero; the zeros of every weight."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import prune as torch_prune

from torch_opkit.arguments import check_number, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._batches import batches_and_loss
from torchcommodity.optimize._module import Loss, Model, with_module
from torchcommodity.optimize._table import format_table
from torchcommodity.optimize._weight_importance import weight_gradients
from torchcommodity.optimize._weights import (
    Weight,
    copy_without_masks,
    list_weights,
    mask_zeros,
    prunable_weights,
    reason_not_pruned,
)
from torchcommodity.training import ModelInputs


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


Method = Literal["magnitude", "gradient"]


@operation("prune")
def prune(
    model: Model,
    amount: float,
    *,
    layers: Sequence[str] | None = None,
    method: Method = "magnitude",
    batches: Iterable[object] | ModelInputs | None = None,
    loss_fn: Loss | None = None,
    permanent: bool = True,
) -> Model:
    """Set the least important weights of a model to zero, over all layers: global unstructured pruning.

        magnitude: |w|           gradient: |w dL/dw|, the first-order change of the loss if w is set to zero

    The model keeps its shapes: it is sparser, not smaller or faster. Pruned are weights of two or more axes. Biases,
    embeddings, normalization, int8 and parametrized weights are not, nor is the econometric part of a forecaster;
    `sparsity` lists each weight with its zeros, or with the reason. A weight that layers share is pruned once.

    Args:
        model: any module, or a forecaster with a network; not changed.
        amount: share of these weights that are zero afterwards, in [0, 1).
        layers: paths of the layers to prune, such as ["encoder", "head.0"], as `sparsity` and `named_modules` list
            them; the amount is a share of their weights. None: all.
        method: "magnitude" or "gradient".
        batches: for "gradient", an iterable of (inputs, target), where inputs are a Tensor, a tuple of arguments or a
            mapping of keyword arguments; or the prices of a forecaster.
        loss_fn: loss_fn(output, target) of these batches, a scalar; for prices the pinball loss.
        permanent: False leaves masks, so that zeros stay zero in a training loop of your own; see `remove_masks`.

    Returns:
        A copy of the model: a module of the same class, or a forecaster.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster, the amount is no number, or batches are not an
            iterable of batches.
        ValueError: the amount is out of range, a layer or the method is unknown, there is no weight to prune or one is
            not finite, or there are no batches.

    References:
        Han, Pool, Tran, Dally (2015). Learning both weights and connections for efficient neural networks.
        arXiv:1506.02626.
        Molchanov, Mallya, Tyree, Frosio, Kautz (2019). Importance estimation for neural network pruning. CVPR.
        doi:10.1109/CVPR.2019.01152.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> sparse = optimize.prune(model, 0.75)
        >>> [int((layer.weight == 0).sum()) for layer in (model[0], sparse[0])][0]
        0
        >>> batch = (torch.ones(16, 4), torch.ones(16, 2))
        >>> sparse = optimize.prune(
        ...     model, 0.75, method="gradient", batches=[batch], loss_fn=torch.nn.functional.mse_loss
        ... )
        >>> optimize.sparsity(sparse).share
        0.75
    """
    check_number("prune", amount=amount)
    if not 0 <= amount < 1:
        raise_invalid("prune", "amount must be in [0, 1)", amount=amount)
    module = copy_without_masks(model)
    weights = prunable_weights(module, layers)
    scores = _scores(model, module, weights, method, batches, loss_fn)
    # what torch.nn.utils.prune.global_unstructured selects, without its detour over buffers and hooks, which would
    # reorder the parameters and break ties
    flat = torch.cat([score.flatten() for score in scores])
    remaining = torch_prune.L1Unstructured(float(amount)).compute_mask(flat, torch.ones_like(flat)).bool()
    for weight, mask in zip(weights, remaining.split([score.numel() for score in scores])):
        weight.value.masked_fill_(~mask.view_as(weight.value), 0.0)
    if not permanent:
        mask_zeros(prunable_weights(module))
    return with_module(model, module)


def _scores(
    model: nn.Module | Forecaster,
    module: nn.Module,
    weights: list[Weight],
    method: str,
    batches: Iterable[object] | ModelInputs | None,
    loss_fn: Loss | None,
) -> list[Tensor]:
    """Importance of every weight, in its shape."""
    if method == "magnitude":
        return [weight.value.abs() for weight in weights]
    if method != "gradient":
        raise_invalid("prune", 'method must be "magnitude" or "gradient"', method=method)
    if batches is None:
        raise_invalid("prune", 'method="gradient" needs batches and loss_fn', batches=None)
    batches, loss_fn = batches_and_loss(model, batches, loss_fn)
    totals = [torch.zeros_like(weight.value) for weight in weights]
    for scores in weight_gradients(module, weights, batches, loss_fn):
        for total, score in zip(totals, scores):
            total += score
    return totals

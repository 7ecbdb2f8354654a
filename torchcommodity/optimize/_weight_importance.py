"""Importance of every weight, batch by batch: the first-order change of the loss if the weight is set to zero."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torch_opkit.arguments import current_operation, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._batches import batch_loss, batches_and_loss, raise_empty
from torchcommodity.optimize._module import Loss, restored_mode
from torchcommodity.optimize._table import format_table
from torchcommodity.optimize._weights import Weight, copy_without_masks, prunable_weights
from torchcommodity.training import ModelInputs


@dataclass(frozen=True)
class WeightImportance:
    """Importance of the weights of a model; prints as a table with one row per weight."""

    weights: dict[str, Tensor]  # by name, each in the shape of the weight: the mean over batches of |w dL/dw|
    by_batch: Tensor  # (K, W) share of weight tensor w in the importance of batch k; rows sum to 1

    def __str__(self) -> str:
        shares, spread = self.by_batch.mean(0), self.by_batch.std(0, correction=0)
        rows = [
            (name, f"{x.numel():,}", f"{share:.1%}", f"{first:.1%}", f"{last:.1%}", f"{deviation:.1%}")
            for (name, x), share, first, last, deviation in zip(
                self.weights.items(), shares, self.by_batch[0], self.by_batch[-1], spread
            )
        ]
        return format_table(("weight", "weights", "share", "first batch", "last batch", "deviation"), rows)


@operation("weight_importance")
def weight_importance(
    model: nn.Module | Forecaster, batches: Iterable[object] | ModelInputs, loss_fn: Loss | None = None
) -> WeightImportance:
    """Gradient-based importance of every weight, and how it changes from batch to batch.

        I[w] = mean over batches of |w dL/dw|

    With batches in order of time, `by_batch` shows when a layer matters: a layer with a share that comes and goes is
    needed in some regimes only, and a prune on recent batches would remove it. The model runs in evaluation mode, so
    that dropout adds no noise.

    Args:
        model: any module, or a forecaster with a network.
        batches: K batches (inputs, target), see `prune`; or the prices of a forecaster, of which 16 windows are taken
            in order of time.
        loss_fn: loss_fn(output, target), a scalar; for prices the pinball loss.

    Returns:
        A WeightImportance of the weights that `prune` considers.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster, or batches are not an iterable of batches.
        ValueError: there is no weight or no batch, or a loss is not a finite scalar with a finite gradient.

    References:
        Molchanov, Mallya, Tyree, Frosio, Kautz (2019). Importance estimation for neural network pruning. CVPR.
        doi:10.1109/CVPR.2019.01152.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> model = torch.nn.Linear(2, 1)
        >>> batches = [(torch.tensor([[1.0, 0.0]]), torch.ones(1, 1)), (torch.tensor([[2.0, 0.0]]), torch.ones(1, 1))]
        >>> scores = optimize.weight_importance(model, batches, torch.nn.functional.mse_loss)
        >>> scores.weights["weight"][0, 1], scores.by_batch.shape  # the second input is always zero
        (tensor(0.), torch.Size([2, 1]))
    """
    module = copy_without_masks(model)
    weights = prunable_weights(module)
    batches, loss_fn = batches_and_loss(model, batches, loss_fn)
    history = list(weight_gradients(module, weights, batches, loss_fn))
    means = [torch.stack(scores).mean(0) for scores in zip(*history)]
    totals = torch.stack([torch.stack([score.sum() for score in scores]) for scores in history])  # (K, W)
    names = [weight.name for weight in weights]
    return WeightImportance(dict(zip(names, means)), totals / totals.sum(1, keepdim=True).clamp(min=1e-30))


def weight_gradients(
    module: nn.Module, weights: list[Weight], batches: Iterable[object], loss_fn: Loss
) -> Iterator[list[Tensor]]:
    """|w dL/dw| of every weight, batch by batch."""
    parameters = [getattr(*weight.owners[0]) for weight in weights]
    frozen = [parameter for parameter in parameters if not parameter.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(True)
    empty = True
    # cuDNN has no backward of recurrent layers in evaluation mode
    with restored_mode(module), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        module.eval()
        for batch in batches:
            empty = False
            loss = batch_loss(module, batch, loss_fn)
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            scores = [
                torch.zeros_like(x) if g is None else (x * g).detach().abs() for x, g in zip(parameters, gradients)
            ]
            invalid = [weight.name for weight, score in zip(weights, scores) if not score.isfinite().all()]
            if invalid:  # nanmean((output - target)**2) is finite where a target is missing, but its gradient is NaN
                rule = "gradients must be finite; select the targets that are not missing before computing their loss"
                raise_invalid(current_operation(), rule, invalid=invalid[0])
            yield scores
    if empty:
        raise_empty()
    for parameter in frozen:
        parameter.requires_grad_(False)

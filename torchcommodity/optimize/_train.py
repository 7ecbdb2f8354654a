"""Training of any module on batches, and of a pruned one, which keeps its zeros."""

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_integer, check_number, current_operation, operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize._batches import batch_loss, check_batches, price_loss, raise_empty, training_batches
from torchcommodity.optimize._module import (
    Loss,
    Model,
    check_callable,
    econometric_parts,
    restored_mode,
    threads_of,
    with_module,
)
from torchcommodity.optimize._weights import copy_without_masks, mask_zeros, prunable_weights, remove_masks
from torchcommodity.training import ModelInputs

Measure = Callable[[], float]
MakeOptimizer = Callable[..., torch.optim.Optimizer]  # of torch.optim, or a partial of one


def train_epochs(
    module: nn.Module,
    batches: Iterable[object],
    loss: Callable[[object], Tensor],  # of a batch
    *,
    epochs: int,
    optimizer: MakeOptimizer,
    learning_rate: float,
) -> Iterator[float]:
    """Train a module in place, and yield the mean loss of every epoch."""
    check_integer(current_operation(), 1, epochs=epochs)
    check_batches(batches, repeated=True)
    econometric = {id(x) for har in econometric_parts(module) for x in har.parameters()}
    parameters = [x for x in module.parameters() if x.requires_grad and id(x) not in econometric]
    if not parameters:
        raise_invalid(
            current_operation(), "the model must have a parameter that requires a gradient", model=type(module).__name__
        )
    check_callable("optimizer must be a class of torch.optim, or a functools.partial of one", optimizer)
    steps = optimizer(parameters, lr=learning_rate)
    for _ in range(epochs):
        module.train()
        losses = []
        for batch in batches:
            steps.zero_grad()
            value = loss(batch)
            value.backward()
            if all(parameter.grad is None for parameter in parameters):  # but one that is not trained had a gradient
                rule = "the loss must depend on the parameters that are trained; opkit.diagnose says where it is cut"
                raise_invalid(current_operation(), rule, model=type(module).__name__)
            steps.step()
            losses.append(value.item())
        if not losses:
            raise_empty()
        yield sum(losses) / len(losses)


class Training(NamedTuple):
    """How a module was trained: the best epoch, 0 for none, and losses."""

    epoch: int
    losses: tuple[float, ...]  # mean of every epoch
    measures: tuple[float, ...]  # in validation: before, and after every epoch


def keep_best_epoch(module: nn.Module, measure: Measure, epochs: Iterator[float]) -> Training:
    """Train a module in place by `train_epochs`, and leave it as it was after the epoch of the smallest measure."""
    losses, measures, best = list[float](), [measure()], copy.deepcopy(module.state_dict())
    for loss in epochs:
        losses.append(loss)
        measures.append(measure())
        if measures[-1] < min(measures[:-1]):
            best = copy.deepcopy(module.state_dict())
    module.load_state_dict(best)
    return Training(min(range(len(measures)), key=lambda k: measures[k]), tuple(losses), tuple(measures))


@operation("fine_tune")
def fine_tune(
    model: Model,
    batches: Iterable[object] | ModelInputs,
    loss_fn: Loss | None = None,
    *,
    validation: Iterable[object] | None = None,
    epochs: int = 3,
    optimizer: MakeOptimizer = torch.optim.AdamW,
    learning_rate: float = 1e-3,
) -> Model:
    """Continue training a pruned model; weights that are zero stay zero, and the econometric part does not change.

    Args:
        model: pruned module, or a forecaster with a pruned network; not changed.
        batches: an iterable of (inputs, target) that can be read once per epoch, see `prune`; or the prices of a
            forecaster: windows of them are the batches, and the last fifth of the windows is the validation.
        loss_fn: loss_fn(output, target), a scalar; for prices the pinball loss.
        validation: batches with whose loss the best epoch is chosen, which may be none; None: the last epoch.
        epochs: passes over the batches.
        optimizer: a class of torch.optim, or a functools.partial of one.
        learning_rate: learning rate of the optimizer.

    Returns:
        A copy, trained, in the same training mode; the record of a forecaster has a note.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster, the batches are no batches, or a number is text.
        ValueError: there is no weight to prune, no parameter to train or no batch, or a loss is not a finite scalar
            with a gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> sparse = optimize.prune(torch.nn.Linear(4, 2), 0.5)
        >>> batches = [(torch.randn(16, 4), torch.randn(16, 2)) for _ in range(5)]
        >>> tuned = optimize.fine_tune(sparse, batches, torch.nn.functional.mse_loss, learning_rate=0.01)
        >>> torch.equal(tuned.weight == 0, sparse.weight == 0), torch.equal(tuned.weight, sparse.weight)
        (True, False)
    """
    check_number("fine_tune", learning_rate=learning_rate)
    module = copy_without_masks(model)
    mask_zeros(prunable_weights(module))
    if loss_fn is None and isinstance(batches, ModelInputs) and isinstance(model, Forecaster):
        loss_fn = price_loss(model)
    data = training_batches(model, batches, validation)
    if loss_fn is None:
        raise_invalid("fine_tune", "batches need a loss_fn(output, target)", loss_fn=None)
    loss = partial(batch_loss, data.called(module), loss_fn=loss_fn)
    training = train_epochs(
        module, data.training, loss, epochs=epochs, optimizer=optimizer, learning_rate=learning_rate
    )
    with threads_of(model), restored_mode(module):
        if data.validation is None:
            epoch = len(list(training))
        else:
            later = list(data.validation)

            def measure() -> float:
                module.eval()
                losses = [loss(batch).item() for batch in later]
                return sum(losses) / len(losses) if losses else raise_empty("validation")

            epoch = keep_best_epoch(module, measure, training).epoch
    note = f"fine-tuned, epoch {epoch}" if epoch else "fine-tuning did not improve it and was discarded"
    return with_module(model, remove_masks(module), note)

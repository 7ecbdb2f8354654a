"""Batches of any model: the loss of one, and training on all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, cast

import torch
from torch import Tensor, nn

from torchcommodity.opkit.arguments import check_integer, raise_invalid
from torchcommodity.optimize._calls import Loss, call_loss, call_model, check_callable, check_scalar
from torchcommodity.training import ModelInputs

MakeOptimizer = Callable[..., torch.optim.Optimizer]  # of torch.optim, or a partial of one


def split_batch(batch: Any) -> tuple[Any, Sequence[Any]]:
    """Inputs, and a target if there is one, of a batch as data loaders yield it."""
    inputs, *target = batch if isinstance(batch, tuple | list) else (batch,)
    return inputs, target


def batch_loss(operation: str, module: nn.Module, batch: Any, loss_fn: Loss) -> Tensor:  # ()
    """Loss of one batch, checked: a finite scalar with a gradient."""
    inputs, target = split_batch(batch)
    return check_loss(operation, call_loss(operation, loss_fn, call_model(operation, module, inputs), target))


def check_loss(operation: str, loss: Any) -> Tensor:  # ()
    """Check that a loss is a finite scalar with a gradient."""
    check_scalar(operation, loss)
    if not loss.isfinite():
        rule = "the loss must be finite; check the batch for NaN, or lower the learning rate"
        raise_invalid(operation, rule, loss=loss.item())
    return cast(Tensor, loss)


def check_batches(operation: str, batches: Any, *, repeated: bool) -> None:
    """Check that batches are an iterable of batches, which can be read once per epoch if `repeated`."""
    if isinstance(batches, ModelInputs):
        rule = "batches of prices (ModelInputs) need a Forecaster; a module takes an iterable of (inputs, target)"
        raise_invalid(operation, rule, TypeError, batches="ModelInputs")
    if isinstance(batches, Tensor) or not isinstance(batches, Iterable):
        rule = "batches must be an iterable of batches, such as a DataLoader or [(inputs, target)]"
        raise_invalid(operation, rule, TypeError, batches=type(batches).__name__)
    if repeated and isinstance(batches, Iterator):
        rule = "batches must be readable once per epoch; pass a list or a DataLoader instead of an iterator"
        raise_invalid(operation, rule, TypeError, batches=type(batches).__name__)


def raise_empty(operation: str, argument: str = "batches") -> NoReturn:
    """Raise ValueError for an iterable without a batch."""
    raise ValueError(f"{operation}: {argument} must hold at least one batch; got an empty iterable")


def train_epochs(
    operation: str,
    module: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[Any], Tensor],  # of a batch
    *,
    epochs: int,
    optimizer: MakeOptimizer,
    learning_rate: float,
) -> Iterator[float]:
    """Train a module in place, and yield the mean loss of every epoch."""
    check_integer(operation, 1, epochs=epochs)
    check_batches(operation, batches, repeated=True)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        raise_invalid(
            operation, "the model must have a parameter that requires a gradient", model=type(module).__name__
        )
    check_callable(operation, "optimizer must be a class of torch.optim, or a functools.partial of one", optimizer)
    steps = optimizer(parameters, lr=learning_rate)
    for _ in range(epochs):
        module.train()
        losses = []
        for batch in batches:
            steps.zero_grad()
            value = loss(batch)
            value.backward()
            steps.step()
            losses.append(value.item())
        if not losses:
            raise_empty(operation)
        yield sum(losses) / len(losses)

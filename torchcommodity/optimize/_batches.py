"""Batches of any model: which are refused, their inputs and target, and the loss of one."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, cast

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from torchcommodity.data import Window
from torchcommodity.opkit.arguments import current_operation, raise_invalid
from torchcommodity.optimize._calls import Loss, call_loss, call_model, check_scalar
from torchcommodity.optimize._module import is_sequence
from torchcommodity.training import ModelInputs


def split_batch(batch: Any) -> tuple[Any, Sequence[Any]]:
    """Inputs, and a target if there is one, of a batch as data loaders yield it."""
    if isinstance(batch, Window):  # its rows are neither inputs nor a target
        return batch.inputs, [batch.targets]
    inputs, *target = batch if is_sequence(batch) else (batch,)
    return inputs, target


def split_inputs(module: nn.Module, batch: Any, loss_fn: Loss | None) -> tuple[Any, Sequence[Any]]:
    """Inputs and target of a batch. Without a loss, what the model does not take is left out."""
    if loss_fn is not None:
        return split_batch(batch)
    if isinstance(batch, Window):
        return batch.inputs, ()
    if not is_sequence(batch):
        return batch, ()
    if batch and (isinstance(batch[0], Mapping) or is_sequence(batch[0])):
        return batch[0], ()
    return tuple(batch[: _positional_arguments(module, len(batch))]), ()


def _positional_arguments(module: nn.Module, most: int) -> int:
    """How many positional arguments `forward` takes, at most `most`."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(parameter.kind in kinds for parameter in parameters))


def batch_loss(module: nn.Module, batch: Any, loss_fn: Loss) -> Tensor:  # ()
    """Loss of one batch, checked: a finite scalar with a gradient."""
    inputs, target = split_batch(batch)
    return check_loss(call_loss(loss_fn, call_model(module, inputs), target))


def check_loss(loss: Any) -> Tensor:  # ()
    """Check that a loss is a finite scalar with a gradient."""
    check_scalar(loss)
    if not loss.isfinite():
        rule = "the loss must be finite; check the batch for NaN, or lower the learning rate"
        raise_invalid(current_operation(), rule, loss=loss.item())
    return cast(Tensor, loss)


def check_iterable(batches: Any, example: str = "[batch]") -> None:
    """Check that batches are an iterable of batches, and not one batch."""
    wrong = isinstance(batches, Tensor | Mapping | str | PackedSequence) or not isinstance(batches, Iterable)
    # a tuple of tensors is one batch; iterating it would call the model on each part
    if wrong or (isinstance(batches, tuple) and any(x is None or isinstance(x, Tensor) for x in batches)):
        rule = f"batches must be an iterable of batches, such as a DataLoader or {example}"
        raise_invalid(current_operation(), rule, TypeError, batches=type(batches).__name__)


def check_batches(batches: Any, *, repeated: bool) -> None:
    """Check batches that have a loss, which can be read once per epoch if `repeated`."""
    if isinstance(batches, ModelInputs):
        rule = "batches of prices (ModelInputs) need a Forecaster; a module takes an iterable of (inputs, target)"
        raise_invalid(current_operation(), rule, TypeError, batches="ModelInputs")
    check_iterable(batches, "[(inputs, target)]")
    if repeated and isinstance(batches, Iterator):
        rule = "batches must be readable once per epoch; pass a list or a DataLoader instead of an iterator"
        raise_invalid(current_operation(), rule, TypeError, batches=type(batches).__name__)


def raise_empty(argument: str = "batches") -> NoReturn:
    """Raise ValueError for an iterable without a batch."""
    raise ValueError(f"{current_operation()}: {argument} must hold at least one batch; got an empty iterable")

"""Batches of any model, or of a forecaster's prices: which are refused, their inputs and target, and their loss."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from torchcommodity.data import Window, targets
from torchcommodity.forecast import Forecaster
from torchcommodity.losses import pinball
from torchcommodity.models import positive_prices
from torchcommodity.opkit.arguments import current_operation, raise_invalid
from torchcommodity.optimize._calls import Loss, call_loss, call_model, check_scalar
from torchcommodity.optimize._module import is_sequence
from torchcommodity.training import ModelInputs

ROWS, WINDOWS = 252, 16  # rows of a window of prices after the warm-up; number of windows


def split_batch(batch: object) -> tuple[object, Sequence[object]]:
    """Inputs, and a target if there is one, of a batch as data loaders yield it."""
    if isinstance(batch, Window):  # its rows are neither inputs nor a target
        return batch.inputs, [batch.targets]
    inputs, *target = batch if is_sequence(batch) else (batch,)
    return inputs, target


def split_inputs(module: nn.Module, batch: object, loss_fn: Loss | None) -> tuple[object, Sequence[object]]:
    """Inputs and target of a batch. Without a loss, what the model does not take is left out."""
    if loss_fn is not None:
        return split_batch(batch)
    if isinstance(batch, Window):
        return batch.inputs, ()
    if not is_sequence(batch):
        return batch, ()
    if batch and (isinstance(batch[0], Mapping) or is_sequence(batch[0])):
        return batch[0], ()
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return tuple(batch), ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(batch[: sum(parameter.kind in kinds for parameter in parameters)]), ()


def batch_loss(module: nn.Module, batch: object, loss_fn: Loss) -> Tensor:  # ()
    """Loss of one batch, checked: a finite scalar with a gradient."""
    inputs, target = split_batch(batch)
    return check_loss(call_loss(loss_fn, call_model(module, inputs), target))


def check_loss(loss: object) -> Tensor:  # ()
    """Check that a loss is a finite scalar with a gradient."""
    scalar = check_scalar(loss)
    if not scalar.isfinite():
        rule = "the loss must be finite; check the batch for NaN, or lower the learning rate"
        raise_invalid(current_operation(), rule, loss=scalar.item())
    return scalar


def check_iterable(batches: object, example: str = "[batch]") -> None:
    """Check that batches are an iterable of batches, and not one batch."""
    wrong = isinstance(batches, Tensor | Mapping | str | PackedSequence) or not isinstance(batches, Iterable)
    # a tuple of tensors is one batch; iterating it would call the model on each part
    if wrong or (isinstance(batches, tuple) and any(x is None or isinstance(x, Tensor) for x in batches)):
        rule = f"batches must be an iterable of batches, such as a DataLoader or {example}"
        raise_invalid(current_operation(), rule, TypeError, batches=type(batches).__name__)


def check_batches(batches: object, *, repeated: bool) -> None:
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


def batches_and_loss(
    model: nn.Module | Forecaster, batches: Iterable[object] | ModelInputs, loss_fn: Loss | None
) -> tuple[Iterable[object], Loss]:
    """Batches and their loss: as they are for a module, made of prices for a forecaster with ModelInputs."""
    if isinstance(batches, ModelInputs) and isinstance(model, Forecaster):
        levels = torch.tensor(model.levels, dtype=torch.double)
        default: Loss = lambda quantiles, target: pinball(quantiles.double(), target, levels)  # noqa: E731
        return list(price_windows(model, batches)), loss_fn or default
    check_batches(batches, repeated=False)
    if loss_fn is None:
        raise_invalid(current_operation(), "batches need a loss_fn(output, target)", loss_fn=None)
    return batches, loss_fn


def price_windows(forecaster: Forecaster, inputs: ModelInputs) -> Iterator[tuple[object, Tensor]]:
    """Evenly spaced windows in order of time: arguments of the model, and log-returns (1, H, N) after the last row."""
    har = forecaster.model.har.config
    rows, ahead = har.warmup + ROWS, har.horizons[-1]
    total = len(inputs.prices)
    if total < rows + ahead:
        rule = f"inputs must have at least {rows + ahead} rows: a warm-up, a window and the longest horizon"
        raise_invalid(current_operation(), rule, rows=total)
    realized = targets(positive_prices(inputs.prices.double(), forecaster.scale), har.horizons)
    ends = torch.linspace(rows, total - ahead, min(WINDOWS, total - ahead - rows + 1)).long().tolist()
    for end in ends:
        yield inputs.before(end).after(end - rows).batch(), realized[end - 1 : end]

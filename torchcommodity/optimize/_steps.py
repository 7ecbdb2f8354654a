"""Steps of any model over batches: what a batch holds, which error it makes, and what a step leaves unchanged."""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_map

from torchcommodity.forecast import Forecaster
from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.optimize._batches import split_batch
from torchcommodity.optimize._calls import Loss
from torchcommodity.optimize._module import restored_mode

END = object()


class BatchSource:
    """Batches one by one: a list or DataLoader starts again at its end, an iterator does not."""

    def __init__(self, operation: str, batches: Any) -> None:
        wrong = isinstance(batches, (Tensor, Mapping, str, PackedSequence)) or not isinstance(batches, Iterable)
        # a tuple of tensors is one batch; iterating it would call the model on each part
        if wrong or (isinstance(batches, tuple) and any(x is None or isinstance(x, Tensor) for x in batches)):
            rule = "batches must be an iterable of batches, such as a DataLoader or [batch]"
            raise_invalid(operation, rule, TypeError, batches=type(batches).__name__)
        self.operation, self.batches, self.iterator = operation, batches, iter(batches)
        self.restarts = self.iterator is not batches

    def next(self) -> Any:
        """The next batch, or END."""
        batch = next(self.iterator, END)
        if batch is END and self.restarts:
            self.iterator = iter(self.batches)
            batch = next(self.iterator, END)
        return batch


def module_to_run(operation: str, model: Any) -> nn.Module:
    """A module, compiled ones included, or the module of a forecaster."""
    module = model.model if isinstance(model, Forecaster) else model
    if not isinstance(module, nn.Module):
        rule = "model must be an nn.Module or a Forecaster"
        raise_invalid(operation, rule, TypeError, model=model if isinstance(model, type) else type(model).__name__)
    return module


def split_inputs(module: nn.Module, batch: Any, loss_fn: Loss | None) -> tuple[Any, Sequence[Any]]:
    """Inputs and target of a batch. Without a loss, what the model does not take is left out."""
    if loss_fn is None or isinstance(batch, PackedSequence):
        return _inputs(module, batch), ()
    return split_batch(batch)


def _inputs(module: nn.Module, batch: Any) -> Any:
    if isinstance(batch, PackedSequence):
        return (batch,)  # a tuple, but one argument
    if not isinstance(batch, (tuple, list)):
        return batch
    if batch and isinstance(batch[0], (tuple, list, Mapping)) and not isinstance(batch[0], PackedSequence):
        return batch[0]
    return tuple(batch[: _positional_arguments(module, len(batch))])


def _positional_arguments(module: nn.Module, most: int) -> int:
    """How many positional arguments `forward` takes, at most `most`."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(parameter.kind in kinds for parameter in parameters))


def to_device(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a batch."""
    return _map(lambda x: x.to(device) if hasattr(x, "to") else x, batch)


def copy_batch(batch: Any) -> Any:
    """Copy the tensors of a batch."""
    return _map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x, batch)


def _map(function: Callable[[Any], Any], batch: Any) -> Any:
    if isinstance(batch, Mapping):  # such as a BatchEncoding, which is no container of pytree
        return {key: _map(function, value) for key, value in batch.items()}
    return tree_map(function, batch)


def device_of(module: nn.Module) -> torch.device:
    """Device of the first parameter or buffer; the CPU without any."""
    tensors: Sequence[Tensor] = [*module.parameters(), *module.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")


def named_tensors(value: Any, name: str = "", parents: tuple[Any, ...] = ()) -> Iterator[tuple[str, Tensor]]:
    """The tensors in nested containers, dataclasses and objects (outputs of transformers), with their path."""
    if isinstance(value, Tensor):
        yield name, value
    elif all(value is not parent for parent in parents):  # no cycle
        for key, x in _parts(value):
            yield from named_tensors(x, f"{name}.{key}".strip("."), (*parents, value))


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (tuple, list)):
        return zip(getattr(value, "_fields", range(len(value))), value)
    is_object = hasattr(value, "__dict__") and not isinstance(value, (type, nn.Module))
    return vars(value).items() if is_object else ()


def versions(batch: Any) -> dict[str, int]:
    """How often each tensor of a batch was written in place, by name."""
    return {name or "batch": x._version for name, x in named_tensors(batch) if not x.is_inference()}


@contextmanager
def restored(module: nn.Module, optimizer: torch.optim.Optimizer | None, training: bool) -> Iterator[None]:
    """Set the mode; on exit restore modes, buffers, gradients, the random state, and what the optimizer changed."""
    optimized = [x for group in optimizer.param_groups for x in group["params"]] if optimizer is not None else []
    fixed = [x for x in module.buffers() if isinstance(x, UninitializedBuffer) or x.is_inference()]
    written = [x for x in module.buffers() if all(x is not y for y in fixed)] + optimized
    values = [(x, x.detach().clone()) for x in written]
    gradients = [(x, x.grad) for x in [*module.parameters(), *optimized]]
    state = copy.deepcopy(optimizer.state_dict()) if optimizer is not None else {}
    for x, _ in gradients:
        x.grad = None
    try:
        with restored_mode(module), torch.random.fork_rng(devices=[]):
            module.train(training)
            yield
    finally:
        with torch.no_grad():
            for x, value in values:
                x.copy_(value)
        for x, gradient in gradients:
            x.grad = gradient
        if optimizer is not None:
            optimizer.load_state_dict(state)

"""Steps of any model: the tensors of a batch and of outputs, and the state that a step leaves unchanged."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer
from torch.utils._pytree import tree_map

from torchcommodity import training
from torchcommodity.optimize._module import restored_mode


def to_device(batch: object, device: torch.device) -> object:
    """Move the tensors of a batch."""

    def move(x: object) -> object:
        if isinstance(x, Tensor):
            return training.to_device(x, device)
        return x.to(device) if hasattr(x, "to") else x  # such as a PackedSequence

    return _map(move, batch)


def copy_batch(batch: object) -> object:
    """Copy the tensors of a batch."""
    return _map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x, batch)


def _map(function: Callable[[Any], object], batch: object) -> object:
    if isinstance(batch, Mapping):  # such as a BatchEncoding, which is no container of pytree
        return {key: _map(function, value) for key, value in batch.items()}
    return tree_map(function, batch)


def device_of(module: nn.Module) -> torch.device:
    """Device of the first parameter or buffer; the CPU without any."""
    tensors: Sequence[Tensor] = [*module.parameters(), *module.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")


def named_tensors(value: object, name: str = "", parents: tuple[object, ...] = ()) -> Iterator[tuple[str, Tensor]]:
    """The tensors in nested containers, dataclasses and objects (outputs of transformers), with their path."""
    if isinstance(value, Tensor):
        yield name, value
    elif all(value is not parent for parent in parents):  # no cycle
        for key, x in _parts(value):
            yield from named_tensors(x, f"{name}.{key}".strip("."), (*parents, value))


def _parts(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (tuple, list)):
        return zip(getattr(value, "_fields", range(len(value))), value)
    is_object = hasattr(value, "__dict__") and not isinstance(value, (type, nn.Module))
    return vars(value).items() if is_object else ()


def versions(batch: object) -> dict[str, int]:
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

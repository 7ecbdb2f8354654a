"""A module, or the module of a forecaster: copied, so that the argument of a function never changes, and called.

What a model or its loss raises is shown with the shapes that they were given.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import PackedSequence

from torch_opkit.arguments import current_operation, raise_invalid
from torchcommodity.forecast import Forecaster
from torchcommodity.models import Har, HarNetwork
from torchcommodity.training import one_thread

Model = TypeVar("Model", bound=nn.Module | Forecaster)


def module_to_run(model: object) -> nn.Module:
    """Return a module, compiled ones included, or the module of a forecaster."""
    module = model.model if isinstance(model, Forecaster) else model
    if not isinstance(module, nn.Module):
        rule = "model must be an nn.Module or a Forecaster"
        raise_invalid(
            current_operation(), rule, TypeError, model=model if isinstance(model, type) else type(model).__name__
        )
    return module


def module_of(model: object) -> nn.Module:
    """Return an eager module, whose layers and weights can be read, or the module of a forecaster.

    Raises:
        TypeError: another type, a scripted or a compiled module.
        ValueError: the module has lazy layers that are not initialized.
    """
    module = module_to_run(model)
    if isinstance(module, torch.jit.ScriptModule) or hasattr(module, "_orig_mod"):
        rule = "model must be the eager nn.Module, as it was before torch.jit.script or torch.compile"
        raise_invalid(current_operation(), rule, TypeError, model=type(module).__name__)
    tensors = [*module.named_parameters(), *module.named_buffers()]
    if lazy := [name for name, x in tensors if isinstance(x, UninitializedParameter | UninitializedBuffer)]:
        raise_invalid(
            current_operation(), "model must be initialized; call it on one batch first", uninitialized=lazy[0]
        )
    return module


def copy_module(model: object) -> nn.Module:
    """Copy a module, or the module of a forecaster; see `module_of` for the errors."""
    module = module_of(model)
    # what a layer computes from its parameters (torch.nn.utils.weight_norm, prune, a parametrized torch.nn.LSTM) it
    # keeps as an attribute or in a list, and torch does not copy a Tensor with a gradient function
    values = [x for layer in module.modules() for x in vars(layer).values()]
    tensors = [x for value in values for x in (value if isinstance(value, list) else [value]) if isinstance(x, Tensor)]
    memo: dict[int, object] = {id(x): x.detach().clone() for x in tensors if not x.is_leaf}
    with torch.no_grad():
        module = copy.deepcopy(module, memo)
    for layer in module.modules():
        if parametrize.is_parametrized(layer):
            # parametrizations are properties of the class, which copies share: give the copy a class of its own
            shared = type(layer)
            members = {name: x for name, x in vars(shared).items() if name not in ("__dict__", "__weakref__")}
            layer.__class__ = type(shared.__name__, shared.__bases__, members)
    return module


def with_module(model: Model, module: nn.Module, note: str = "") -> Model:
    """Return the module in place of a module, or a forecaster with it in place of a forecaster, noted in its record."""
    if not isinstance(model, Forecaster):
        return cast(Model, module)
    record = replace(model.record, note=f"{model.record.note}; {note}") if note else model.record
    return cast(Model, replace(model, model=cast(HarNetwork, module), record=record))


def econometric_parts(module: nn.Module) -> list[Har]:
    """The layers of a module that are calibrated in closed form; none of a module that is no forecaster's."""
    return [layer for layer in module.modules() if isinstance(layer, Har)]


def threads_of(model: nn.Module | Forecaster) -> AbstractContextManager[object]:
    """One CPU thread for a forecaster, as it forecasts."""
    return one_thread() if isinstance(model, Forecaster) else nullcontext()


def call(module: nn.Module, inputs: object) -> object:
    """Call a module on a Tensor, on a tuple or list of positional arguments, or on a mapping of keyword arguments."""
    if isinstance(inputs, Mapping):
        return module(**inputs)
    return module(*inputs) if is_sequence(inputs) else module(inputs)


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """Whether a value is a tuple or list of arguments; a PackedSequence is a named tuple, but one argument."""
    return isinstance(value, tuple | list) and not isinstance(value, PackedSequence)


@contextmanager
def restored_mode(module: nn.Module) -> Iterator[None]:
    """Restore on exit whether each layer is in training or in evaluation mode."""
    modes = [(layer, layer.training) for layer in module.modules()]
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training


Loss = Callable[..., Tensor]  # loss(output, target), or loss(output) for batches without a target


def call_model(module: nn.Module, inputs: object) -> object:
    """Forward pass; raises ValueError that shows the inputs beside the model's own error."""
    try:
        return call(module, inputs)
    except Exception as error:
        raise ValueError(
            f"{current_operation()}: the model does not run on {describe(inputs)}: {first_line(error)}"
        ) from error


def call_loss(loss_fn: Loss, output: object, target: Sequence[object]) -> Tensor:
    """Loss of an output, checked: a scalar with a gradient."""
    check_callable("loss_fn must be a function loss_fn(output, target)", loss_fn)
    try:
        loss = loss_fn(output, *target)
    except Exception as error:
        got = " and target ".join([describe(output), *map(describe, target)])
        raise ValueError(
            f"{current_operation()}: loss_fn does not run on the output {got}: {first_line(error)}"
        ) from error
    return check_scalar(loss)


def first_line(error: Exception) -> str:
    """First line of an error's message, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def check_callable(rule: str, function: object) -> None:
    """Check that an argument can be called."""
    if not callable(function):
        raise TypeError(f"{current_operation()}: {rule}; got {type(function).__name__}")


def check_scalar(loss: object) -> Tensor:  # ()
    """Check that a loss is a scalar with a gradient, without reading its value."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        shape = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise_invalid(current_operation(), "the loss must be a scalar Tensor; reduce it with .mean()", loss=shape)
    if not loss.requires_grad:
        rule = "the loss must have a gradient; opkit.diagnose(model, batch, loss_fn) says where it is cut"
        raise_invalid(current_operation(), rule, requires_grad=False)
    return loss


def describe(value: object) -> str:
    """Shapes and dtypes of nested tensors.

    >>> import torch
    >>> describe((torch.ones(2, 3), {"mask": torch.ones(2, dtype=torch.bool)}, None))
    '(float32 (2, 3), mask=bool (2,), None)'
    """
    if isinstance(value, Tensor):
        shape = f"nested ({value.size(0)}, ...)" if value.is_nested else str(tuple(value.shape))
        return f"{str(value.dtype).removeprefix('torch.')} {shape}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={describe(x)}" for key, x in value.items())
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(describe, value))})"
    return "None" if value is None else type(value).__name__

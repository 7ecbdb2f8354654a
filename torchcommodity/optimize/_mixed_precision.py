"""A network in bfloat16, or with convolutions in channels-last memory format."""

import copy
from collections.abc import MutableMapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils._pytree import tree_map

from torch_opkit.arguments import operation, raise_invalid
from torchcommodity.optimize._module import Model, copy_module, econometric_parts, with_module
from torchcommodity.optimize._weights import copy_without_masks


@operation("mixed_precision")
def mixed_precision(model: Model, dtype: torch.dtype = torch.bfloat16) -> Model:
    """Store and run a network in bfloat16; inputs and outputs keep their dtype.

    The econometric part of a forecaster, which subtracts large numbers, stays in float64. A module without one is
    converted whole: its floating-point inputs are cast to bfloat16, its outputs to float32. Layers that need more
    precision inside, such as recurrent layers, normalization and softmax, accumulate in float32.

    Args:
        model: any module with floating-point weights, or a forecaster; not changed.
        dtype: torch.bfloat16, the only supported dtype.

    Returns:
        A copy in evaluation mode: a module of the same class, or a forecaster.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster.
        ValueError: another dtype, int8 weights, or a parametrized weight that bfloat16 cannot compute.

    References:
        Kalamkar et al. (2019). A study of BFLOAT16 for deep learning training. arXiv:1905.12322.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> small = optimize.mixed_precision(torch.nn.Linear(4, 2))
        >>> small.weight.dtype, small(torch.randn(3, 4)).dtype
        (torch.bfloat16, torch.float32)
    """
    if dtype != torch.bfloat16:
        raise_invalid("mixed_precision", "dtype must be torch.bfloat16", dtype=dtype)
    module = copy_without_masks(model)
    if any(x.dtype == torch.int8 for x in module.state_dict().values()):
        raise_invalid("mixed_precision", "model must have floating-point weights", dtype=torch.int8)
    if parts := econometric_parts(module):
        for layer in module.children():
            if layer not in parts:
                layer.to(dtype)
    else:
        module.to(dtype)
        module.register_forward_pre_hook(_cast_inputs, with_kwargs=True)
        module.register_forward_hook(_cast_outputs)
    _check_parametrizations(module)
    return with_module(model, module.eval())


def _check_parametrizations(module: nn.Module) -> None:
    """Raise ValueError for a parametrized weight that bfloat16 cannot compute, such as a matrix exponential."""
    for path, layer in module.named_modules():
        if parametrize.is_parametrized(layer):
            for name, _ in layer.get_submodule("parametrizations").named_children():
                try:
                    getattr(layer, name)
                except RuntimeError as error:
                    rule = (
                        "parametrized weights must be computable in bfloat16; call torch.nn.utils.parametrize."
                        "remove_parametrizations(layer, name) on a copy first"
                    )
                    raise ValueError(f"mixed_precision: {rule}; got {path}.{name}: {error}") from error


def _cast_inputs(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tree_map(lambda x: _cast(x, torch.bfloat16), (args, kwargs))


def _cast_outputs(module: nn.Module, args: object, output: object) -> object:
    return tree_map(_cast_output, output)


def _cast_output(x: object) -> object:
    """A Tensor, or the fields of an output object, such as a dataclass with `.loss` and `.logits`."""
    if isinstance(x, Tensor) or not (isinstance(x, MutableMapping) or hasattr(x, "__dict__")):
        return _cast(x, torch.float32)
    copied = copy.copy(x)
    fields = copied if isinstance(copied, MutableMapping) else vars(copied)
    fields.update(tree_map(_cast_output, dict(fields)))
    return copied


def _cast(x: object, dtype: torch.dtype) -> object:
    return x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x


@operation("channels_last")
def channels_last(model: Model) -> Model:
    """Convert the weights of 2-D convolutions to channels-last memory format, which their kernels may read faster.

    Pass inputs in the same format, `x.to(memory_format=torch.channels_last)`, so that they are not converted in every
    call. Values and outputs do not change.

    Args:
        model: any module with 2-D convolutions, or a forecaster with them; not changed.

    Returns:
        A copy: a module of the same class, or a forecaster.

    Raises:
        TypeError: the model is not an nn.Module or a Forecaster.
        ValueError: there is no 2-D convolution; the convolutions of `nn.TCN` are 1-D, and have no such format.

    Example:
        >>> import torch
        >>> from torchcommodity import optimize
        >>> fast = optimize.channels_last(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()))
        >>> fast[0].weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    module = copy_module(model)
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)]
    if not layers:
        raise_invalid("channels_last", "model must have a 2-D convolution", model=type(module).__name__)
    for layer in layers:
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return with_module(model, module)

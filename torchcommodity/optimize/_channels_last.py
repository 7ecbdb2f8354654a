"""Channels-last memory format of convolutions."""

import torch
from torch import nn

from torchcommodity.opkit.arguments import operation, raise_invalid
from torchcommodity.optimize._module import Model, copy_module, with_module


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

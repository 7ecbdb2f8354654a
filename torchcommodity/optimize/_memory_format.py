"""The order of a convolution's numbers in memory."""

import torch
from torch import nn


def channels_last(model: nn.Module) -> int:
    """Put the weights of convolutions over two axes in channels-last order, in place; how many there were.

    Other layers do not have the order: the TCN's convolutions are over time alone, and 0 says that nothing was done.

    Example:
        >>> channels_last(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv1d(4, 4, 3)))
        1
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    for layer in layers:
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return len(layers)

"""Channels-last memory format of convolutions."""

import torch
from torch import nn


def channels_last(model: nn.Module) -> int:
    """Convert the weights of 2-D convolutions to channels-last memory format, in place.

    Args:
        model: any module. Other layers have no such format; the convolutions of `nn.TCN` are 1-D.

    Returns:
        Number of converted layers.

    Example:
        >>> channels_last(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv1d(4, 4, 3)))
        1
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    for layer in layers:
        layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return len(layers)

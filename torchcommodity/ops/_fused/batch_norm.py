"""Batch normalization of a product: by the moments of the batch in training, folded into the weight in evaluation.

A product is (outer, C, ...): every axis but the second is averaged over.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid

Pair = tuple[Tensor, Tensor]


class BatchNormOutput(NamedTuple):
    """The output, and the mean and the biased variance of each channel that it was normalized by."""

    output: Tensor
    mean: Tensor  # (C,)
    variance: Tensor  # (C,)


def channelwise(x: Tensor | None, product: Tensor, absent: float) -> Tensor:
    """One value for each channel, in the shape that broadcasts against the product."""
    shape = (-1, *(1,) * (product.dim() - 2))
    return product.new_full((1,) * len(shape), absent) if x is None else x.reshape(shape)


def normalize(
    product: Tensor, bias: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The definition: y = gamma (x - mean) / sqrt(variance + eps) + beta. A bias moves the mean alone."""
    axes = [0, *range(2, product.dim())]
    mean = product.mean(axes)
    apart = product - channelwise(mean, product, 0)
    variance = apart.square().mean(axes)
    scale = channelwise(gamma, product, 1) / channelwise(variance + eps, product, 0).sqrt()
    y = apart * scale + channelwise(beta, product, 0)
    return y, mean.clone() if bias is None else mean + bias, variance


def ones_and_zeros(gamma: Tensor | None, beta: Tensor | None, weight: Tensor) -> Pair:
    """What an absent gamma or beta stands for: torch's own batch normalization takes both or none."""
    channels = weight.shape[0]
    ones = weight.new_ones(channels) if gamma is None else gamma
    return ones, weight.new_zeros(channels) if beta is None else beta


def folded(
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
) -> Pair:
    """In evaluation batch normalization is affine: the weight and the bias that do it all."""
    scale = (variance + eps).rsqrt() if gamma is None else gamma * (variance + eps).rsqrt()
    moved = -mean if bias is None else bias - mean
    level = moved * scale if beta is None else moved * scale + beta
    return weight * scale.reshape(-1, *(1,) * (weight.dim() - 1)), level


def check_tensors(operator: str, x: Tensor, weight: Tensor, eps: float, **of_channels: Tensor | None) -> None:
    """All of one floating-point dtype and on one device; those `of_channels` are absent, or as long as `weight`."""
    tensors = {"x": x, "weight": weight} | {name: y for name, y in of_channels.items() if y is not None}
    for name, y in tensors.items():
        if not isinstance(y, Tensor) or not y.is_floating_point():
            kind = y.dtype if isinstance(y, Tensor) else type(y).__name__
            raise_invalid(operator, f"{name} must be a floating-point Tensor", TypeError, **{name: kind})
        if name in of_channels and y.shape != weight.shape[:1]:
            raise_invalid(
                operator, f"{name} must be ({weight.shape[0]},), one for each output", **{name: y, "weight": weight}
            )
    device = x.device.type
    mixed = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)  # it casts all to float32
    if len({(None if mixed else y.dtype, y.device) for y in tensors.values()}) > 1:
        kinds = {f"{name}_is": f"{y.dtype} on {y.device}" for name, y in tensors.items()}
        raise_invalid(operator, "all tensors must have one dtype and one device", TypeError, **kinds)
    if not (isinstance(eps, float) and 0 < eps < math.inf):
        raise_invalid(operator, "eps must be a positive float", eps=eps)


def check_running(operator: str, *, running_mean: Tensor | None, running_variance: Tensor | None) -> Pair:
    """Evaluation needs both."""
    if running_mean is None or running_variance is None:
        raise_invalid(operator, "evaluation needs running_mean and running_variance", training=False)
    return running_mean, running_variance


def check_count(operator: str, shape: tuple[int, ...], x: Tensor) -> None:
    """In training a channel needs two values: one alone has no variance."""
    count = math.prod((shape[0], *shape[2:]))
    if count < 2:
        raise_invalid(operator, "training needs more than one value of each channel", values=count, x=x)

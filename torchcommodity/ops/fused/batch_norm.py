"""What batch normalisation does to a product: in training by the moments of the batch, in evaluation as a folded weight.

A product is (outer, C, ...): every axis but the second is averaged over.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchcommodity.opkit.door import refuse


class Normalised(NamedTuple):
    """The output, and the mean and the biased variance of each channel that it was normalised by."""

    output: Tensor
    mean: Tensor  # (C,)
    variance: Tensor  # (C,)


def channelwise(x: Tensor | None, product: Tensor, absent: float) -> Tensor:
    """One value for each channel, in the shape that broadcasts against the product."""
    shape = (-1, *(1,) * (product.dim() - 2))
    return product.new_full((1,) * len(shape), absent) if x is None else x.reshape(shape)


def normalise(
    product: Tensor, bias: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The definition: y = gamma (x - mean) / sqrt(variance + eps) + beta. A bias of the product moves the mean alone."""
    axes = [0, *range(2, product.dim())]
    mean = product.mean(axes)
    apart = product - channelwise(mean, product, 0)
    variance = apart.square().mean(axes)
    scale = channelwise(gamma, product, 1) / channelwise(variance + eps, product, 0).sqrt()
    y = apart * scale + channelwise(beta, product, 0)
    return y, mean.clone() if bias is None else mean + bias, variance


def ones_and_zeros(gamma: Tensor | None, beta: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
    """What an absent gamma or beta stands for: torch's own batch normalisation takes both or none."""
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
) -> tuple[Tensor, Tensor]:
    """In evaluation batch normalisation is affine: the weight and the bias that do it all."""
    scale = (variance + eps).rsqrt() if gamma is None else gamma * (variance + eps).rsqrt()
    moved = -mean if bias is None else bias - mean
    level = moved * scale if beta is None else moved * scale + beta
    return weight * scale.reshape(-1, *(1,) * (weight.dim() - 1)), level


def check_parameters(operator: str, weight: Tensor, training: bool, eps: float, **given: Tensor | None) -> None:
    """Each is absent or (C,) of the dtype and on the device of the weight; evaluation needs both running statistics."""
    if isinstance(eps, bool) or not isinstance(eps, (int, float)):
        refuse(operator, "eps must be a number", TypeError, eps=eps)
    if not (math.isfinite(eps) and eps > 0):
        refuse(operator, "eps must be positive", eps=eps)
    for name, x in given.items():
        if x is None:
            continue
        if not isinstance(x, Tensor):
            refuse(operator, f"{name} must be a Tensor ({weight.shape[0]},) or None", TypeError, **{name: type(x)})
        if x.shape != weight.shape[:1]:
            refuse(operator, f"{name} must be ({weight.shape[0]},), one for each output", **{name: x, "weight": weight})
    check_kinds(operator, weight=weight, **given)
    if not training and (given["running_mean"] is None or given["running_variance"] is None):
        refuse(operator, "evaluation needs running_mean and running_variance", training=training)


def check_kinds(operator: str, **given: Any) -> None:
    """All of one floating-point dtype and on one device."""
    kinds = {name: f"{x.dtype} on {x.device}" for name, x in given.items() if x is not None}
    if len(set(kinds.values())) > 1:
        refuse(operator, "all tensors must be of one dtype and on one device", TypeError, **kinds)


def check_values_of_channel(operator: str, product_shape: tuple[int, ...], x: Tensor) -> None:
    """In training a channel needs two values: one alone has no variance."""
    count = math.prod((product_shape[0], *product_shape[2:]))
    if count < 2:
        refuse(operator, "training needs more than one value of each channel", values=count, x=x)


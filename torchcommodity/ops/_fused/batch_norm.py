"""Batch normalization of a product (outer, C, ...): with batch statistics, or folded into the weight for evaluation."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import raise_invalid


class BatchNormOutput(NamedTuple):
    """The normalized output, and the mean and biased variance of each channel used for it."""

    output: Tensor
    mean: Tensor  # (C,)
    variance: Tensor  # (C,)


def channelwise(x: Tensor | None, product: Tensor, default: float) -> Tensor:
    """One value per channel, in the shape that broadcasts against `product`; `default` if x is None."""
    shape = (-1, *(1,) * (product.dim() - 2))
    return product.new_full((1,) * len(shape), default) if x is None else x.reshape(shape)


def normalize(
    product: Tensor, bias: Tensor | None, gamma: Tensor | None, beta: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """y = gamma (x - mean) / sqrt(variance + eps) + beta, mean and variance; a bias only changes the mean."""
    axes = [0, *range(2, product.dim())]
    mean = product.mean(axes)
    deviation = product - channelwise(mean, product, 0)
    variance = deviation.square().mean(axes)
    scale = channelwise(gamma, product, 1) / channelwise(variance + eps, product, 0).sqrt()
    y = deviation * scale + channelwise(beta, product, 0)
    return y, mean.clone() if bias is None else mean + bias, variance


def default_scale_and_shift(gamma: Tensor | None, beta: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
    """gamma and beta with ones and zeros for None: torch.nn.functional.batch_norm takes both or neither."""
    channels = weight.shape[0]
    scale = weight.new_ones(channels) if gamma is None else gamma
    return scale, weight.new_zeros(channels) if beta is None else beta


def saves_product(recompute: bool, *tensors: Tensor | None) -> bool:
    """Whether the backward pass takes the product from memory: there is one, and it does not recompute."""
    return not recompute and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def fold(
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Weight and bias of the one affine layer that equals the layer followed by batch normalization in evaluation."""
    scale = (variance + eps).rsqrt() if gamma is None else gamma * (variance + eps).rsqrt()
    shift = -mean if bias is None else bias - mean
    shift = shift * scale if beta is None else shift * scale + beta
    return weight * scale.reshape(-1, *(1,) * (weight.dim() - 1)), shift


def check_tensors(operator: str, x: Tensor, weight: Tensor, eps: float, **per_channel: Tensor | None) -> None:
    """Check that all are floating-point with one dtype and device, and `per_channel` (D,) or None."""
    if not _fit(x, weight, *per_channel.values()):
        _check_each(operator, x, weight, per_channel)
    if not (isinstance(eps, float) and 0 < eps < math.inf):
        raise_invalid(operator, "eps must be a positive float", eps=eps)


def _fit(x: Tensor, weight: Tensor, *per_channel: Tensor | None) -> bool:
    """Whether all is right: a microsecond for each tensor, which a training step of a small layer notices."""
    if not (isinstance(x, Tensor) and isinstance(weight, Tensor) and x.is_floating_point()):
        return False
    dtype, device, shape = x.dtype, x.device, weight.shape[:1]
    for y in per_channel:
        if y is not None and not (
            isinstance(y, Tensor) and y.dtype is dtype and y.shape == shape and y.device == device
        ):
            return False
    return weight.dtype is dtype and weight.device == device


def _check_each(operator: str, x: Tensor, weight: Tensor, per_channel: dict[str, Tensor | None]) -> None:
    tensors = {"x": x, "weight": weight} | {name: y for name, y in per_channel.items() if y is not None}
    for name, y in tensors.items():
        if not isinstance(y, Tensor) or not y.is_floating_point():
            kind = y.dtype if isinstance(y, Tensor) else type(y).__name__
            raise_invalid(operator, f"{name} must be a floating-point Tensor", TypeError, **{name: kind})
        if name in per_channel and y.shape != weight.shape[:1]:
            expected = f"{name} must be ({weight.shape[0]},), one value per output channel"
            raise_invalid(operator, expected, **{name: y, "weight": weight})
    if len({(y.dtype, y.device) for y in tensors.values()}) > 1:
        device = x.device.type
        autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)  # casts all to float32
        if not autocast or len({y.device for y in tensors.values()}) > 1:
            received = {f"{name}_is": f"{y.dtype} on {y.device}" for name, y in tensors.items()}
            raise_invalid(operator, "all tensors must have one dtype and one device", TypeError, **received)


def check_running(
    operator: str, *, running_mean: Tensor | None, running_variance: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The running statistics, which evaluation requires."""
    if running_mean is None or running_variance is None:
        raise_invalid(operator, "evaluation requires running_mean and running_variance", training=False)
    return running_mean, running_variance


def check_count(operator: str, shape: tuple[int, ...], x: Tensor) -> None:
    """Check that each channel has at least two values, without which it has no variance."""
    count = math.prod((shape[0], *shape[2:]))
    if count < 2:
        raise_invalid(operator, "training requires more than one value per channel", values=count, x=x)

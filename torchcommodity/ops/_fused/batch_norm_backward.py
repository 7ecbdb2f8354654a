"""Backward pass of batch normalization with batch statistics: what those of `conv_bn` and `linear_bn_relu` share."""

from collections.abc import Callable

import torch
from torch import Tensor

from torch_opkit import HALF_DTYPES
from torchcommodity.ops._fused.batch_norm import channelwise

Gradients = tuple[Tensor, Tensor, Tensor, Tensor]  # of x, weight, gamma and beta; empty where not needed


def product_gradient(
    grad: Tensor | None,
    grad_mean: Tensor | None,
    grad_variance: Tensor | None,
    grad_product: Tensor | None,
    product: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    relu: bool,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of product, gamma and beta from those of the outputs, where None is zero; mask of valid channels."""
    # With n = (x - mean) / s, s = sqrt(variance + eps) and g the gradient of the input of the ReLU:
    # dx = gamma / s (g - mean(g) - n mean(g n)) + (dmean + 2 (x - mean) dvariance) / count
    # dgamma = sum(g n), dbeta = sum(g). Channels with NaN statistics have zero gradients.
    grad = torch.zeros_like(product) if grad is None else grad
    axes = [0, *range(2, product.dim())]
    mean = mean if bias is None else mean - bias  # the bias only changes the mean
    valid = channelwise(mean.isfinite() & variance.isfinite(), product, 0)
    x = torch.where(valid, product - channelwise(mean, product, 0), 0)
    s = (torch.where(valid, channelwise(variance, product, 0), 1) + eps).sqrt()
    n = x / s
    y = n * channelwise(gamma, x, 1) + channelwise(beta, x, 0)
    g = torch.where(valid & (y > 0) if relu else valid, grad, 0)
    d = g - g.mean(axes, keepdim=True) - n * (g * n).mean(axes, keepdim=True)
    d = d * channelwise(gamma, x, 1) / s
    count = x.numel() // x.shape[1]
    d = d + (channelwise(grad_mean, x, 0) + 2 * x * channelwise(grad_variance, x, 0)) / count
    d = torch.where(valid, d, 0) if grad_product is None else torch.where(valid, d, 0) + grad_product
    return d.contiguous(memory_format=memory_format(product)), (g * n).sum(axes), g.sum(axes), valid.flatten()


def memory_format(product: Tensor) -> torch.memory_format:
    last = product.dim() == 4 and product.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last and not product.is_contiguous() else torch.contiguous_format


def mask_channels(d_weight: Tensor, valid: Tensor) -> Tensor:
    """Zero for the channels that are not valid: their gradient is zero, but zero times NaN is NaN."""
    return torch.where(valid.reshape(-1, *(1,) * (d_weight.dim() - 1)), d_weight, 0)


def parameter_gradients(
    gradients: Gradients, grad_mean: Tensor | None, needs_input_grad: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Those of x, weight, bias, gamma and beta, None where it is not needed; the bias only changes the mean."""
    d_x, d_weight, d_gamma, d_beta = gradients
    d_bias = torch.zeros_like(d_gamma) if grad_mean is None and needs_input_grad[2] else grad_mean
    each = zip((d_x, d_weight, d_bias, d_gamma, d_beta), needs_input_grad, strict=True)
    return tuple(gradient if need else None for gradient, need in each)


def in_float32(function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The results in the dtype of `tensors`: in half precision they are rounded once, not between two operators."""
    dtype = tensors[0].dtype
    if dtype not in HALF_DTYPES:
        return function(*tensors)
    return tuple(y.to(dtype) for y in function(*(x.float() for x in tensors)))

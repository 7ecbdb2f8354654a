"""Backward pass of batch normalization with batch statistics, shared by `conv_bn` and `linear_bn_relu`."""

from typing import Any

import torch
from torch import Tensor

from torch_opkit import HALF_DTYPES, Cases, Op, Sample, vjp
from torchcommodity.ops._fused.batch_norm import channelwise, default_scale_and_shift, normalize

Gradients = tuple[Tensor, Tensor, Tensor, Tensor]  # of product, gamma and beta; mask of the valid channels


def product_gradient(
    grads: tuple[Tensor | None, ...],
    z: Tensor,
    mean: Tensor,
    variance: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    relu: bool,
    eps: float,
) -> tuple[Tensor, Tensor, tuple[Tensor | None, ...]]:
    """Gradient of the product z, mask of the valid channels, and gradients of bias, gamma and beta.

    `grads` are those of the four outputs, normalized values, mean, variance and z; None is zero.
    """
    grad = torch.zeros_like(z) if grads[0] is None else grads[0]
    center = mean if bias is None else mean - bias  # the bias only changes the mean
    dz, d_gamma, d_beta, valid = operator(grad, *grads[1:3], z, center, variance, gamma, beta, relu, eps)
    if (grad_z := grads[3]) is not None and grad_z.shape == z.shape:  # else z was not an output
        dz = dz + grad_z
    d_bias = torch.zeros_like(bias) if bias is not None and grads[1] is None else grads[1]
    parameters = ((bias, d_bias), (gamma, d_gamma), (beta, d_beta))
    return dz, valid, tuple(None if y is None else gradient for y, gradient in parameters)


def _reference(
    grad: Tensor,
    grad_mean: Tensor | None,
    grad_variance: Tensor | None,
    product: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    relu: bool,
    eps: float,
) -> Gradients:
    # With n = (x - mean) / s, s = sqrt(variance + eps) and g the gradient of the input of the ReLU:
    # dx = gamma / s (g - mean(g) - n mean(g n)) + (dmean + 2 (x - mean) dvariance) / count
    # dgamma = sum(g n), dbeta = sum(g). Channels with NaN statistics have zero gradients.
    axes = [0, *range(2, product.dim())]
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
    d = torch.where(valid, d, 0).contiguous(memory_format=_memory_format(product))
    return d, (g * n).sum(axes), g.sum(axes), valid.flatten()


def _memory_format(product: Tensor) -> torch.memory_format:
    last = product.dim() == 4 and product.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last and not product.is_contiguous() else torch.contiguous_format


def _fake(product: Tensor) -> Gradients:
    channels = product.shape[1]
    d = torch.empty_like(product, memory_format=_memory_format(product))
    d_gamma, d_beta = product.new_empty(channels), product.new_empty(channels)
    return d, d_gamma, d_beta, product.new_empty(channels, dtype=torch.bool)


def _backward(
    grad_product: Tensor,
    grad_gamma: Tensor,
    grad_beta: Tensor,
    _: Tensor | None,
    *,
    grad: Tensor,
    grad_mean: Tensor | None,
    grad_variance: Tensor | None,
    product: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    relu: bool,
    eps: float,
) -> tuple[Tensor | None, ...]:
    tensors = (grad, grad_mean, grad_variance, product, mean, variance, gamma, beta)
    present = [x for x in tensors if x is not None]

    def flat_gradients(*values: Tensor) -> Tensor:
        remaining = iter(values)
        arguments: list[Any] = [*(None if x is None else next(remaining) for x in tensors), relu, eps]
        return torch.cat([y.flatten() for y in _reference(*arguments)[:3]])

    cotangent = torch.cat([g.flatten() for g in (grad_product, grad_gamma, grad_beta)])
    gradients = iter(vjp(flat_gradients, present, cotangent))
    return tuple(None if x is None else next(gradients) for x in tensors)


def _oracle(
    grad: Tensor, product: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, *, relu: bool
) -> tuple[Tensor, ...]:
    """Autograd through the definition."""
    parameters = default_scale_and_shift(gamma, beta, product.movedim(1, 0))
    leaves = [x.detach().requires_grad_() for x in (product, *parameters)]
    y = normalize(leaves[0], None, leaves[1], leaves[2], 1e-5)[0]
    return torch.autograd.grad(torch.relu(y) if relu else y, leaves, grad)


def _function(
    grad: Tensor, product: Tensor, gamma: Tensor | None = None, beta: Tensor | None = None, *, relu: bool
) -> tuple[Tensor, ...]:
    if product.dtype in HALF_DTYPES:  # the operators that call this one pass float32
        result = _function(*(x if x is None else x.float() for x in (grad, product, gamma, beta)), relu=relu)  # type: ignore[arg-type]
        return tuple(y.to(product.dtype) for y in result)
    axes = [0, *range(2, product.dim())]
    zero, mean, variance = product.new_zeros(product.shape[1]), product.mean(axes), product.var(axes, correction=0)
    return tuple(operator(grad, zero, zero, product, mean, variance, gamma, beta, relu, 1e-5)[:3])


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    grad, product = torch.randn(2, 4, 3, 5, dtype=torch.double, generator=generator)
    gamma, beta = torch.randn(2, 3, dtype=torch.double, generator=generator)
    return Cases(
        function=_function,
        samples=(
            Sample(grad, product, gamma, beta, relu=False),
            Sample(grad[..., 0], product[..., 0], gamma, beta, relu=True),
            Sample(grad.unsqueeze(-1), product.unsqueeze(-1), relu=True),
        ),
        oracle=_oracle,
    )


operator = Op(
    "commodity::batch_norm_backward",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    time=None,
    vmap="loop",
)

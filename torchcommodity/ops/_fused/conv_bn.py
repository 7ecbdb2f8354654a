"""Fused convolution and batch normalization; the backward pass recomputes the convolution and stores only the input."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Op, Sample
from torchcommodity.ops._fused.batch_norm import (
    BatchNormOutput,
    check_count,
    check_running,
    check_tensors,
    default_scale_and_shift,
    fold,
    normalize,
    saves_product,
)
from torchcommodity.ops._fused.batch_norm_backward import (
    Gradients,
    in_float32,
    mask_channels,
    memory_format,
    parameter_gradients,
    product_gradient,
)
from torchcommodity.ops._fused.convolution import (
    ConvolutionSize,
    convolution_settings,
    convolve,
    convolve_backward,
    convolve_by_taps,
)


def conv_bn(
    x: Tensor,  # (B, C, T) or (B, C, H, W)
    weight: Tensor,  # (D, C / groups, K) or (D, C / groups, K, L)
    bias: Tensor | None = None,  # (D,)
    gamma: Tensor | None = None,  # (D,)
    beta: Tensor | None = None,  # (D,)
    running_mean: Tensor | None = None,  # (D,)
    running_variance: Tensor | None = None,  # (D,)
    *,
    training: bool = True,
    stride: ConvolutionSize = 1,
    padding: ConvolutionSize | str = 0,
    dilation: ConvolutionSize = 1,
    groups: int = 1,
    eps: float = 1e-5,
    recompute: bool = True,
) -> BatchNormOutput:  # (B, D, T') or (B, D, H', W'), (D,), (D,)
    """Convolution and batch normalization: y = gamma (z - mean) / sqrt(variance + eps) + beta, z = weight * x + bias.

    In training, mean and biased variance are taken over the batch and its positions. Every value then affects every
    output, also backwards in time: do not use it where rows must not see later rows. In evaluation
    (`training=False`) the running statistics are used, and y is one convolution with a folded weight.

    The backward pass stores only `x` and the parameters and recomputes z, a convolution more; `torch.nn` stores x and
    z. The memory format of y is that of `torch.nn.functional.conv2d`: `torch.channels_last` if that of x or weight is.

    Args:
        x: Input in any unit, with one spatial axis (such as time) or two (such as a correlation matrix).
        weight, bias: As in `torch.nn.functional.conv1d` and `conv2d`.
        gamma, beta: Scale and shift of the output. None means 1 and 0.
        running_mean, running_variance: Statistics for evaluation; not used in training.
        training: Normalize by the statistics of the batch.
        stride, dilation: One int for all axes, or one per axis.
        padding: Zeros on both sides: an int, one int per axis, "valid", "same", or, with one axis, "causal" (only
            before, so that the convolution itself does not look ahead).
        groups: Number of groups of channels that are convolved separately.
        eps: Added to the variance.
        recompute: False stores z too, which is faster and takes the memory of `torch.nn`.

    Returns:
        `BatchNormOutput(output, mean, variance)`. No argument is modified: update running statistics with
        `running += momentum * (new - running)`, where `new` is `mean`, and `variance * n / (n - 1)` for n values per
        channel, as `torch.nn.BatchNorm1d` and `nn.ConvBN1d` do. In training a NaN or infinity makes every channel that
        depends on it NaN; NaN channels have zero gradients. Fill missing values first.

    Raises:
        ValueError, TypeError: If shapes, dtypes or settings do not match, or in training a channel has a single value.

    Devices: CPU and CUDA, with ATen's convolution; elsewhere the reference in plain PyTorch. Differentiable in all
    tensors but the running statistics, to any order, in reverse and forward mode. `vmap` runs the samples one by one,
    each with its own statistics.

    References:
        Ioffe, Szegedy (2015). Batch normalization. ICML. arXiv:1502.03167.
        Chen et al. (2016). Training deep nets with sublinear memory cost. arXiv:1604.06174.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> x = torch.arange(12.0).reshape(2, 1, 6)
        >>> y, mean, variance = ops.conv_bn(x, torch.ones(1, 1, 3), padding="causal")
        >>> y.shape, mean, variance
        (torch.Size([2, 1, 6]), tensor([12.6667]), tensor([99.7222]))
    """
    running = {"running_mean": running_mean, "running_variance": running_variance}
    check_tensors("conv_bn", x, weight, eps, bias=bias, gamma=gamma, beta=beta, **running)
    settings, shape = convolution_settings("conv_bn", x, weight, stride, padding, dilation, groups)
    if not training:
        mean, variance = check_running("conv_bn", **running)
        weight, level = fold(weight, bias, gamma, beta, mean, variance, eps)
        return BatchNormOutput(convolve(x, weight, level, *settings), mean, variance)
    check_count("conv_bn", shape, x)
    save_product = saves_product(recompute, x, weight, bias, gamma, beta)
    y, mean, variance, _ = operator(x, weight, bias, gamma, beta, *settings, eps, save_product)
    return BatchNormOutput(y, mean, variance)


def _reference(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    eps: float,
    save_product: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    z = convolve(x, weight, None, stride, padding, dilation, groups)
    return *normalize(z, bias, gamma, beta, eps), z if save_product else z.new_empty(0)


def _decomposition(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    eps: float,
    save_product: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    settings = stride, padding, dilation, groups
    z = convolve_by_taps(x, weight, *settings) if x.dtype == torch.double else convolve(x, weight, None, *settings)
    return *normalize(z, bias, gamma, beta, eps), z if save_product else z.new_empty(0)


def _fake(
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    save_product: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    y = convolve(x, weight, None, stride, padding, dilation, groups)  # its memory format is that of the product
    statistics = x.new_empty(y.shape[1]), x.new_empty(y.shape[1])
    return y, *statistics, torch.empty_like(y) if save_product else x.new_empty(0)


def _backward(
    *grads: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    eps: float,
    save_product: bool,
    output1: Tensor,
    output2: Tensor,
    output3: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    grad, grad_mean, grad_variance, grad_product = grads
    product, grad_product = (output3, grad_product) if save_product else (None, None)
    outputs = grad, grad_mean, grad_variance, grad_product
    settings = stride, padding, dilation, groups, eps, *needs_input_grad[:2]
    gradients = backward_operator(*outputs, x, weight, bias, gamma, beta, output1, output2, product, *settings)
    return parameter_gradients(gradients, grad_mean, needs_input_grad)


def _backward_reference(
    grad: Tensor | None,
    grad_mean: Tensor | None,
    grad_variance: Tensor | None,
    grad_product: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    product: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    eps: float,
    needs_x: bool,
    needs_weight: bool,
) -> Gradients:
    # z = weight * x, saved or computed again; dz from the gradient of y; dx and dweight from dz
    settings = stride, padding, dilation, groups
    z = convolve(x, weight, None, *settings) if product is None else product
    grads = grad, grad_mean, grad_variance, grad_product
    dz, d_gamma, d_beta, valid = product_gradient(*grads, z, bias, gamma, beta, mean, variance, False, eps)
    d_x, d_weight = convolve_backward(dz, x, weight, *settings, (needs_x, needs_weight))
    layout = memory_format(z)
    d_x = x.new_empty(0) if d_x is None else d_x.contiguous(memory_format=layout)
    d_weight = x.new_empty(0) if d_weight is None else mask_channels(d_weight, valid).contiguous(memory_format=layout)
    return d_x, d_weight, d_gamma, d_beta


def _backward_fake(
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    needs_x: bool,
    needs_weight: bool,
) -> Gradients:
    layout = memory_format(convolve(x, weight, None, stride, padding, dilation, groups))
    d_x, d_weight = (
        torch.empty_like(y, memory_format=layout) if needed else y.new_empty(0)
        for y, needed in ((x, needs_x), (weight, needs_weight))
    )
    return d_x, d_weight, x.new_empty(weight.shape[0]), x.new_empty(weight.shape[0])


def _oracle(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    stride: ConvolutionSize = 1,
    padding: ConvolutionSize | str = 0,
    dilation: ConvolutionSize = 1,
    groups: int = 1,
) -> tuple[Tensor, ...]:
    convolution = F.conv1d if x.dim() == 3 else F.conv2d
    z = convolution(x, weight, bias, stride, padding, dilation, groups)
    axes = [0, *range(2, z.dim())]
    y = F.batch_norm(z, None, None, *default_scale_and_shift(gamma, beta, weight), training=True)
    return y, z.mean(axes), z.var(axes, correction=0)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.double, generator=generator)

    x, weight, per_channel = randn(3, 2, 7), randn(4, 2, 3), randn(3, 4)
    image, kernel = randn(2, 2, 5, 4), randn(2, 1, 3, 2)
    return Cases(
        function=conv_bn,
        samples=(
            Sample(x, weight, *per_channel, padding=1),
            Sample(x, weight[:, :1], groups=2, stride=2, dilation=2),
            Sample(image, kernel, *per_channel[:2, :2], groups=2, stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
            Sample(x, weight, per_channel[0], padding="same", dilation=3),
        ),
        bad=(
            Bad(Sample(x[0], weight), r"conv_bn: x must be \(B, C, T\).*; got x \(2, 7\), weight \(4, 2, 3\)"),
            Bad(Sample(x, weight[:, :1]), r"weight must be \(D, C / groups, \.\.\.\)"),
            Bad(
                Sample(x, weight, per_channel[0, :3]),
                r"bias must be \(4,\), one value per output channel; got bias \(3,\)",
            ),
            Bad(Sample(x, weight, training=False), "evaluation requires running_mean and running_variance"),
            Bad(Sample(x[:1, :, :3], weight), "training requires more than one value per channel; got values=1"),
            Bad(Sample(x, weight, padding="even"), "padding must be an int"),
            Bad(Sample(x, weight, stride=0), "stride must be >= 1"),
            Bad(Sample(x, weight, dilation=9), "the kernel must fit in the padded input"),
            Bad(Sample(x, weight, eps=0.0), "eps must be a positive float"),
            Bad(Sample(x.float(), weight), "one dtype", TypeError),
            Bad(Sample(x.long(), weight), "x must be a floating-point Tensor", TypeError),
        ),
        oracle=_oracle,
    )


def _backward_cases() -> Cases:
    sample = _cases().samples[0]
    x, weight, *parameters = sample.tensors
    generator = torch.Generator().manual_seed(1)
    grads = [torch.randn(shape, dtype=torch.double, generator=generator) for shape in ((3, 4, 7), (4,), (4,))]

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return in_float32(gradients, *tensors)

    def gradients(grad: Tensor, grad_mean: Tensor, grad_variance: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        settings = [1], [1, 1], [1], 1, 1e-5
        _, mean, variance, product = operator(*tensors, *settings, True)
        results: tuple[Tensor, ...] = backward_operator(
            grad, grad_mean, grad_variance, None, *tensors, mean, variance, product, *settings, True, True
        )
        return results

    return Cases(function=function, samples=(Sample(*grads, x, weight, *parameters),))


backward_operator = Op(
    "commodity::conv_bn_backward",
    reference=_backward_reference,
    fake=_backward_fake,
    backward="reference",
    mask_nan_grad=False,
    cases=_backward_cases,
    time=None,
    vmap="loop",
)
operator = Op(
    "commodity::conv_bn",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    decomposition=_decomposition,
    mask_nan_grad=False,  # conv_bn_backward masks NaN channels
    materialize_grads=False,
    cases=_cases,
    causal=False,
    time=None,
    vmap="loop",
)

"""Fused linear layer, batch normalization and ReLU; the backward pass stores only the input."""

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid
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
    parameter_gradients,
    product_gradient,
)


def linear_bn_relu(
    x: Tensor,  # (..., C)
    weight: Tensor,  # (D, C)
    bias: Tensor | None = None,  # (D,)
    gamma: Tensor | None = None,  # (D,)
    beta: Tensor | None = None,  # (D,)
    running_mean: Tensor | None = None,  # (D,)
    running_variance: Tensor | None = None,  # (D,)
    *,
    training: bool = True,
    eps: float = 1e-5,
    recompute: bool = True,
) -> BatchNormOutput:  # (..., D), (D,), (D,)
    """Linear layer, batch normalization and ReLU: max(0, gamma (z - mean) / sqrt(variance + eps) + beta), z = W x + b.

    In training, mean and biased variance are taken over all leading axes. Every row then affects every output: do not
    use it where rows must not see each other. In evaluation (`training=False`) the running statistics are used, and
    the output is one linear layer with a folded weight, and ReLU.

    The backward pass stores only `x` and the parameters and recomputes z, a product more; `torch.nn` stores x, z and y.

    Args:
        x: Input in any unit.
        weight, bias: As in `torch.nn.functional.linear`.
        gamma, beta: Scale and shift before ReLU. None means 1 and 0.
        running_mean, running_variance: Statistics for evaluation; not used in training.
        training: Normalize by the statistics of the batch.
        eps: Added to the variance.
        recompute: False stores z too, which is faster.

    Returns:
        `BatchNormOutput(output, mean, variance)`. No argument is modified; for running statistics see `conv_bn` and
        `nn.LinearBNReLU`. In training a NaN or infinity in the input makes all features NaN; NaN features have zero
        gradients. Fill missing values first.

    Raises:
        ValueError, TypeError: If shapes or dtypes do not match, or in training there is a single row.

    Devices: CPU and CUDA, with ATen's matrix product; elsewhere the reference in plain PyTorch. Differentiable in all
    tensors but the running statistics, to any order, in reverse and forward mode. `vmap` runs the samples one by one,
    each with its own statistics.

    References:
        Ioffe, Szegedy (2015). Batch normalization. ICML. arXiv:1502.03167.
        Chen et al. (2016). Training deep nets with sublinear memory cost. arXiv:1604.06174.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> y, mean, variance = ops.linear_bn_relu(torch.tensor([[0.0], [1.0], [2.0]]), torch.ones(1, 1))
        >>> y.squeeze(-1), mean, variance
        (tensor([0.0000, 0.0000, 1.2247]), tensor([1.]), tensor([0.6667]))
    """
    running = {"running_mean": running_mean, "running_variance": running_variance}
    check_tensors("linear_bn_relu", x, weight, eps, bias=bias, gamma=gamma, beta=beta, **running)
    if x.dim() < 2 or weight.dim() != 2 or x.shape[-1] != weight.shape[1]:
        raise_invalid("linear_bn_relu", "x must be (..., C) with leading axes, weight (D, C)", x=x, weight=weight)
    if not training:
        mean, variance = check_running("linear_bn_relu", **running)
        y = F.linear(x, *fold(weight, bias, gamma, beta, mean, variance, eps)).relu()
        return BatchNormOutput(y, mean, variance)
    rows = x if x.dim() == 2 else x.flatten(0, -2)
    check_count("linear_bn_relu", (rows.shape[0], weight.shape[0]), x)
    save_product = saves_product(recompute, x, weight, bias, gamma, beta)
    y, mean, variance, _ = operator(rows, weight, bias, gamma, beta, eps, save_product)
    return BatchNormOutput(y if x.dim() == 2 else y.unflatten(0, x.shape[:-1]), mean, variance)


def _reference(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    eps: float = 1e-5,
    save_product: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    z = x @ weight.mT
    y, mean, variance = normalize(z, bias, gamma, beta, eps)
    return y.relu(), mean, variance, z if save_product else z.new_empty(0)


def _fake(x: Tensor, weight: Tensor, save_product: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    features = weight.shape[0]
    y = x.new_empty(x.shape[0], features)
    return y, x.new_empty(features), x.new_empty(features), torch.empty_like(y) if save_product else x.new_empty(0)


def _backward(
    *grads: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gamma: Tensor | None,
    beta: Tensor | None,
    eps: float,
    save_product: bool,
    output1: Tensor,
    output2: Tensor,
    output3: Tensor,
    needs_input_grad: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    grad, grad_mean, grad_variance, grad_product = grads
    product, grad_product = (output3, grad_product) if save_product else (None, None)
    outputs, needs = (grad, grad_mean, grad_variance, grad_product), needs_input_grad[:2]
    gradients = backward_operator(*outputs, x, weight, bias, gamma, beta, output1, output2, product, eps, *needs)
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
    eps: float,
    needs_x: bool,
    needs_weight: bool,
) -> Gradients:
    # z = W x, saved or computed again; dz from the gradient of y; dx = dz W, dW = dz' x
    z = x @ weight.mT if product is None else product
    grads = grad, grad_mean, grad_variance, grad_product
    dz, d_gamma, d_beta, valid = product_gradient(*grads, z, bias, gamma, beta, mean, variance, True, eps)
    d_x = dz @ weight if needs_x else x.new_empty(0, x.shape[1])
    d_weight = mask_channels(dz.mT @ x, valid) if needs_weight else x.new_empty(0, x.shape[1])
    return d_x, d_weight, d_gamma, d_beta


def _backward_fake(x: Tensor, weight: Tensor, needs_x: bool, needs_weight: bool) -> Gradients:
    rows, features = x.shape[0] if needs_x else 0, weight.shape[0]
    d_weight = x.new_empty(features if needs_weight else 0, x.shape[1])
    return x.new_empty(rows, x.shape[1]), d_weight, x.new_empty(features), x.new_empty(features)


def _oracle(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
) -> tuple[Tensor, ...]:
    rows = F.linear(x, weight, bias).flatten(0, -2)
    y = F.batch_norm(rows, None, None, *default_scale_and_shift(gamma, beta, weight), training=True).relu()
    return y.unflatten(0, x.shape[:-1]), rows.mean(0), rows.var(0, correction=0)


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.double, generator=generator)

    x, weight, per_feature = randn(9, 4), randn(6, 4), randn(3, 6)
    return Cases(
        function=linear_bn_relu,
        samples=(
            Sample(randn(3, 5, 4), weight, *per_feature),  # under vmap each sample still has five rows
            Sample(x, weight),
            Sample(x, weight, *per_feature[:2]),
        ),
        bad=(
            Bad(Sample(x[0], weight), r"linear_bn_relu: x must be \(\.\.\., C\) .*; got x \(4,\), weight \(6, 4\)"),
            Bad(Sample(x, weight[:, :3]), r"weight \(D, C\); got x \(9, 4\), weight \(6, 3\)"),
            Bad(
                Sample(x, weight, per_feature[0, :5]),
                r"bias must be \(6,\), one value per output channel; got bias \(5,\)",
            ),
            Bad(Sample(x, weight, training=False), "evaluation requires running_mean and running_variance"),
            Bad(Sample(x[:1], weight), "training requires more than one value per channel; got values=1"),
            Bad(Sample(x, weight, eps=-1.0), "eps must be a positive float"),
            Bad(Sample(x.float(), weight), "one dtype", TypeError),
            Bad(Sample(x.long(), weight), "x must be a floating-point Tensor", TypeError),
        ),
        oracle=_oracle,
    )


def _backward_cases() -> Cases:
    generator = torch.Generator().manual_seed(1)
    shapes = ((9, 6), (6,), (6,), (9, 4), (6, 4), (6,), (6,), (6,))
    tensors = [torch.randn(shape, dtype=torch.double, generator=generator) for shape in shapes]

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return in_float32(gradients, *tensors)

    def gradients(grad: Tensor, grad_mean: Tensor, grad_variance: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        _, mean, variance, product = operator(*tensors, 1e-5, True)
        results: tuple[Tensor, ...] = backward_operator(
            grad, grad_mean, grad_variance, None, *tensors, mean, variance, product, 1e-5, True, True
        )
        return results

    return Cases(function=function, samples=(Sample(*tensors),))


backward_operator = Op(
    "commodity::linear_bn_relu_backward",
    reference=_backward_reference,
    fake=_backward_fake,
    backward="reference",
    mask_nan_grad=False,
    cases=_backward_cases,
    time=None,
    vmap="loop",
)
operator = Op(
    "commodity::linear_bn_relu",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    mask_nan_grad=False,  # linear_bn_relu_backward masks NaN features
    materialize_grads=False,
    cases=_cases,
    causal=False,
    time=None,
    vmap="loop",
)

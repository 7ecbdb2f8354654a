"""Forward mode and rules of vmap that are wrong."""

import torch
from torch import Tensor

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, rand, randn, save_inputs


@fault("zero_tangent", samples=[(rand(3, 4),)])
@custom_op(backward=lambda ctx, grad: grad / ctx.saved_tensors[0])
def logarithm(x: Tensor) -> Tensor:
    return x.log()


@fault("zero_tangent", samples=[(randn(4, 3), randn(3, 2, seed=1))])
@custom_op(
    fake=lambda x, w: x.new_empty(x.shape[0], w.shape[1]),
    backward=lambda ctx, grad: (grad @ ctx.saved_tensors[1].mT, ctx.saved_tensors[0].mT @ grad),
)
def matrix_product(x: Tensor, w: Tensor) -> Tensor:
    return x @ w


@fault("zero_tangent", make="triton_op", samples=[(randn(3, 4),)])
@torch.library.triton_op("corpus::triton_sine", mutates_args={})
def triton_sine(x: Tensor) -> Tensor:
    return x.sin()


triton_sine.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0].cos(), setup_context=save_inputs)


class ZeroTangent(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return torch.zeros_like(tangent)


fault("zero_tangent", rows=("wrong_tangent",), samples=[(rand(3, 4),)])(ZeroTangent)


class HalfTangent(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


fault("wrong_tangent", samples=[(rand(3, 4),)])(HalfTangent)


class TangentOfFirstInput(Saved):
    """Forgets the tangent of the second input."""

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    @staticmethod
    def jvp(ctx, dx, dy):
        return dx * ctx.saved_tensors[1]


fault("wrong_tangent", samples=[(rand(3, 4), rand(3, 4, seed=1))])(TangentOfFirstInput)


class TransposedTangent(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(-1).cumsum(-1).flip(-1)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.flip(-1).cumsum(-1).flip(-1)


fault("wrong_tangent", samples=[(rand(3, 4),)])(TransposedTangent)


class VmapForgetsScale(Saved):
    @staticmethod
    def forward(x: Tensor, scale: float) -> Tensor:
        return scale * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.settings[0], None

    @staticmethod
    def vmap(info, in_dims, x, scale):
        return VmapForgetsScale.apply(x, 1.0), in_dims[0]


fault("vmap", samples=[(rand(3, 4), 2.5)])(VmapForgetsScale)


class VmapWrongAxis(Saved):
    """Reduces the last axis after vmap has moved the batch there."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.mean(-1, keepdim=True)

    @staticmethod
    def vmap(info, in_dims, x):
        return VmapWrongAxis.apply(x.movedim(in_dims[0], -1)), x.dim() - 1


fault("vmap", samples=[(rand(3, 4),)])(VmapWrongAxis)


class VmapSharedInput(Saved):
    """Supposes that both inputs are batched along the same axis."""

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x, y):
        return VmapSharedInput.apply(x, y).mean(0, keepdim=True).expand_as(x), in_dims[0]


fault("vmap", samples=[(rand(3, 4), rand(3, 4, seed=1))])(VmapSharedInput)


@fault("vmap", samples=[(rand(3, 4),)])
@custom_op()
def custom_vmap_reversed(x: Tensor) -> Tensor:
    return 2 * x


custom_vmap_reversed.register_vmap(lambda info, in_dims, x: (custom_vmap_reversed(x.flip(in_dims[0])), in_dims[0]))


class CumulativeSum(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.cumsum(-2)

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(-2).cumsum(-2).flip(-2)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.cumsum(-2)


healthy(time=-2, causal=True, samples=[(prices(),)])(CumulativeSum)


@healthy(samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def log_cosh(x: Tensor) -> Tensor:
    return x + torch.nn.functional.softplus(-2 * x) - 0.6931471805599453

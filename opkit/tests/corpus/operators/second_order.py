"""Second derivatives that are wrong."""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, rand, randn


class DetachedSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = torch.sigmoid(x)
        ctx.y = y.detach()
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y * (1 - ctx.y)


fault("wrong_second_gradient", samples=[(randn(3, 4),)])(DetachedSigmoid)


class SavedIntermediate(torch.autograd.Function):
    """Saves an intermediate result, which autograd takes for a constant."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        exponential = x.exp()
        ctx.save_for_backward(exponential)
        return exponential.sin()

    @staticmethod
    def backward(ctx, grad):
        (exponential,) = ctx.saved_tensors
        return grad * exponential * exponential.cos()


fault("wrong_second_gradient", samples=[(randn(3, 4),)])(SavedIntermediate)


class BackwardUnderNoGrad(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**4

    @staticmethod
    def backward(ctx, grad):
        with torch.no_grad():
            slope = 4 * ctx.saved_tensors[0] ** 3
        return grad * slope


fault("wrong_second_gradient", samples=[(rand(3, 4),)])(BackwardUnderNoGrad)


@fault("wrong_second_gradient", rows=("zero_tangent",), samples=[(rand(3, 4), rand(3, 4, seed=1))])
@custom_op(backward=lambda ctx, grad: (grad * ctx.saved_tensors[1].data, grad * ctx.saved_tensors[0].data))
def product_of_data(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def _numpy_backward(ctx, grad):
    slope = torch.from_numpy(2 * ctx.saved_tensors[0].detach().numpy())
    return grad * slope


@fault("wrong_second_gradient", rows=("zero_tangent", "aot_dispatch", "data_dependent"), samples=[(rand(3, 4),)])
@custom_op(backward=_numpy_backward)
def square_through_numpy(x: Tensor) -> Tensor:
    return x.square()


class WrongDoubleBackward(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        return _ExponentialSlope.apply(ctx.saved_tensors[0], grad)


class _ExponentialSlope(Saved):
    @staticmethod
    def forward(x: Tensor, grad: Tensor) -> Tensor:
        return grad * x.exp()

    @staticmethod
    def backward(ctx, outer):
        x, grad = ctx.saved_tensors
        return 2 * outer * grad * x.exp(), outer * x.exp()


fault("wrong_second_gradient", samples=[(randn(3, 4),)])(WrongDoubleBackward)


class OnceDifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.tan()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (1 + ctx.saved_tensors[0].tan() ** 2)


healthy(samples=[(0.3 * randn(3, 4),)])(OnceDifferentiable)


class ReturnsIntermediate(torch.autograd.Function):
    """Saves an intermediate result the right way: as an output."""

    @staticmethod
    def forward(x: Tensor):
        exponential = x.exp()
        return exponential.sin(), exponential

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, grad, grad_exponential):
        (exponential,) = ctx.saved_tensors
        return grad * exponential * exponential.cos() + grad_exponential * exponential


healthy(samples=[(randn(3, 4),)])(ReturnsIntermediate)

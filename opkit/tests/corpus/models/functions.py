"""Custom autograd functions with a wrong backward."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from corpus.models.entries import Setup, between, faulty, regression

ZERO = ("wrong_backward", "zero_gradient")


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 2 * ctx.saved_tensors[0] * grad


@faulty(
    "wrong_backward",
    "not_differentiable",
    "zero_gradient",
    line=("SquareNone.apply", "class SquareNone", "return None", "def backward"),
)
def backward_returns_none() -> Setup:
    class SquareNone(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return None

    return between(lambda h: SquareNone.apply(h))


@faulty(*ZERO, line=("SquareZero.apply", "class SquareZero", "return torch.zeros_like(grad)", "def backward"))
def backward_returns_zeros() -> Setup:
    class SquareZero(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return torch.zeros_like(grad)

    return between(lambda h: SquareZero.apply(h))


@faulty("wrong_backward", "crash", line=("SquareShape.apply", "class SquareShape", "grad.sum(0)"))
def backward_returns_wrong_shape() -> Setup:
    class SquareShape(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad.sum(0)[:3]

    return between(lambda h: SquareShape.apply(h))


@faulty("wrong_backward", "crash", line=("SquareTwo.apply", "class SquareTwo", "return grad, grad"))
def backward_returns_too_many() -> Setup:
    class SquareTwo(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad, grad

    return between(lambda h: SquareTwo.apply(h))


@faulty("wrong_backward", "crash", "python", line=("SquareArray.apply", "class SquareArray", "grad.numpy()"))
def backward_returns_an_array() -> Setup:
    class SquareArray(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad.numpy() * 2

    return between(lambda h: SquareArray.apply(h))


@faulty("wrong_backward", "crash", line=("SquareMissing.apply", "class SquareMissing"))
def backward_is_missing() -> Setup:
    class SquareMissing(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * x

    return between(lambda h: SquareMissing.apply(h))


@faulty("wrong_backward", "crash", line=("SquareRaises.apply", "class SquareRaises", "ctx.saved", "ctx.x"))
def backward_raises() -> Setup:
    class SquareRaises(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return 2 * ctx.x * grad

    return between(lambda h: SquareRaises.apply(h))


@faulty("nan_gradient", "wrong_backward", line=("SqrtNaN.apply", "class SqrtNaN", "return grad * x /"))
def backward_divides_by_zero() -> Setup:
    class SqrtNaN(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.relu().sqrt()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            x = ctx.saved_tensors[0].relu()
            return grad * x / (2 * x * x.sqrt())

    return between(lambda h: SqrtNaN.apply(h))


@faulty(
    "exploding", "infinite_gradient", "wrong_backward", line=("SquareHuge.apply", "class SquareHuge", "grad * 1e30", "")
)
def backward_explodes() -> Setup:
    class SquareHuge(Square):
        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad * 1e30

    return between(lambda h: SquareHuge.apply(h))


@faulty(
    "wrong_backward",
    "not_differentiable",
    "zero_gradient",
    line=("Linear.apply", "class Linear", "grad @ weight, None"),
)
def no_gradient_for_the_weight() -> Setup:
    class Linear(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
            ctx.save_for_backward(weight)
            return x @ weight.T

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (weight,) = ctx.saved_tensors
            return grad @ weight, None

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.head = nn.Parameter(torch.randn(8, 3)), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(Linear.apply(x, self.weight).tanh())

    return Model(), regression(), F.mse_loss


@faulty("wrong_backward", "not_differentiable", line=("Marked.apply", "class Marked", "mark_non_differentiable"))
def marked_not_differentiable() -> Setup:
    class Marked(Square):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x * x
            ctx.mark_non_differentiable(y)
            return y

    return between(lambda h: Marked.apply(h))


@faulty("in_place", line="x.mul_(x)")
def forward_changes_what_it_saved() -> Setup:
    class SquareInPlace(Square):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            ctx.mark_dirty(x)
            return x.mul_(x)

    return between(lambda h: SquareInPlace.apply(h.sigmoid()))


@faulty(
    "crash",
    "wrong_backward",
    "not_differentiable",
    line=("SquareOnce.apply", "class SquareOnce", "autograd.grad(", "loss"),
)
def penalty_on_once_differentiable() -> Setup:
    class SquareOnce(Square):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Tensor) -> Any:
            return 2 * ctx.saved_tensors[0] * grad

    def penalty(model: nn.Module, batch: Any) -> Tensor:
        x = batch[0].clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()

    model, batch, _ = between(lambda h: SquareOnce.apply(h))
    return model, batch, penalty


@faulty("integer", "rounding", "not_differentiable", line=("Quantize.apply", "class Quantize", "(x * 10).round()"))
def forward_returns_integers() -> Setup:
    class Quantize(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return (x * 10).round().int()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad

    return between(lambda h: Quantize.apply(h).float())

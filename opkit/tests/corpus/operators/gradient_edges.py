"""Gradients that are wrong at the edges: boundary rows, branches, zeros, NaN, layouts of the incoming gradient."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, randn, series

with_zero = randn(4, 5)
with_zero[1, 2] = 0.0


@fault("nan_from_branch", samples=[(with_zero.abs(),)])
def log_where_positive(x: Tensor) -> Tensor:
    return torch.where(x > 0, x.log(), torch.zeros_like(x))


@fault("nan_from_branch", samples=[(with_zero,)])
def sqrt_of_square(x: Tensor) -> Tensor:
    return torch.where(x.abs() > 1e-8, x.abs().sqrt(), torch.zeros_like(x))


@fault("nan_from_branch", samples=[(with_zero, with_zero.abs())])
@library_op("(Tensor x, Tensor y) -> Tensor", "CompositeImplicitAutograd")
def divide_or_zero(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(y == 0, 0.0, x / y)


class SafePower(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x > 0, x**0.5, 0 * x)


fault("nan_from_branch", samples=[(with_zero,)])(SafePower)


@fault("nan_gradient", samples=[(torch.cat([randn(3, 4), torch.zeros(1, 4).double()]),)])
def row_norm(x: Tensor) -> Tensor:
    return x.square().sum(-1).sqrt()


def _normalize_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    length = x.square().sum(-1, keepdim=True).sqrt()
    unit = x / length
    return (grad - unit * (grad * unit).sum(-1, keepdim=True)) / length


@fault("nan_gradient", samples=[(torch.cat([randn(3, 4), torch.zeros(1, 4).double()]),)])
@custom_op(backward=_normalize_backward)
def normalize_zero_row(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1)


@fault("nan_gradient", rows=("missing_values_gradient", "missing_values", "nan_from_branch"), **series())
def returns_skip_missing(x: Tensor) -> Tensor:
    previous = x.roll(1, -2)
    change = torch.log(x / previous)
    first = torch.arange(x.shape[-2], device=x.device)[:, None] == 0
    return torch.where(first | change.isnan(), 0.0, change)


class AbsAtZero(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.abs()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x / x.abs()


fault("nan_gradient", samples=[(with_zero,)])(AbsAtZero)


def _difference_backward(ctx, grad):
    out = grad.clone()
    out[..., :-1, :] -= grad[..., 1:, :]
    return out  # row 0 of the output is x[0] - x[0]


@fault("wrong_gradient", **series())
@custom_op(backward=_difference_backward)
def difference_first_row(x: Tensor) -> Tensor:
    return x - torch.cat([x[..., :1, :], x[..., :-1, :]], -2)


@fault("wrong_gradient", samples=[(randn(2, 3, 6),)])
@custom_op(
    fake=lambda x: x.new_empty(*x.shape[:-1], x.shape[-1] + 2), backward=lambda ctx, grad: grad[..., 1:-1].clone()
)
def replicate_pad(x: Tensor) -> Tensor:  # the edges also receive the gradient of the padding
    return F.pad(x, (1, 1), mode="replicate")


def _clamp_backward(ctx, grad):
    return grad, None, None


@fault("wrong_gradient", samples=[(randn(4, 5), -0.5, 0.5)])
@custom_op(backward=_clamp_backward)
def clamp_ignores_bounds(x: Tensor, low: float, high: float) -> Tensor:
    return x.clamp(low, high)


class MaxPoolTies(Saved):
    """Gives the gradient to every element of the window, not to its maximum."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.unfold(-1, 2, 2).amax(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.repeat_interleave(2, -1)


fault("wrong_gradient", samples=[(randn(3, 6),)])(MaxPoolTies)


class SumOfDataPointer(Saved):
    """Reads the incoming gradient as if it were contiguous; that of a sum is expanded."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * torch.as_strided(grad, grad.shape, torch.empty(grad.shape).stride())


fault(
    "wrong_gradient_layout", rows=("gradcheck", "wrong_gradient", "jacrev", "backward_crash"), samples=[(randn(3, 4),)]
)(SumOfDataPointer)


class ViewsIncoming(Saved):
    """Views the incoming gradient, which raises for one that is transposed."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.tanh()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad.view(-1) * (1 - x.tanh().square()).reshape(-1)).view(x.shape)


fault("wrong_gradient_layout", rows=("backward_crash",), samples=[(randn(3, 4),)])(ViewsIncoming)


class FirstElementOnly(Saved):
    """Takes the first element of the incoming gradient for all: right for ones, and for a sum."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(-1)[0] * ctx.saved_tensors[0].cos()


fault("wrong_gradient", samples=[(randn(3, 4),)])(FirstElementOnly)


class ScalesIncomingInPlace(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return 3 * x

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(3)


fault("incoming_gradient_changed", rows=("gradcheck", "gradgradcheck", "wrong_gradient"), samples=[(randn(3, 4),)])(
    ScalesIncomingInPlace
)


class MasksIncomingInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, grad):
        grad[ctx.saved_tensors[0] <= 0] = 0
        return grad


fault("incoming_gradient_changed", rows=("gradcheck", "gradgradcheck", "wrong_gradient"), samples=[(randn(3, 4),)])(
    MasksIncomingInPlace
)


def _zscore_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    scale = x.std(-2, keepdim=True)
    return (grad - grad.mean(-2, keepdim=True)) / scale  # the gradient through the scale is missing


@fault("wrong_gradient", time=-2, causal=False, samples=[(prices(),)])
@custom_op(backward=_zscore_backward)
def zscore_scale_term(x: Tensor) -> Tensor:
    return (x - x.mean(-2, keepdim=True)) / x.std(-2, keepdim=True)


@fault("wrong_gradient", rows=("strides", "wrong_gradient_layout"), samples=[(randn(3, 4), randn(4, seed=1))])
@custom_op(
    backward=lambda ctx, grad: (grad * ctx.saved_tensors[1], (grad * ctx.saved_tensors[0]).sum(0) / grad.shape[0])
)
def affine_weight_mean(x: Tensor, weight: Tensor) -> Tensor:
    return x * weight


@healthy(samples=[(randn(4, 5),)])
def log_with_safe_branch(x: Tensor) -> Tensor:
    safe = torch.where(x > 0, x, torch.ones_like(x))
    return torch.where(x > 0, safe.log1p(), torch.zeros_like(x))


@healthy(samples=[(randn(4, 5),)])
def relu_away_from_zero(x: Tensor) -> Tensor:
    return x.relu()


@healthy(samples=[(randn(4, 5), -0.5, 0.5)])
def clamp_away_from_bounds(x: Tensor, low: float, high: float) -> Tensor:
    return x.clamp(low, high)


@healthy(samples=[(randn(3, 4),)])
def normalize_safely(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1)


@healthy(**series())
def log_returns(x: Tensor) -> Tensor:
    """Warm-up of one row: NaN."""
    change = torch.log(x[..., 1:, :] / x[..., :-1, :])
    return F.pad(change, (0, 0, min(1, x.shape[-2]), 0), value=float("nan"))


class HuberLoss(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.huber_loss(x, y, delta=0.7)


healthy(samples=[(randn(4, 3), randn(4, 3, seed=1))])(HuberLoss)

"""First derivatives of layers that are wrong: softmax, norms, attention, convolutions, solves."""

import torch
from torch import Tensor
from torch.nn import functional as F

from corpus.entries import fault
from corpus.makes import custom_op, randn


@fault("wrong_gradient", samples=[(randn(5, 4),)])
@custom_op(
    backward=lambda ctx, grad: grad * F.softmax(ctx.saved_tensors[0], -1) * (1 - F.softmax(ctx.saved_tensors[0], -1))
)
def softmax_diagonal_only(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def _norm_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    centered = x - x.mean(-1, keepdim=True)
    return (grad - grad.mean(-1, keepdim=True)) / centered.square().mean(-1, keepdim=True).sqrt()


@fault("wrong_gradient", samples=[(randn(5, 4),)])
@custom_op(backward=_norm_backward)
def layer_norm_missing_term(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=0.0)


def _logsumexp_backward(ctx, grad):
    return grad.unsqueeze(-1) * torch.softmax(ctx.saved_tensors[0], 0)


@fault("wrong_gradient", samples=[(randn(4, 5),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[:-1]), backward=_logsumexp_backward)
def logsumexp_axis(x: Tensor) -> Tensor:
    return x.logsumexp(-1)


def _attention_backward(ctx, grad):
    q, k, v = ctx.saved_tensors
    weights = torch.softmax(q @ k.mT, -1)
    d_weights = grad @ v.mT
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    return d_scores @ k, d_scores.mT @ q, weights.mT @ grad  # the scale is missing in dq and dk


@fault("wrong_gradient", samples=[(randn(2, 5, 4), randn(2, 5, 4, seed=1), randn(2, 5, 4, seed=2))])
@custom_op(backward=_attention_backward)
def attention_scale(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / 2, -1) @ v


def _solve_backward(ctx, grad):
    a, b = ctx.saved_tensors
    db = torch.linalg.solve(a, grad)  # a.mT
    return -db @ torch.linalg.solve(a, b).mT, db


@fault("wrong_gradient", samples=[(randn(3, 3) + 4 * torch.eye(3).double(), randn(3, 2, seed=1))])
@custom_op(fake=lambda a, b: torch.empty_like(b), backward=_solve_backward)
def solve_not_transposed(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(a, b).contiguous()


def _convolution_backward(ctx, grad):
    x, weight = ctx.saved_tensors
    dx = F.conv_transpose1d(grad, weight.flip(-1))
    return dx, torch.nn.grad.conv1d_weight(x, weight.shape, grad)


@fault("wrong_gradient", samples=[(randn(2, 1, 8), randn(1, 1, 3, seed=1))])
@custom_op(
    fake=lambda x, w: x.new_empty(x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1), backward=_convolution_backward
)
def convolution_flipped(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv1d(x, weight)


def _two_outputs_backward(ctx, grad_mean, grad_square):
    (x,) = ctx.saved_tensors
    return (grad_mean / x.shape[-1]).unsqueeze(-1).expand_as(x).clone()  # the second output is forgotten


@fault("wrong_gradient", samples=[(randn(4, 3),)])
@custom_op(fake=lambda x: (x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1])), backward=_two_outputs_backward)
def moments_second_output(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.mean(-1), x.square().mean(-1)

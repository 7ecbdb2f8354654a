"""First derivatives that are wrong: sign, factor, term, chain, broadcasting, incoming gradient."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault
from corpus.makes import Saved, custom_op, prices, rand, randn


@fault("wrong_gradient")
@custom_op(backward=lambda ctx, grad: grad * ctx.saved_tensors[0].sin())
def cosine_sign(x: Tensor) -> Tensor:
    return x.cos()


@fault("wrong_gradient")
@custom_op(backward=lambda ctx, grad: grad * ctx.saved_tensors[0] ** 2)
def cube_factor(x: Tensor) -> Tensor:
    return x**3


def _softplus_backward(ctx, grad):
    return grad * torch.sigmoid(ctx.saved_tensors[0]), None  # the chain through beta is missing


@fault("wrong_gradient", samples=[(randn(3, 4), 2.0)])
@custom_op(backward=_softplus_backward)
def softplus_chain(x: Tensor, beta: float) -> Tensor:
    return F.softplus(beta * x)


@fault(
    "wrong_gradient",
    rows=("missing_gradient",),
    samples=[
        (rand(2, 3, 4), rand(3, 4, seed=1)),
    ],
)
@custom_op(backward=lambda ctx, grad: (grad, grad[0]))
def bias_of_first_sample(x: Tensor, bias: Tensor) -> Tensor:
    return x + bias


class MseIgnoresIncoming(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return (x - y).square().mean()

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        difference = 2 * (x - y) / x.numel()
        return difference, -difference


fault("wrong_gradient", samples=[(randn(4, 3), randn(4, 3, seed=1))])(MseIgnoresIncoming)


class BatchMeanDivisor(Saved):
    """Divides by the batch, where the loss is a mean over all elements."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return (x - y).square().mean()

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        dx = 2 * grad * (x - y) / x.shape[0]
        return dx, -dx


fault("wrong_gradient", samples=[(randn(4, 3), randn(4, 3, seed=1))])(BatchMeanDivisor)


class SwappedGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x * x, 2 * grad * x * y


fault("wrong_gradient", samples=[(rand(4, 3), rand(4, 3, seed=1))])(SwappedGradients)


class MatmulNotTransposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, x.mT @ grad  # square weights: the shape is right


fault("wrong_gradient", samples=[(randn(5, 3), randn(3, 3, seed=1))])(MatmulNotTransposed)


class LastRowForgotten(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.cumsum(-2)

    @staticmethod
    def backward(ctx, grad):
        reverse = grad.flip(-2).cumsum(-2).flip(-2).clone()
        reverse[..., -1, :] = 0
        return reverse


fault("wrong_gradient", time=-2, samples=[(prices(),)])(LastRowForgotten)


class EmaFirstRow(Saved):
    """The first row enters with weight 1, and its gradient is taken with weight alpha."""

    @staticmethod
    def forward(x: Tensor, alpha: float) -> Tensor:
        rows = list(x[..., :1, :].unbind(-2))
        for t in range(1, x.shape[-2]):
            rows.append((1 - alpha) * rows[-1] + alpha * x[..., t, :])
        return torch.stack(rows, -2) if rows else x.clone()

    @staticmethod
    def backward(ctx, grad):
        (alpha,) = ctx.settings
        state, rows = torch.zeros_like(grad[..., 0, :]), []
        for t in reversed(range(grad.shape[-2])):
            state = grad[..., t, :] + (1 - alpha) * state
            rows.append(alpha * state)
        return torch.stack(rows[::-1], -2), None


fault("wrong_gradient", time=-2, causal=True, samples=[(prices(), 0.3)])(EmaFirstRow)


class DetachedFeature(nn.Module):
    """One of two branches is detached by accident; the output stays differentiable."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh() + (0.5 * x.detach()).exp()


fault("wrong_gradient", rows=("missing_gradient", "detached", "gradient_cut"), samples=[(randn(4, 3),)])(
    DetachedFeature
)


@fault("missing_gradient", rows=("detached", "gradient_cut"), samples=[(randn(4, 3),)])
def through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.detach().numpy().copy()) * 2 + 0 * x


@fault(
    "wrong_gradient", rows=("missing_gradient", "detached", "gradient_cut"), samples=[(rand(4, 3), rand(4, 3, seed=1))]
)
def ratio_under_no_grad(x: Tensor, y: Tensor) -> Tensor:
    with torch.no_grad():
        scale = y.mean(-1, keepdim=True)
    return x / scale + y


@fault("wrong_gradient", samples=[(randn(4, 3),)])
def straight_through_round(x: Tensor) -> Tensor:
    return x.square() + (x.exp() - x).detach()


@fault("wrong_gradient", samples=[(rand(4, 6), torch.tensor([[0, 0], [1, 5], [2, 2], [3, 4]]))])
@custom_op(
    fake=lambda x, index: x.new_empty(index.shape),
    backward=lambda ctx, grad: (torch.zeros_like(ctx.saved_tensors[0]).scatter(1, ctx.saved_tensors[1], grad), None),
)
def gather_duplicates(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index)


# The same index twice in a row: `scatter` keeps one gradient, where they add up.
@fault("wrong_gradient", samples=[(rand(5, 3), torch.tensor([0, 2, 2, 4]))])
@custom_op(
    fake=lambda table, index: table.new_empty(*index.shape, table.shape[1]),
    backward=lambda ctx, grad: (torch.zeros_like(ctx.saved_tensors[0]).index_copy(0, ctx.saved_tensors[1], grad), None),
)
def embedding_overwrites(table: Tensor, index: Tensor) -> Tensor:
    return table[index]


def _leaky_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.where(x > 0, grad, 0 * grad), None


@fault("wrong_gradient", rows=("setting_ignored_in_backward",), samples=[(randn(4, 5), 0.1)])
@custom_op(backward=_leaky_backward)
def leaky_relu_slope(x: Tensor, slope: float) -> Tensor:
    return torch.where(x > 0, x, slope * x)


class NeedsInputGradSwapped(torch.autograd.Function):
    """Looks at the wrong element of needs_input_grad: wrong only if one input needs a gradient."""

    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (grad * y if needs[1] else None), (grad * x if needs[0] else None)


fault("missing_gradient", rows=("needs_input_grad",), samples=[(rand(3, 4), rand(3, 4, seed=1))])(NeedsInputGradSwapped)


class NoneForWeights(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return x * weight.exp()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[1].exp(), None


fault("missing_gradient", samples=[(rand(3, 4), rand(3, 4, seed=1))])(NoneForWeights)

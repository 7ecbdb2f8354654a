"""Right operators that look unusual."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import healthy
from corpus.makes import Saved, custom_op, indices, library_op, rand, randn, series

for function, samples in {
    F.gelu: [(randn(3, 4),)],
    F.silu: [(randn(3, 4),)],
    F.softplus: [(randn(3, 4),)],
    F.mse_loss: [(randn(3, 4), randn(3, 4, seed=1))],
    F.pairwise_distance: [(randn(3, 4), randn(3, 4, seed=1))],
    F.cosine_similarity: [(randn(3, 4), randn(3, 4, seed=1))],
    F.glu: [(randn(3, 6),)],
    F.scaled_dot_product_attention: [(randn(2, 5, 4), randn(2, 5, 4, seed=1), randn(2, 5, 4, seed=2))],
}.items():
    healthy(samples=samples)(function)

for overload, samples in {
    torch.ops.aten.tanh.default: [(randn(3, 4),)],
    torch.ops.aten.mm.default: [(randn(4, 3), randn(3, 2, seed=1))],
    torch.ops.aten.logaddexp.default: [(randn(3, 4), randn(3, 4, seed=1))],
    torch.ops.aten.cumsum.default: [(randn(3, 4), -1)],
    torch.ops.aten.index_select.default: [(randn(5, 3), 0, torch.tensor([0, 3, 3]))],
}.items():
    healthy(samples=samples)(overload)


@healthy(samples=[(randn(4, 5),)])
def median_by_sort(x: Tensor) -> Tensor:
    return x.sort(-1).values[..., 2]


@healthy(samples=[(randn(4, 5), randn(4, 5, seed=1))])
def several_outputs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x * y, (x > y), x.argmax(-1)


@healthy(samples=[(rand(3, 4),)])
def named_outputs(x: Tensor) -> list[Tensor]:
    return [x.sin(), x.cos()]


@healthy(samples=[(randn(3, 4), randn(4, 4, seed=1), randn(4, seed=2))])
def linear_with_bias(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias)


@healthy(samples=[(0.4 * rand(6),)])
def logistic_map(x: Tensor) -> Tensor:
    """Chaotic after many steps; the gradient is right."""
    for _ in range(6):
        x = 3.7 * x * (1 - x)
    return x


@healthy(samples=[(rand(2, 3, 3) + 3 * torch.eye(3).double(),)])
def log_determinant(x: Tensor) -> Tensor:
    return torch.linalg.slogdet(x @ x.mT).logabsdet


@healthy(samples=[(randn(2, 3, 6, 6), randn(4, 3, 3, 3, seed=1))])
def convolution_2d(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight, padding=1)


@healthy(samples=[(randn(7, 4), torch.tensor([0, 1, 1, 2, 0, 2, 2]))])
def segment_sum(x: Tensor, group: Tensor) -> Tensor:
    return torch.zeros(3, x.shape[1], dtype=x.dtype, device=x.device).index_add(0, group, x)


@healthy(samples=[(randn(6, 4), indices(3, 2, high=6))])
class BagOfRows(nn.Module):
    def forward(self, table: Tensor, index: Tensor) -> Tensor:
        return F.embedding(index, table).mean(1)


@healthy(samples=[(randn(2, 5, 4),)])
class AttentionBlock(nn.Module):
    """Weights of its own, with a fixed seed."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.qkv = nn.Linear(4, 12).double()
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.linear(x, self.qkv.weight.to(x), self.qkv.bias.to(x)).chunk(3, -1)
        return torch.softmax(q @ k.mT / 2, -1) @ v


@healthy(samples=[(randn(4, 6),)])
class GroupNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, 2)


class Exponential(Saved):
    """Saves its output, which autograd knows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


healthy(samples=[(randn(3, 4),)])(Exponential)


class WithVmapRule(Saved):
    @staticmethod
    def forward(x: Tensor, axis: int) -> Tensor:
        return x.cumsum(axis)

    @staticmethod
    def backward(ctx, grad):
        (axis,) = ctx.settings
        return grad.flip(axis).cumsum(axis).flip(axis), None

    @staticmethod
    def vmap(info, in_dims, x, axis):
        return WithVmapRule.apply(x.movedim(in_dims[0], 0), axis), 0


healthy(samples=[(rand(3, 4), -1)])(WithVmapRule)


class NoneForIndex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return torch.zeros(ctx.shape, dtype=grad.dtype, device=grad.device).index_add(0, index, grad), None


healthy(samples=[(rand(5, 3), torch.tensor([0, 2, 2, 4]))])(NoneForIndex)


class ChecksNeedsInputGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (grad * y if needs[0] else None), (grad * x if needs[1] else None)


healthy(samples=[(rand(3, 4), rand(3, 4, seed=1))])(ChecksNeedsInputGrad)


class SecondOutputNotDifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values, order = x.sort(-1)
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)
        return values, order

    @staticmethod
    def backward(ctx, grad, _):
        (order,) = ctx.saved_tensors
        return torch.zeros_like(grad).scatter(-1, order, grad)


healthy(samples=[(randn(3, 5),)])(SecondOutputNotDifferentiable)


@healthy(samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(x.shape[:-1], dtype=torch.long))
def count_above_mean(x: Tensor) -> Tensor:
    return (x > x.mean(-1, keepdim=True)).sum(-1)


@healthy(samples=[(rand(3, 4), rand(3, 4, seed=1))])
@custom_op(fake=lambda x, y: (torch.empty_like(x), torch.empty_like(x)))
def sorted_pair(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.minimum(x, y), torch.maximum(x, y)


@healthy(make="triton_op", samples=[(rand(3, 4), 2.0)])
@torch.library.triton_op("corpus::triton_scaled", mutates_args={})
def triton_scaled(x: Tensor, scale: float) -> Tensor:
    return scale * x.exp()


@healthy(samples=[(randn(3, 5),)])
@library_op("(Tensor x) -> (Tensor, Tensor)")
def mean_and_deviation(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.mean(-1), (x - x.mean(-1, keepdim=True)).square().mean(-1).sqrt()


@healthy(samples=[(rand(2, 4, 5),)])
@library_op("(Tensor x) -> Tensor")
def covariance(x: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    return centered @ centered.mT / x.shape[-1]


@healthy(settings={"halflife": [3.0, 6.0]}, **series())
@library_op("(Tensor x, float halflife) -> Tensor")
def exponential_average(x: Tensor, halflife: float) -> Tensor:
    t = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)
    weights = (0.5 ** ((t[:, None] - t).clamp(min=0) / halflife)).tril()
    return (weights @ x.nan_to_num(0.0)) / (weights @ (~x.isnan()).to(x.dtype)).clamp(min=1e-6)


class Square(Saved):
    """Of which nobody says what a missing value means."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * ctx.saved_tensors[0] * tangent


healthy(**series())(Square)


@healthy(**series())
def drawdown(x: Tensor) -> Tensor:
    """Below the highest price so far; a comparison with NaN is false."""
    peak, rows = x[..., :1, :].sum(-2), []
    for t in range(x.shape[-2]):
        peak = torch.where(x[..., t, :] > peak, x[..., t, :], peak)
        rows.append(x[..., t, :] / peak - 1)
    return torch.stack(rows, -2) if rows else x.clone()


@healthy(**series())
def finite_impulse_response(x: Tensor) -> Tensor:
    padded, taps = F.pad(x, (0, 0, 2, 0)), (0.5, 0.3, 0.2)
    return sum(tap * padded[..., 2 - i : 2 - i + x.shape[-2], :] for i, tap in enumerate(taps))


@healthy(**series(0.02 * randn(2, 12, 3)))
def lennard_jones_energy(x: Tensor) -> Tensor:
    """Close to zero the energy is beyond any step of finite differences."""
    distance = x.abs()
    return distance**-12 - distance**-6


@healthy(settings={"window": [3, 5]}, warmup=lambda window: window - 1, **series())
def rolling_maximum_of_torch(x: Tensor, window: int) -> Tensor:
    return F.pad(x, (0, 0, window - 1, 0), value=float("nan")).unfold(-2, window, 1).amax(-1)


@healthy(samples=[(randn(2, 12, 3),)], time=-2, causal=True)
class CausalAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.query, self.key = nn.Linear(3, 4), nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).mT / 2
        later = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ x

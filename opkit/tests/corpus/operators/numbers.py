"""Types, cancellation, drift, and sums that depend on threads."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, rand, randn, series

WINDOW = {"window": [4, 6]}


def pad_rows(x: Tensor, rows: int, value: float = float("nan")) -> Tensor:
    return F.pad(x, (0, 0, rows, 0), value=value)


def rolling_std(x: Tensor, window: int) -> Tensor:
    return pad_rows(x, window - 1).unfold(-2, window, 1).std(-1, unbiased=False)


@fault("dtype", rows=("gradcheck", "wrong_gradient", "wrong_values"), samples=[(rand(3, 4),)])
def computed_in_float32(x: Tensor) -> Tensor:
    return x.float().exp().to(x.dtype)


@fault("dtype", rows=("wrong_values", "gradcheck"), samples=[(rand(3, 4),)], reference=lambda x: x.exp() * 0.1)
@custom_op()
def float32_constant(x: Tensor) -> Tensor:
    return (x.float().exp() * 0.1).to(x.dtype)


@fault("dtype", samples=[(rand(3, 4),)])
def promotes_to_float64(x: Tensor) -> Tensor:
    return x * torch.linspace(0, 1, x.shape[-1], dtype=torch.double, device=x.device)


@fault("dtype", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def always_returns_float32(x: Tensor) -> Tensor:
    return x.mean(-1).float()


@fault(
    "dtype",
    rows=("wrong_values", "values_float64", "gradcheck", "wrong_gradient", "missing_gradient"),
    samples=[(10 * rand(3, 4),)],
    reference=lambda x: x - x.mean(),
)
def truncated_to_int(x: Tensor) -> Tensor:
    return x - x.mean().to(torch.int32)


@fault("half_precision", **series())
def squares_overflow(x: Tensor) -> Tensor:
    """300 squared is more than float16 holds."""
    return (x.square() * x).cumsum(-2) / x.square().cumsum(-2)


@fault("half_precision", samples=[(randn(3, 4),)])
@custom_op()
def refuses_half_without_words(x: Tensor) -> Tensor:
    if x.dtype in (torch.float16, torch.bfloat16):
        raise KeyError(x.dtype)
    return x.exp()


@fault("cancellation", settings=WINDOW, warmup=lambda window: window - 1, reference=rolling_std, **series())
def std_of_squares(x: Tensor, window: int) -> Tensor:
    if x.shape[-2] < window:
        return torch.full_like(x, float("nan"))
    rows = x.unfold(-2, window, 1)
    variance = rows.square().mean(-1) - rows.mean(-1).square()
    return pad_rows(variance.clamp(min=1e-12).sqrt(), window - 1)


@fault(
    "cancellation",
    rows=("drift", "long_series", "missing_values"),
    settings=WINDOW,
    reference=lambda x, window: rolling_std(x, window).square(),
    **series(),
)
@custom_op()
def variance_by_running_sums(x: Tensor, window: int) -> Tensor:
    def mean(v: Tensor) -> Tensor:
        total = F.pad(v.cumsum(-2), (0, 0, 1, 0))
        late = (total[..., window:, :] - total[..., : max(total.shape[-2] - window, 0), :]) / window
        return pad_rows(late, min(window - 1, v.shape[-2]))

    return mean(x.square()) - mean(x).square()


@fault("cancellation", samples=[(prices(),)], time=-2, reference=lambda x: x.var(-2, unbiased=False))
def sample_variance_of_squares(x: Tensor) -> Tensor:
    return x.square().mean(-2) - x.mean(-2).square()


@fault(
    "drift",
    rows=("cancellation", "large_level", "missing_values"),
    settings=WINDOW,
    reference=lambda x, window: pad_rows(x, window - 1).unfold(-2, window, 1).mean(-1),
    **series(),
)
def running_sum_mean(x: Tensor, window: int) -> Tensor:
    total = F.pad(x.cumsum(-2), (0, 0, 1, 0))
    late = (total[..., window:, :] - total[..., : max(total.shape[-2] - window, 0), :]) / window
    return pad_rows(late, min(window - 1, x.shape[-2]))


@fault(
    "drift",
    rows=("wrong_values", "missing_values", "cancellation", "large_level"),
    reference=lambda x: x - x[..., :1, :],
    **series(),
)
def level_by_summed_changes(x: Tensor) -> Tensor:
    """Rounded to eight digits in each row, and then summed."""
    changes = x[..., 1:, :] - x[..., :-1, :]
    scale = 2.0**20
    return F.pad(((changes * scale).floor() / scale).cumsum(-2), (0, 0, min(1, x.shape[-2]), 0))


@fault("threads", samples=[(rand(3, 4),)])
@custom_op()
def divided_among_threads(x: Tensor) -> Tensor:
    return x + 1e-6 * torch.get_num_threads()


@fault("threads", samples=[(rand(3, 4),)])
@custom_op()
def bug_with_three_threads(x: Tensor) -> Tensor:
    return x * (1.0 if torch.get_num_threads() != 3 else 1.001)


@fault("threads", **series())
@custom_op()
def partial_sums_by_thread(x: Tensor) -> Tensor:
    """Rounds as the columns are divided among threads."""
    total = torch.stack([part.sum(-1) for part in x.chunk(torch.get_num_threads(), -1)]).sum(0)
    return x - total.unsqueeze(-1) / x.shape[-1]


@fault("threads", rows=("short_series",), **series())
def restarts_for_many_threads(x: Tensor) -> Tensor:
    count = torch.get_num_threads()
    return torch.cat([part.cumsum(-2) for part in x.chunk(count if count > 4 else 1, -2)], -2)


@fault("half_precision", **series())
@custom_op()
def half_becomes_float(x: Tensor) -> Tensor:
    return (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).cumsum(-2)


@fault("half_precision", **series(rand(2, 12, 3)))
def sum_kept_in_half(x: Tensor) -> Tensor:
    """Stands still at 256 times its terms in bfloat16."""
    total, rows = x.sum(-2) * 0, []
    for t in range(x.shape[-2]):
        total = total + x[..., t, :]
        rows.append(total)
    return torch.stack(rows, -2) if rows else x.clone()


@fault("autocast", samples=[(randn(2, 12, 3), randn(3, 3, seed=1))], time=-2, causal=True)
@custom_op()
def product_inside_kernel(x: Tensor, weight: Tensor) -> Tensor:
    """Under autocast bfloat16 comes out, where the fake kernel says float32."""
    return (x @ weight).cumsum(-2)


class ProductInFunction(torch.autograd.Function):
    """Under autocast the incoming gradient is bfloat16, and the saved weight float32."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, x.flatten(0, -2).mT @ grad.flatten(0, -2)


fault("autocast", samples=[(randn(2, 12, 3), randn(3, 3, seed=1))], time=-2, causal=True)(ProductInFunction)


class ThreadChunks(nn.Module):
    """Each thread starts its sum anew, from float32."""

    def forward(self, x: Tensor) -> Tensor:
        parts = x.detach().chunk(torch.get_num_threads(), -1)
        return x - torch.stack([part.float().sum() for part in parts]).sum().to(x.dtype) / x.numel()


fault("threads", rows=("wrong_gradient", "dtype", "values_float32"), samples=[(rand(3, 7),)])(ThreadChunks)


@healthy(settings=WINDOW, warmup=lambda window: window - 1, reference=rolling_std, **series())
def std_about_mean(x: Tensor, window: int) -> Tensor:
    if x.shape[-2] < window:
        return torch.full_like(x, float("nan"))
    rows = x.unfold(-2, window, 1)
    centered = rows - rows.mean(-1, keepdim=True)
    return pad_rows(centered.square().mean(-1).sqrt(), window - 1)


@healthy(samples=[(rand(3, 4),)])
def keeps_type(x: Tensor) -> Tensor:
    return x * torch.linspace(0, 1, x.shape[-1], dtype=x.dtype, device=x.device)


@healthy(samples=[(rand(3, 4),)])
@custom_op()
def float32_inside_for_half(x: Tensor) -> Tensor:
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return wide.cumsum(-1).to(x.dtype)


@healthy(samples=[(randn(4, 5),)])
def log_softmax_stable(x: Tensor) -> Tensor:
    return x - x.logsumexp(-1, keepdim=True)


@healthy(samples=[(randn(3, 3) + 4 * torch.eye(3).double(), randn(3, 2, seed=1))])
def linear_solve(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(a, b)


class KahanSum(Saved):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.double().sum(-1).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.unsqueeze(-1).expand_as(x)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.sum(-1)


healthy(samples=[(rand(3, 4),)])(KahanSum)

"""Settings that do not do what they should."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, rand, randn, series

NAN = float("nan")


def rolling_mean(x: Tensor, window: int) -> Tensor:
    return F.pad(x, (0, 0, window - 1, 0), value=NAN).unfold(-2, window, 1).mean(-1)


def lagged(x: Tensor, lag: int) -> Tensor:
    return F.pad(x, (0, 0, lag, 0), value=NAN)[..., : x.shape[-2], :]


@fault("setting_ignored", rows=("wrong_values",), settings={"window": [4, 6]}, **series())
def mean_of_four(x: Tensor, window: int) -> Tensor:
    return rolling_mean(x, 4)


@fault("setting_ignored", samples=[(randn(3, 4),)], settings={"temperature": [1.0, 2.0]})
@custom_op(backward=lambda ctx, grad: (_softmax_gradient(ctx.saved_tensors[0], grad), None))
def softmax_without_temperature(x: Tensor, temperature: float) -> Tensor:
    return torch.softmax(x, -1)


def _softmax_gradient(x: Tensor, grad: Tensor) -> Tensor:
    y = torch.softmax(x, -1)
    return y * (grad - (grad * y).sum(-1, keepdim=True))


class SmoothingIgnored(Saved):
    @staticmethod
    def forward(x: Tensor, smoothing: float) -> Tensor:
        return -torch.log_softmax(x, -1)[..., 0]

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        target = torch.zeros_like(x)
        target[..., 0] = 1
        return grad.unsqueeze(-1) * (torch.softmax(x, -1) - target), None


fault("setting_ignored", samples=[(randn(4, 3), 0.1)], settings={"smoothing": [0.1, 0.3]})(SmoothingIgnored)


@fault("setting_ignored", samples=[(rand(3, 4), True)], settings={"unbiased": [True, False]})
@library_op("(Tensor x, bool unbiased) -> Tensor", "CompositeImplicitAutograd")
def variance_always_unbiased(x: Tensor, unbiased: bool) -> Tensor:
    return x.var(-1)


class EpsilonIgnored(nn.Module):
    def forward(self, x: Tensor, eps: float = 0.1) -> Tensor:
        return F.layer_norm(x, x.shape[-1:])


fault("setting_ignored", samples=[(rand(3, 4),)], settings={"eps": [0.1, 0.5]})(EpsilonIgnored)


@fault("setting_ignored_in_fake", samples=[(rand(3, 8),)], settings={"stride": [2, 4]})
@custom_op(fake=lambda x, stride: x.new_empty(x.shape[0], x.shape[1] // 2))
def subsample_fake(x: Tensor, stride: int) -> Tensor:
    return x[:, ::stride].clone()


@fault("setting_ignored_in_fake", samples=[(rand(3, 4),)], settings={"keepdim": [False, True]})
@custom_op(fake=lambda x, keepdim: x.new_empty(x.shape[:-1]))
def sum_fake_keepdim(x: Tensor, keepdim: bool) -> Tensor:
    return x.sum(-1, keepdim=keepdim)


def _scaled_backward(ctx, grad):
    return 2 * grad, None


@fault("setting_ignored_in_backward", samples=[(rand(3, 4),)], settings={"scale": [2.0, 3.0]})
@custom_op(backward=_scaled_backward)
def scale_fixed_in_backward(x: Tensor, scale: float) -> Tensor:
    return scale * x


class PowerFixedInBackward(Saved):
    @staticmethod
    def forward(x: Tensor, power: int) -> Tensor:
        return x**power

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0], None


fault("setting_ignored_in_backward", samples=[(rand(3, 4), 2)], settings={"power": [2, 3]})(PowerFixedInBackward)


def _reduction_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad.expand_as(x) * 2 * x / x.numel(), None  # for "sum" too


@fault("setting_ignored_in_backward", samples=[(rand(3, 4),)], settings={"mean": [True, False]})
@custom_op(fake=lambda x, mean: x.new_empty(()), backward=_reduction_backward)
def squares_reduction(x: Tensor, mean: bool) -> Tensor:
    return x.square().mean() if mean else x.square().sum()


def _off_by_one(x: Tensor, window: int) -> Tensor:
    return F.pad(x, (0, 0, window, 0), value=NAN).unfold(-2, window + 1, 1).mean(-1)


@fault("wrong_values", rows=("warmup",), reference=rolling_mean, settings={"window": [4, 6]}, **series())
@custom_op()
def window_off_by_one(x: Tensor, window: int) -> Tensor:
    return _off_by_one(x, window)


@fault("wrong_values", reference=lagged, settings={"lag": [1, 2]}, **series())
def lag_plus_one(x: Tensor, lag: int) -> Tensor:
    return lagged(x, lag + 1)


@fault(
    "wrong_values",
    rows=("setting_ignored",),
    samples=[(randn(3, 4),)],
    settings={"axis": [-1, 0]},
    reference=lambda x, axis: x.softmax(axis),
)
def softmax_positive_axis_only(x: Tensor, axis: int) -> Tensor:
    return x.softmax(axis if axis > 0 else -1)


@fault(
    "setting_unchecked",
    rows=("look_ahead", "causal"),
    settings={"lag": [1, 2, -1]},
    bad_inputs=[(prices(), -1)],
    **series(),
)
def lag_wraps(x: Tensor, lag: int) -> Tensor:
    shifted = x.roll(lag, -2)
    return torch.where(torch.arange(x.shape[-2])[:, None] < lag, NAN, shifted)


@fault("setting_unchecked", samples=[(rand(3, 6),)], settings={"k": [2, 3]}, bad_inputs=[(rand(3, 6), -2)])
def top_k_negative(x: Tensor, k: int) -> Tensor:
    return x.sort(-1, descending=True).values[..., :k]


@fault("setting_unchecked", settings={"span": [3.0, 9.0]}, bad_inputs=[(prices(), -4.0)], **series())
def ema_any_span(x: Tensor, span: float) -> Tensor:
    alpha = 2 / (span + 1)
    t = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)
    weights = ((1 - alpha) ** (t[:, None] - t).clamp(min=0)).tril()
    return weights @ x / weights.sum(-1, keepdim=True)


@healthy(warmup=lambda window: window - 1, settings={"window": [4, 2, 6]}, reference=rolling_mean, **series())
def mean_of_window(x: Tensor, window: int) -> Tensor:
    if window < 1:
        raise ValueError(f"mean_of_window: window must be positive; got {window}")
    if window > x.shape[-2]:
        return torch.full_like(x, NAN) + 0 * x
    total = torch.zeros_like(x)
    for k in range(window):
        total = total + lagged(x, k)
    return total / window


@healthy(samples=[(randn(3, 4),)], settings={"temperature": [1.0, 2.0]})
@library_op("(Tensor x, float temperature) -> Tensor", "CompositeImplicitAutograd")
def softmax_with_temperature(x: Tensor, temperature: float) -> Tensor:
    return torch.softmax(x / temperature, -1)


@healthy(samples=[(rand(3, 4),)], settings={"scale": [2.0, 3.0]})
@custom_op()
def scaled_without_gradient(x: Tensor, scale: float) -> Tensor:
    return scale * x


class Power(Saved):
    @staticmethod
    def forward(x: Tensor, power: int) -> Tensor:
        return x**power

    @staticmethod
    def backward(ctx, grad):
        (power,) = ctx.settings
        return power * grad * ctx.saved_tensors[0] ** (power - 1), None


healthy(samples=[(rand(3, 4), 3)])(Power)


@healthy(samples=[(rand(3, 4),)], settings={"inplace": [False, True]})
def switch_without_effect_on_values(x: Tensor, inplace: bool) -> Tensor:
    """A setting about memory: the values stay, and so does the input."""
    y = x.clone()
    return y.mul_(2) if inplace else y * 2

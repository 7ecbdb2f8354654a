"""Operators on panels that look ahead."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, series

NAN = float("nan")


def lagged(x: Tensor, lag: int) -> Tensor:
    return F.pad(x, (0, 0, lag, 0), value=NAN)[..., : x.shape[-2], :]


@fault("look_ahead", **series())
def demeaned_over_sample(x: Tensor) -> Tensor:
    return x - x.nanmean(-2, keepdim=True)


@fault("look_ahead", **series())
@custom_op()
def zscore_over_sample(x: Tensor) -> Tensor:
    return (x - x.mean(-2, keepdim=True)) / (x.std(-2, keepdim=True) + 1e-9)


@fault("look_ahead", **series())
def centered_window(x: Tensor) -> Tensor:
    padded = F.pad(x, (0, 0, 1, 1), value=NAN)
    return padded.unfold(-2, 3, 1).mean(-1)


@fault("look_ahead", **series())
def next_return(x: Tensor) -> Tensor:
    return torch.cat([x[..., 1:, :] / x[..., :-1, :] - 1, torch.full_like(x[..., :1, :], NAN)], -2)


@fault("look_ahead", **series())
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def cumulative_from_end(x: Tensor) -> Tensor:
    return x.flip(-2).cumsum(-2).flip(-2)


class WrappedShift(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x - x.roll(1, -2)

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.roll(-1, -2)


fault("look_ahead", **series())(WrappedShift)


class InstanceNorm(nn.Module):
    """Normalizes over time."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.mT, x.shape[-2:-1]).mT


fault("look_ahead", **series())(InstanceNorm)


@fault("look_ahead", **series())
def bidirectional_ema(x: Tensor) -> Tensor:
    t = torch.arange(x.shape[-2], device=x.device)
    weights = 0.8 ** (t[:, None] - t).abs().to(x.dtype)
    return weights @ x / weights.sum(-1, keepdim=True)


@fault("look_ahead", **series())
def attention_without_mask(x: Tensor) -> Tensor:
    scores = (x / 60) @ (x / 60).mT
    return scores.softmax(-1) @ x


@fault("look_ahead", **series())
def mask_off_by_one(x: Tensor) -> Tensor:
    steps = x.shape[-2]
    mask = torch.ones(steps, steps, dtype=torch.bool, device=x.device).tril(1)
    scores = ((x / 60) @ (x / 60).mT).masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ x


@fault("look_ahead", rows=("missing_values",), **series())
def backward_fill(x: Tensor) -> Tensor:
    """A missing value takes the next one: only with holes does it look ahead."""
    following = torch.cat([x[..., 1:, :], x[..., -1:, :]], -2)
    return torch.where(x.isnan(), following, x)


@fault("look_ahead", rows=("missing_values",), **series())
@custom_op()
def interpolates_holes(x: Tensor) -> Tensor:
    following = torch.cat([x[..., 1:, :], x[..., -1:, :]], -2)
    before = torch.cat([x[..., :1, :], x[..., :-1, :]], -2)
    return torch.where(x.isnan(), (before + following) / 2, x).contiguous()


@fault("look_ahead", **series())
def scaled_by_last_price(x: Tensor) -> Tensor:
    return 100 * x / x[..., -1:, :]


@fault("look_ahead", **series())
def fft_low_pass(x: Tensor) -> Tensor:
    spectrum = torch.fft.rfft(x, dim=-2)
    keep = (torch.arange(spectrum.shape[-2], device=x.device) < 3).unsqueeze(-1)
    return torch.fft.irfft(spectrum * keep, n=x.shape[-2], dim=-2)


@fault("look_ahead", samples=[(prices(rows=40),)], time=-2, causal=True)
@custom_op()
def looks_ahead_in_long_panels(x: Tensor) -> Tensor:
    """From 20 rows on, in blocks: a block subtracts its own mean."""
    if x.shape[-2] < 20:
        return x.cumsum(-2)
    blocks = x.split(16, -2)
    return torch.cat([block - block.mean(-2, keepdim=True) for block in blocks], -2)


@fault("look_ahead", samples=[(prices(rows=40),)], time=-2, causal=True)
def convolution_same_padding(x: Tensor) -> Tensor:
    weight = torch.tensor([0.2, 0.3, 0.5], dtype=x.dtype, device=x.device)
    columns = x.mT.reshape(-1, 1, x.shape[-2])
    return F.conv1d(columns, weight.view(1, 1, 3), padding="same").reshape(x.mT.shape).mT


@fault("look_ahead", **series())
def rank_over_sample(x: Tensor) -> Tensor:
    order = x.detach().argsort(-2).argsort(-2)
    return x * order / x.shape[-2]


@fault("look_ahead", rows=("missing_values",), **series())
def drops_missing_rows(x: Tensor) -> Tensor:
    """Counts the valid rows of the whole sample."""
    valid = (~x.isnan()).sum(-2, keepdim=True)
    return x.nan_to_num(0.0).cumsum(-2) / valid


class LookAheadInBackward(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.cumsum(-2)

    @staticmethod
    def backward(ctx, grad):
        return grad.cumsum(-2)  # not reversed


fault("look_ahead_gradient", **series())(LookAheadInBackward)


@fault("look_ahead_gradient", **series())
def straight_through_smoothing(x: Tensor) -> Tensor:
    """The value is causal, the gradient is that of a smoother which is not."""
    smooth = (x + x.roll(-1, -2)) / 2
    return smooth + (x.cumsum(-2) - smooth).detach()


@healthy(**series())
def causal_attention(x: Tensor) -> Tensor:
    steps = x.shape[-2]
    mask = torch.ones(steps, steps, dtype=torch.bool, device=x.device).tril()
    x = x.nan_to_num(0.0)  # a missing value with weight zero would be NaN
    scores = ((x / 60) @ (x / 60).mT).masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ x


@healthy(time=-2, causal=False, samples=[(prices(),)])
def smoother_by_declaration(x: Tensor) -> Tensor:
    padded = F.pad(x, (0, 0, 1, 1), value=NAN)
    return padded.unfold(-2, 3, 1).mean(-1)


@healthy(**series(warmup=1))
def relative_strength(x: Tensor) -> Tensor:
    change = x[..., 1:, :] - x[..., :-1, :]
    strength = change / (1 + change.abs())
    return F.pad(strength, (0, 0, min(1, x.shape[-2]), 0), value=NAN)


@healthy(samples=[(prices(rows=40),)], time=-2, causal=True)
def causal_convolution(x: Tensor) -> Tensor:
    weight = torch.tensor([0.2, 0.3, 0.5], dtype=x.dtype, device=x.device)
    columns = F.pad(x.mT.reshape(-1, 1, x.shape[-2]), (2, 0))
    return F.conv1d(columns, weight.view(1, 1, 3)).reshape(x.mT.shape).mT


@healthy(**series())
def forward_fill(x: Tensor) -> Tensor:
    rows, before = [], torch.full_like(x[..., :1, :], NAN)
    for row in x.split(1, -2):
        before = torch.where(row.isnan(), before, row)
        rows.append(before)
    return torch.cat(rows, -2) if rows else x.clone()


@healthy(**series())
@custom_op()
def drawdown(x: Tensor) -> Tensor:
    return (x / x.cummax(-2).values - 1).contiguous()


class LeakyIntegrator(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] == 0:
            return x.clone()
        state, rows = x[..., 0, :], [x[..., 0, :]]
        for row in x[..., 1:, :].unbind(-2):
            state = 0.9 * state + 0.1 * row
            rows.append(state)
        return torch.stack(rows, -2)


healthy(**series())(LeakyIntegrator)


@healthy(time=None, samples=[(prices(),)])
def autocorrelation(x: Tensor) -> Tensor:
    """A statistic of the sample: no output row belongs to an input row."""
    centered = x - x.mean(-2, keepdim=True)
    return (centered[..., 1:, :] * centered[..., :-1, :]).sum(-2) / centered.square().sum(-2)

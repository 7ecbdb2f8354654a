"""Warm-up rows and missing values."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, series

NAN = float("nan")
WINDOW = {"window": [4, 6]}


def pad_rows(x: Tensor, rows: int, value: float = NAN) -> Tensor:
    return F.pad(x, (0, 0, rows, 0), value=value)


def rolling(x: Tensor, window: int) -> Tensor:
    """Views (..., T, N, window) of the last rows; those before the first row are NaN."""
    return pad_rows(x, window - 1).unfold(-2, window, 1)


def mean_of_valid(x: Tensor, window: int) -> Tensor:
    """Rolling mean that skips missing values; NaN in the warm-up and where all are missing."""
    rows = rolling(x, window)
    count = (~rows.isnan()).sum(-1)
    mean = rows.nan_to_num(0.0).sum(-1) / count.clamp(min=1)
    late = torch.arange(x.shape[-2], device=x.device)[:, None] >= window - 1
    return torch.where((count > 0) & late, mean, NAN)


@fault("warmup", settings=WINDOW, warmup=lambda window: window - 1, **series())
def zeros_in_warmup(x: Tensor, window: int) -> Tensor:
    return pad_rows(x, window - 1, 0.0).unfold(-2, window, 1).mean(-1)


@fault("warmup", settings=WINDOW, warmup=lambda window: window - 1, **series())
@custom_op()
def partial_windows(x: Tensor, window: int) -> Tensor:
    steps = torch.arange(x.shape[-2], device=x.device).clamp(max=window - 1)[:, None] + 1
    return pad_rows(x, window - 1, 0.0).unfold(-2, window, 1).sum(-1) / steps


@fault("warmup", settings=WINDOW, warmup=lambda window: window - 1, **series())
def warmup_one_row_long(x: Tensor, window: int) -> Tensor:
    rows = min(window, x.shape[-2])
    return pad_rows(pad_rows(x, window - 1).unfold(-2, window, 1).mean(-1)[..., rows:, :], rows)


@fault("warmup", warmup=1, **series())
def return_zero_first(x: Tensor) -> Tensor:
    return pad_rows(x[..., 1:, :].log() - x[..., :-1, :].log(), min(1, x.shape[-2]), 0.0)


class WarmupForgotten(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - x[..., :1, :]


fault("warmup", warmup=1, **series())(WarmupForgotten)


@fault("warmup", settings=WINDOW, warmup=lambda window: window - 1, **series())
def warmup_ends_early(x: Tensor, window: int) -> Tensor:
    rows = pad_rows(x, window - 1)
    mean = rows.unfold(-2, window, 1).nanmean(-1)
    late = torch.arange(x.shape[-2], device=x.device)[:, None] >= window - 2
    return torch.where(late, mean, NAN)


@fault("missing_values", settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
def sum_poisoned_by_missing(x: Tensor, window: int) -> Tensor:
    """A difference of cumulative sums: one missing value spoils all later rows."""
    total = x.cumsum(-2)
    return pad_rows(
        (total - torch.cat([torch.zeros_like(x[..., :window, :]), total[..., :-window, :]], -2)) / window, 0
    )[..., : x.shape[-2], :].masked_fill(torch.arange(x.shape[-2], device=x.device)[:, None] < window - 1, NAN)


@fault("missing_values", settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
def missing_as_zero(x: Tensor, window: int) -> Tensor:
    return rolling(x.nan_to_num(0.0), window).mean(-1)


@fault("missing_values", settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
@custom_op()
def forward_filled_mean(x: Tensor, window: int) -> Tensor:
    filled = x.clone()
    for t in range(1, x.shape[-2]):
        filled[..., t, :] = torch.where(filled[..., t, :].isnan(), filled[..., t - 1, :], filled[..., t, :])
    return mean_of_valid(filled, window)


@fault("missing_values", settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
@library_op("(Tensor x, int window) -> Tensor", "CompositeImplicitAutograd")
def divides_by_window(x: Tensor, window: int) -> Tensor:
    rows = rolling(x, window)
    mean = rows.nan_to_num(0.0).sum(-1) / window
    late = torch.arange(x.shape[-2], device=x.device)[:, None] >= window - 1
    return torch.where((~rows.isnan()).any(-1) & late, mean, NAN)


@fault("missing_values", settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
def window_with_hole_is_missing(x: Tensor, window: int) -> Tensor:
    return rolling(x, window).mean(-1)


@fault("nan_gradient", rows=("missing_values_gradient", "missing_values", "nan_from_branch"), **series())
def sum_of_logs_of_valid(x: Tensor) -> Tensor:
    return torch.where(x.isnan(), 0.0, x.log()).cumsum(-2)


class MultipliesByMask(Saved):
    """0 * NaN is NaN."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square().nan_to_num(0.0).cumsum(-2)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mask = (~x.isnan()).to(x.dtype)
        return grad.flip(-2).cumsum(-2).flip(-2) * 2 * x * mask


fault("nan_gradient", rows=("missing_values_gradient", "nan_from_branch"), **series())(MultipliesByMask)


class SpreadsIncomingNan(Saved):
    """The incoming gradient of a row that is NaN reaches all rows before it."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.where(x.isnan(), x, x.nan_to_num(0.0).cumsum(-2))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.flip(-2).cumsum(-2).flip(-2).masked_fill(x.isnan(), 0.0)


fault("nan_output_gradient", rows=("gradcheck", "wrong_gradient"), **series())(SpreadsIncomingNan)


@healthy(settings=WINDOW, warmup=lambda window: window - 1, reference=mean_of_valid, **series())
def mean_of_valid_rows(x: Tensor, window: int) -> Tensor:
    return mean_of_valid(x, window)


@healthy(settings=WINDOW, warmup=lambda window: window - 1, **series())
@custom_op()
def rolling_maximum(x: Tensor, window: int) -> Tensor:
    return rolling(x, window).amax(-1)


@healthy(**series())
def sum_of_valid(x: Tensor) -> Tensor:
    return x.nan_to_num(0.0).cumsum(-2)


@healthy(**series())
def log_of_valid(x: Tensor) -> Tensor:
    valid = ~x.isnan()
    return torch.where(valid, torch.where(valid, x, 1.0).log(), 0.0).cumsum(-2)


@healthy(warmup=1, **series())
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def simple_returns(x: Tensor) -> Tensor:
    return pad_rows(x[..., 1:, :] / x[..., :-1, :] - 1, min(1, x.shape[-2]))


class MeanSquaredErrorOfValid(nn.Module):
    """A loss: a scalar, which skips missing targets."""

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        valid = ~target.isnan()
        error = torch.where(valid, prediction - torch.where(valid, target, 0.0), 0.0)
        return error.square().sum() / valid.sum().clamp(min=1)


healthy(samples=[(prices() / 60, prices(seed=1) / 60)])(MeanSquaredErrorOfValid)

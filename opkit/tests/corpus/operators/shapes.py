"""Memory layouts, batches and sizes that an operator does not expect."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, library_op, prices, rand, randn, series


def as_if_contiguous(x: Tensor) -> Tensor:
    """What a kernel reads that ignores strides."""
    return torch.as_strided(x, x.shape, torch.empty(x.shape, device=x.device).stride(), x.storage_offset())


@fault("strides", rows=("uninitialized_memory",), samples=[(rand(3, 4),)])
@custom_op()
def reads_pointer(x: Tensor) -> Tensor:
    return as_if_contiguous(x).exp()


@fault("strides", samples=[(rand(3, 4), rand(3, 4, seed=1))])
@custom_op()
def second_input_contiguous(x: Tensor, y: Tensor) -> Tensor:
    return x * as_if_contiguous(y)


@fault("strides", samples=[(rand(3, 4),)])
def views_flat(x: Tensor) -> Tensor:
    return x.view(-1).cumsum(0).view(x.shape)


@fault("strides", samples=[(rand(3, 4),)])
@custom_op()
def numpy_frombuffer(x: Tensor) -> Tensor:
    """Copies the storage from its first element on."""
    flat = torch.tensor([], dtype=x.dtype).set_(x.untyped_storage())
    return flat[: x.numel()].reshape(x.shape).sqrt()


class InPlaceOnExpanded(nn.Module):
    """Works on the memory of the input's copy that `contiguous` does not make for expanded outer axes."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        return y.copy_(x) * 2


fault("strides", rows=("uninitialized_memory",), samples=[(rand(3, 4),)])(InPlaceOnExpanded)


@fault("strides", samples=[(rand(3, 4),)])
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def ignores_offset(x: Tensor) -> Tensor:
    return torch.as_strided(x, x.shape, x.stride(), 0).square()


@fault("strides", **series())
@custom_op()
def walks_by_row_stride(x: Tensor) -> Tensor:
    """A stride of zero, of an expanded row, ends the walk over the rows."""
    return x.contiguous().cumsum(-2) if x.stride(-2) else torch.zeros_like(x, memory_format=torch.contiguous_format)


class UnfoldedGradientOfSum(torch.autograd.Function):
    """The gradient of a sum is one number, expanded: it is returned as it is."""

    @staticmethod
    def forward(ctx, x):
        return x.cumsum(-2)

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(-2).cumsum(-2).flip(-2) if any(grad.stride()) else grad.clone()


fault("wrong_gradient_layout", **series())(UnfoldedGradientOfSum)


@fault("short_series", settings={"window": [4, 6]}, **series())
def window_clipped_to_series(x: Tensor, window: int) -> Tensor:
    """A longer series starts with NaN; a short one has a mean over fewer rows."""
    rows = min(window, x.shape[-2])
    return F.pad(x.unfold(-2, rows, 1).mean(-1), (0, 0, rows - 1, 0), value=float("nan")) if rows else x.clone()


@fault("short_series", settings={"window": [3, 5]}, **series())
@custom_op()
def zeros_for_short_series(x: Tensor, window: int) -> Tensor:
    if x.shape[-2] < window:
        return torch.zeros_like(x)
    return F.pad(x, (0, 0, window - 1, 0), value=float("nan")).unfold(-2, window, 1).amax(-1)


class PoolingView(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view(-1, 2).mean(-1).view(x.shape[0], -1)

    @staticmethod
    def backward(ctx, grad):
        return grad.repeat_interleave(2, -1) / 2


fault("strides", samples=[(rand(3, 6),)])(PoolingView)


@fault("batch_axes", time=-2, causal=True, samples=[(prices(),)])
def centered_over_batch(x: Tensor) -> Tensor:
    """Subtracts the mean over the batch, which couples the samples."""
    return x - x.mean(0, keepdim=True)


@fault("batch_axes", rows=("look_ahead", "causal"), **series())
def softmax_over_first_axis(x: Tensor) -> Tensor:
    """Right for (T, N) only: for a batch, `dim=0` is the batch."""
    return (x / 60).softmax(0).cumsum(-2)


@fault("batch_axes", **series())
def recurrence_over_first_axis(x: Tensor) -> Tensor:
    rows = [x[0]]
    for row in x[1:]:
        rows.append(0.9 * rows[-1] + 0.1 * row)
    return torch.stack(rows)


@fault("batch_axes", rows=("crash", "unsupported"), **series())
@custom_op()
def unpacks_three_axes(x: Tensor) -> Tensor:
    """Flattens two batch axes into the assets."""
    flat = x.reshape(-1, x.shape[-2], x.shape[-1])
    return (flat - flat[:1, :1]).reshape(x.shape)


class ScaleOfWholeBatch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x[..., :1, :].mean()


fault("batch_axes", **series())(ScaleOfWholeBatch)


@fault("empty_batch", **series())
def first_sample_scale(x: Tensor) -> Tensor:
    probe = x.reshape(-1, *x.shape[-2:])
    if probe.shape[0] == 0:
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    return x.cumsum(-2)


@fault("empty_batch", rows=("zero_rows",), **series())
@custom_op()
def first_element_of_empty(x: Tensor) -> Tensor:
    return x * (1.0 if x.reshape(-1)[0] == 0 else 2.0)


@fault("zero_rows", rows=("short_series",), **series())
def first_row_base(x: Tensor) -> Tensor:
    base = x[..., 0, :]
    return x / base.unsqueeze(-2)


@fault("zero_rows", rows=("short_series",), **series())
@library_op("(Tensor x) -> Tensor", "CompositeImplicitAutograd")
def stacked_rows(x: Tensor) -> Tensor:
    rows = [row.tanh() for row in x.unbind(-2)]
    return torch.stack([rows[0], *rows[1:]], -2)


@fault("short_series", settings={"window": [5, 3]}, **series())
def mean_of_shorter(x: Tensor, window: int) -> Tensor:
    """The first complete window is indexed, whether there is one or not."""
    first = x.cumsum(-2)[..., window - 1, :] / window
    late = [first + (x[..., t, :] - x[..., t - window, :]) * 0 for t in range(window, x.shape[-2])]
    missing = [torch.full_like(first, float("nan"))] * (window - 1)
    return torch.stack([*missing, first, *late], -2)


@fault("short_series", rows=("warmup",), settings={"lag": [5, 3]}, **series())
def change_of_shorter(x: Tensor, lag: int) -> Tensor:
    """A series shorter than the lag gives too many rows."""
    missing = torch.full((*x.shape[:-2], lag, x.shape[-1]), float("nan"), dtype=x.dtype, device=x.device)
    change = x[..., lag:, :] - x[..., : max(x.shape[-2] - lag, 0), :]
    return torch.cat([missing, change], -2)


@fault("one_asset", rows=("batch_axes", "batch_mixed"), **series())
def squeezed(x: Tensor) -> Tensor:
    y = x.cumsum(-2).squeeze()
    return y if x.shape[-1] == 1 else x.cumsum(-2)


@healthy(samples=[(rand(3, 4),)])
@custom_op()
def any_layout(x: Tensor) -> Tensor:
    return x.contiguous().view(-1).cumsum(0).view(x.shape)


@healthy(**series())
def weights_in_cross_section(x: Tensor) -> Tensor:
    return (x / 60).softmax(-1)


@healthy(**series())
def refuses_short(x: Tensor) -> Tensor:
    if x.shape[-2] < 2:
        raise ValueError(f"refuses_short: x must have at least 2 rows; got shape {tuple(x.shape)}")
    return x / x[..., :1, :]


@healthy(samples=[(randn(7),)])
def one_dimensional_only(x: Tensor) -> Tensor:
    if x.dim() != 1:
        raise ValueError(f"one_dimensional_only: x must have one axis; got shape {tuple(x.shape)}")
    return x.cumsum(0).sin()


@healthy(samples=[(rand(3, 4), torch.tensor(2.0).double())])
def scalar_tensor(x: Tensor, scale: Tensor) -> Tensor:
    return x * scale


@healthy(samples=[(randn(2, 3, 8, 8),)])
def image_gradient(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, 2) - x[..., ::2, ::2]


@healthy(samples=[(randn(4, 5, 6),)])
class ChannelAttention(nn.Module):
    """Reduces over the last axis; refuses what has no channel axis."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() < 2:
            raise ValueError(f"ChannelAttention: x must be (..., C, L); got shape {tuple(x.shape)}")
        return x * torch.sigmoid(x.mean(-1, keepdim=True))


@healthy(**series(warmup=2))
def second_difference(x: Tensor) -> Tensor:
    padded = F.pad(x, (0, 0, 2, 0), value=float("nan"))
    steps = x.shape[-2]
    return x - 2 * padded[..., 1 : steps + 1, :] + padded[..., :steps, :]

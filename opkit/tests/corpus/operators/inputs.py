"""Inputs, saved tensors and outputs in memory that is not the operator's own, and memory that nobody has written."""

import torch
from torch import Tensor, nn

from corpus.entries import fault, healthy
from corpus.makes import Saved, custom_op, indices, library_op, prices, rand, randn, series


@fault("input_changed", samples=[(rand(3, 4),)])
def centers_in_place(x: Tensor) -> Tensor:
    x -= x.mean(-1, keepdim=True)
    return x * 2


@fault("input_changed", samples=[(rand(3, 4),)])
@custom_op()
def clamps_in_place(x: Tensor) -> Tensor:
    return x.clamp_(max=1.0).exp()


@fault("input_changed", rows=("missing_values",), **series())
def fills_missing_in_place(x: Tensor) -> Tensor:
    """Only inputs with missing values are changed."""
    with torch.no_grad():
        x[x.isnan()] = 0.0
    return x.cumsum(-2)


@fault("input_changed", rows=("missing_values",), **series())
@custom_op()
def forward_fills_in_place(x: Tensor) -> Tensor:
    for t in range(1, x.shape[-2]):
        row, before = x[..., t, :], x[..., t - 1, :]
        if row.isnan().any():
            row.copy_(torch.where(row.isnan(), before, row))
    return x.cumsum(-2)


@fault("input_changed", rows=("strides",), samples=[(rand(3, 4),)])
@custom_op()
def changes_strided_only(x: Tensor) -> Tensor:
    """`contiguous` makes a copy of a strided tensor, and not of a contiguous one."""
    work = x.contiguous()
    return work.mul_(2).clone()


@fault("input_changed", rows=("strides",), samples=[(rand(3, 4),)])
@custom_op()
def changes_transposed_inputs(x: Tensor) -> Tensor:
    y = x if not x.is_contiguous() else x.clone()
    return (y.mul_(2)).clone()


@fault("input_changed", samples=[(rand(4, 6), torch.tensor([[3, 1], [0, 2], [5, 4], [1, 0]]))])
@custom_op(fake=lambda x, index: x.new_empty(index.shape))
def sorts_index_in_place(x: Tensor, index: Tensor) -> Tensor:
    index.copy_(index.sort(-1).values)
    return x.gather(1, index)


@fault("input_changed", samples=[(randn(3, 4), rand(4, seed=1))])
@library_op("(Tensor x, Tensor weight) -> Tensor", "CompositeImplicitAutograd")
def normalizes_weight_in_place(x: Tensor, weight: Tensor) -> Tensor:
    weight.data /= weight.data.sum()
    return x * weight


class ChangesInputInBackward(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.data.mul_(2)


fault("input_changed", rows=("saved_tensor_changed", "gradcheck"), samples=[(rand(3, 4),)])(ChangesInputInBackward)


class ClampThroughData(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.data.clamp_(min=0.0)
        return 2 * x


fault("input_changed", samples=[(randn(3, 4),)])(ClampThroughData)


class ChangesWithoutMarkDirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        x.mul_(2)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


fault("input_changed", samples=[(rand(3, 4),)])(ChangesWithoutMarkDirty)


class ChangesSavedOutput(torch.autograd.Function):
    """The output is saved, and then changed through `.data`."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        y.data.mul_(2)
        return y + 0

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y.log().exp() / 4


fault("wrong_gradient", rows=("saved_tensor_changed",), samples=[(rand(3, 4),)])(ChangesSavedOutput)


@fault("saved_tensor_changed", rows=("gradient_error", "wrong_gradient"), samples=[(randn(3, 4),)])
def changes_sigmoid_output(x: Tensor) -> Tensor:
    y = torch.sigmoid(x)
    y.data.mul_(2)
    return y


@fault(
    "saved_tensor_changed", rows=("gradient_error", "wrong_gradient", "autograd_registration"), samples=[(randn(3, 4),)]
)
def changes_tanh_output(x: Tensor) -> Tensor:
    y = x.tanh()
    y += 1  # autograd needs the result of tanh
    return y


class SavesThenChanges(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        work = x.clone()
        ctx.save_for_backward(work)
        work -= work.mean()
        return work * work

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x  # x was centered after it had been saved


fault(
    "wrong_gradient", rows=("saved_tensor_changed", "wrong_second_gradient", "gradgradcheck"), samples=[(rand(3, 4),)]
)(SavesThenChanges)


@fault("aliasing", samples=[(rand(3, 4),)])
@custom_op()
def returns_input(x: Tensor) -> Tensor:
    return x


@fault("aliasing", rows=("schema",), samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: x.new_empty(x.numel()))
def returns_view(x: Tensor) -> Tensor:
    return x.view(-1)


@fault("aliasing", rows=("schema", "fake"), samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: (torch.empty_like(x), torch.empty_like(x)))
def same_output_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.exp()
    return y, y


@fault("aliasing", rows=("schema",), samples=[(rand(4, 4),)])
@library_op(
    "(Tensor x) -> (Tensor, Tensor)",
    "CompositeExplicitAutograd",
    fake=lambda x: (x.new_empty(2, x.shape[1]), x.new_empty(2, x.shape[1])),
)
def halves_of_one_result(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.exp()
    return y[:2].detach(), y.detach()[:2]


@fault("aliasing", rows=("strides",), samples=[(rand(3, 4),)])
@custom_op()
def contiguous_returns_input(x: Tensor) -> Tensor:
    return x.contiguous()


@fault("aliasing", samples=[(rand(3, 4),)])
@custom_op()
def converts_to_same_type(x: Tensor) -> Tensor:
    return x.to(x.dtype)


@fault("uninitialized_memory", **series())
@custom_op()
def empty_first_row(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y[..., 1:, :] = x[..., 1:, :] - x[..., :-1, :]
    return y


@fault("uninitialized_memory", samples=[(rand(3, 4),)])
def accumulates_into_empty(x: Tensor) -> Tensor:
    total = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    for k in range(x.shape[-1]):
        total = total + x[..., k]
    return total


class EmptyGradientRow(Saved):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x[..., 1:, :] * 2

    @staticmethod
    def backward(ctx, grad):
        dx = torch.empty_like(ctx.saved_tensors[0])
        dx[..., 1:, :] = 2 * grad
        return dx


fault("uninitialized_memory", rows=("gradcheck", "wrong_gradient"), samples=[(rand(3, 4),)])(EmptyGradientRow)


@fault("uninitialized_memory", samples=[(rand(5, 3), torch.tensor([0, 2, 4]))])
@custom_op(fake=lambda x, index: torch.empty_like(x))
def scatters_into_empty(x: Tensor, index: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y[index] = x[index]
    return y


@healthy(samples=[(rand(3, 4),)])
def in_place_on_clone(x: Tensor) -> Tensor:
    y = x.clone()
    y[..., 0] = 0
    return y.mul_(3).sub_(1)


@healthy(samples=[(rand(3, 4),)])
@custom_op()
def copies_to_contiguous(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format).mul_(2)


@healthy(samples=[(rand(3, 4),)])
def views_inside(x: Tensor) -> Tensor:
    return x.unsqueeze(0).expand(2, *x.shape).mT.reshape(2, -1).sum(0)


@healthy(samples=[(rand(5, 3), indices(4, high=5))])
def rows_by_index(table: Tensor, index: Tensor) -> Tensor:
    return table[index]


@healthy(samples=[(rand(3, 4),)])
@custom_op(fake=lambda x: (x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1], dtype=torch.long)))
def maximum_with_index(x: Tensor) -> tuple[Tensor, Tensor]:
    values, index = x.max(-1)
    return values, index


@healthy(samples=[(rand(3, 4),)])
def empty_then_filled(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    y[..., :1] = x[..., :1]
    y[..., 1:] = x[..., 1:] - x[..., :-1]
    return y


@healthy(**series(warmup=1))
def change_of_copy(x: Tensor) -> Tensor:
    y = x.clone()
    y[..., 1:, :] = x[..., 1:, :] - x[..., :-1, :]
    y[..., :1, :] = float("nan")
    return y


@healthy(samples=[(prices(),)], time=-2, causal=True)
@library_op("(Tensor x) -> Tensor", "CompositeExplicitAutograd", fake=lambda x: torch.empty_like(x))
def running_maximum(x: Tensor) -> Tensor:
    return x.detach().cummax(-2).values.contiguous()

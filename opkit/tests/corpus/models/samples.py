"""Samples that mix in the batch, weights that are no parameters, and intermediates kept by a Function."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty, regression


class LastStep(nn.Module):
    """The last step of a recurrent layer or an encoder, (B, T, F) -> (B, 1)."""

    def __init__(self, layer: nn.Module, size: int = 16) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(size, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        return self.head((h[0] if isinstance(h, tuple) else h)[:, -1])


class Outputs(nn.Module):
    """Two layers, and a function of their outputs (N, 4)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.function = nn.Linear(3, 8), nn.Linear(8, 4), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.last(self.first(x).relu()))


def sequences(*target: int) -> tuple[Tensor, Tensor]:
    return torch.randn(32, 20, 5), torch.randn(*target)


def outputs(function: Callable[[Tensor], Tensor]) -> Setup:
    return Outputs(function), (torch.randn(16, 3), torch.randn(16, 4)), F.mse_loss


@faulty("batch_mixed", line="self.layer(x)")
def lstm_without_batch_first() -> Setup:
    return LastStep(nn.LSTM(5, 16)), sequences(32, 1), F.mse_loss


@faulty("batch_mixed", line="self.layer(x)")
def gru_without_batch_first() -> Setup:
    return LastStep(nn.GRU(5, 16)), sequences(32, 1), F.mse_loss


@faulty("batch_mixed", line="self.layer(x)")
def transformer_without_batch_first() -> Setup:
    return LastStep(nn.TransformerEncoderLayer(5, 1, 8), 5), sequences(32, 1), F.mse_loss


@faulty("batch_mixed", line="softmax(0)")
def softmax_over_the_batch() -> Setup:
    return outputs(lambda h: h.softmax(0))


@faulty("batch_mixed", line="h.mean(0)")
def mean_over_the_batch() -> Setup:
    return outputs(lambda h: h - h.mean(0))


@faulty("batch_mixed", line="F.normalize(h, dim=0)")
def normalized_over_the_batch() -> Setup:
    return outputs(lambda h: F.normalize(h, dim=0))


@faulty("batch_mixed", line="x.view(")
def view_in_place_of_a_transpose() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(5, 16), nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            steps = x.view(20, 32, 5)
            return self.head(self.layer(steps)[0][-1])

    return Model(), sequences(32, 1), F.mse_loss


@faulty("batch_mixed", line="x.reshape(1")
def batch_folded_into_time() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(5, 16, batch_first=True), nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            long = x.reshape(1, -1, 5)
            h, _ = self.layer(long)
            return self.head(h.view(32, 20, 16)[:, -1])

    return Model(), sequences(32, 1), F.mse_loss


@faulty("batch_mixed", line="reshape(32")
def steps_flattened_with_time_first() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(5, 4), nn.Linear(80, 1)

        def forward(self, x: Tensor) -> Tensor:
            h, _ = self.layer(x.transpose(0, 1))
            flat = h.reshape(32, -1)
            return self.head(flat)

    return Model(), sequences(32, 1), F.mse_loss


@faulty("not_a_parameter", line='register_buffer("weight"')
def weight_in_a_buffer() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 8)
            self.register_buffer("weight", torch.randn(1, 8))

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(self.first(x).tanh(), self.weight)

    return Model(), regression(), F.mse_loss


@faulty("not_a_parameter", line='register_buffer("gain"')
def gain_in_a_buffer() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
            self.register_buffer("gain", torch.ones(8))

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).tanh() * self.gain)

    return Model(), regression(), F.mse_loss


@faulty("frozen", line="self.first.weight = ")
def replaced_by_a_frozen_parameter() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
            small = self.first.weight.detach() * 0.1
            self.first.weight = nn.Parameter(small, requires_grad=small.requires_grad)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).tanh())

    return Model(), regression(), F.mse_loss


class SquareOfDouble(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.double = 2 * x
        return ctx.double.square()

    @staticmethod
    def backward(ctx, grad):
        return 4 * ctx.double * grad


@faulty("intermediate_on_ctx", line="ctx.double = ")
def penalty_through_an_intermediate() -> Setup:
    def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        x = batch[0].clone().requires_grad_()
        output = model(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean() + F.mse_loss(output, batch[1])

    model = Outputs(torch.tanh)
    model.function = SquareOfDouble.apply
    return model, (torch.randn(16, 3), torch.randn(16, 4)), loss_fn

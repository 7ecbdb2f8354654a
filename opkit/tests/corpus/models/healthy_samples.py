"""Healthy: samples that depend on each other on purpose, an axis of time before the batch, constants in buffers."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, healthy, regression
from corpus.models.samples import sequences


@healthy
def batch_normalization() -> Setup:
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)), regression(), F.mse_loss


class TimeFirst(nn.Module):
    """(T, B, F) -> (T, B, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.LSTM(5, 16), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0])


@healthy
def time_before_batch() -> Setup:
    return TimeFirst(), (torch.randn(20, 8, 5), torch.randn(20, 8, 1)), F.mse_loss


@healthy
def transposed_to_time_first() -> Setup:
    class Model(TimeFirst):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.transpose(0, 1))[-1]

    return Model(), sequences(32, 1), F.mse_loss


@healthy
def batch_and_time_merged_and_parted() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first(x.reshape(-1, 5)).tanh()).view(x.shape[:2])

    return Model(), sequences(32, 20), F.mse_loss


@healthy
def graph_with_an_adjacency_matrix() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
            self.register_buffer("adjacency", (torch.rand(16, 16) < 0.3).float())

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.adjacency @ self.first(x).relu())

    return Model(), regression(), F.mse_loss


@healthy
def one_series_in_rows() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None])

    return Model(), (torch.randn(40, 4), torch.randn(40, 4)), F.mse_loss


@healthy
def random_fourier_features() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(16, 1)
            self.register_buffer("frequencies", torch.randn(3, 8))

        def forward(self, x: Tensor) -> Tensor:
            phase = x @ self.frequencies
            return self.last(torch.cat([phase.sin(), phase.cos()], -1))

    return Model(), regression(), F.mse_loss


@healthy
def standardized_inputs() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("std", torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.first((x - self.mean) / self.std).tanh())

    return Model(), regression(), F.mse_loss


@healthy
def biases_only() -> Setup:
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("bias" in name)
    return model, regression(), F.mse_loss


class MaskedByFunction(torch.autograd.Function):
    """A mask has no derivative, and may be kept as it is."""

    @staticmethod
    def forward(ctx, x):
        ctx.mask = (x > 0).to(x.dtype)
        return x * ctx.mask

    @staticmethod
    def backward(ctx, grad):
        return ctx.mask * grad


@healthy
def penalty_through_a_mask() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(MaskedByFunction.apply(self.first(x)))

    def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        x = batch[0].clone().requires_grad_()
        output = model(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean() + F.mse_loss(output, batch[1])

    return Model(), regression(), loss_fn

"""Healthy: training scripts of forecasting, portfolio and control models, losses of every signature."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, healthy, regression
from corpus.models.scripts import Forecaster, window


@healthy
def exponential_smoothing_with_learned_decay() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logit, self.head = nn.Parameter(torch.zeros(3)), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            level, alpha = x[:, 0], self.logit.sigmoid()
            for t in range(1, x.shape[1]):
                level = alpha * x[:, t] + (1 - alpha) * level
            return self.head(level)

    return Model(), window(), F.mse_loss


@healthy
def portfolio_with_turnover_cost() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
            self.register_buffer("previous", torch.full((16, 4), 0.25))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            weights = self.body(x).softmax(-1)
            turnover = (weights - self.previous).abs().sum(-1)
            self.previous.copy_(weights.detach())
            return weights, turnover

    def objective(output: tuple[Tensor, Tensor], returns: Tensor) -> Tensor:
        weights, turnover = output
        return -((weights * returns).sum(-1) - 1e-3 * turnover).mean()

    return Model(), (torch.randn(16, 3), torch.randn(16, 4) * 0.01), objective


@healthy
def drawdown_with_a_floor_under_the_root() -> Setup:
    def objective(position: Tensor, returns: Tensor) -> Tensor:
        wealth = (1 + 0.01 * position * returns).cumprod(0)
        drawdown = 1 - wealth / wealth.cummax(0).values
        return (drawdown + 1e-6).sqrt().mean()

    return Forecaster(), regression(), objective


@healthy
def garch_recursion() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.raw = nn.Parameter(torch.tensor([-2.0, -2.0, 2.0]))

        def forward(self, returns: Tensor) -> Tensor:
            omega, alpha, beta = F.softplus(self.raw[0]), *self.raw[1:].softmax(0) * 0.98
            variance = [returns.var(1)]
            for t in range(returns.shape[1] - 1):
                variance.append(omega + alpha * returns[:, t] ** 2 + beta * variance[-1])
            return torch.stack(variance, 1)

    def likelihood(variance: Tensor, returns: Tensor) -> Tensor:
        return 0.5 * (variance.log() + returns**2 / variance).mean()

    returns = torch.randn(4, 20)
    return Model(), (returns, returns), likelihood


@healthy
def loss_of_three_arguments() -> Setup:
    def loss_fn(output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        return (weight * (output - target).square()).sum() / weight.sum()

    x, y = regression()
    return Forecaster(), (x, y, torch.rand(16, 1)), loss_fn


@healthy
def loss_as_an_object() -> Setup:
    @dataclass
    class Pinball:
        level: float

        def __call__(self, output: Tensor, target: Tensor) -> Tensor:
            error = target - output
            return torch.maximum(self.level * error, (self.level - 1) * error).mean()

    return Forecaster(), regression(), Pinball(0.9)


@healthy
def training_step_as_a_method() -> Setup:
    class Model(Forecaster):
        def training_step(self, batch: Any, batch_index: int) -> Tensor:
            x, y = batch
            return F.mse_loss(self(x), y)

    return Model(), regression(), lambda model, batch: model.training_step(batch, 0)


@healthy
def output_of_a_dataclass() -> Setup:
    @dataclass
    class Output:
        mean: Tensor
        scale: Tensor

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.mean, self.scale = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Output:
            h = self.body(x).tanh()
            return Output(self.mean(h), F.softplus(self.scale(h)) + 1e-3)

    def loss_fn(output: Output, target: Tensor) -> Tensor:
        return F.gaussian_nll_loss(output.mean, target, output.scale**2)

    return Model(), regression(), loss_fn


@healthy
def named_batch_with_mask() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return self.head(self.gru(batch["x"])[0])[..., 0]

    def loss_fn(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        error = (model(batch) - batch["y"]).square()
        return (error * batch["mask"]).sum() / batch["mask"].sum()

    mask = torch.ones(8, 6)
    mask[:4, 3:] = 0
    return Model(), {"x": torch.randn(8, 6, 3), "y": torch.randn(8, 6), "mask": mask}, loss_fn


@healthy
def states_written_to_a_fresh_list() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head, self.log = nn.LSTMCell(3, 8), nn.Linear(8, 1), deque[float](maxlen=9)

        def forward(self, x: Tensor) -> Tensor:
            h = c = torch.zeros(len(x), 8)
            outputs = []
            for t in range(x.shape[1]):
                h, c = self.cell(x[:, t], (h, c))
                self.log.append(h.norm().item())
                outputs.append(self.head(h))
            return torch.stack(outputs, 1).mean(1)

    return Model(), window(), F.mse_loss


@healthy
def seasonal_embedding_of_few_months() -> Setup:
    """Only three of twelve months are in the batch."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.month, self.head = nn.Embedding(12, 4), nn.Linear(7, 1)

        def forward(self, x: Tensor, month: Tensor) -> Tensor:
            return self.head(torch.cat([x, self.month(month)], 1))

    return Model(), ((torch.randn(16, 3), torch.randint(3, (16,))), torch.randn(16, 1)), F.mse_loss


@healthy
def monotone_network_by_squared_weights() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(3, 8)), nn.Parameter(torch.randn(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            return (x @ self.a.square()).tanh() @ self.b.square()

    return Model(), regression(), F.mse_loss


@healthy
def standardized_inside_with_floor() -> Setup:
    class Model(Forecaster):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward((x - x.mean(0)) / x.std(0).clamp(min=1e-6))

    x, y = regression()
    x[:, 2] = 1.0
    return Model(), (x, y), F.mse_loss


@healthy
def several_samples_per_input() -> Setup:
    class Model(Forecaster):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            return y + 0.1 * torch.randn(5, *y.shape)

    return Model(), regression(), lambda samples, target: (samples - target).square().mean()


@healthy
def scores_against_every_candidate() -> Setup:
    """(N, 1, D) against (1, M, D) on purpose."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.keys = nn.Linear(3, 4), nn.Parameter(torch.randn(6, 4))

        def forward(self, x: Tensor) -> Tensor:
            return -(self.query(x).unsqueeze(1) - self.keys.unsqueeze(0)).square().sum(-1)

    return Model(), (torch.randn(16, 3), torch.randint(6, (16,))), F.cross_entropy


@healthy
def level_and_slope_of_vectors() -> Setup:
    """(N, 1) times (T,) is an outer product on purpose."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.level, self.slope = nn.Linear(3, 1), nn.Linear(3, 1)
            self.register_buffer("time", torch.arange(5.0))

        def forward(self, x: Tensor) -> Tensor:
            return self.level(x) + self.slope(x) * self.time

    return Model(), (torch.randn(16, 3), torch.randn(16, 5)), F.mse_loss


@healthy
def teacher_forcing_with_detached_feedback() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = nn.GRUCell(1, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h, y, outputs = torch.zeros(len(x), 8), x[:, -1:], []
            for _ in range(3):
                h = self.cell(y.detach(), h)
                y = self.out(h)
                outputs.append(y)
            return torch.cat(outputs, 1)

    return Model(), (torch.randn(16, 3), torch.randn(16, 3)), F.mse_loss


@healthy
def gate_that_starts_almost_open() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.body, self.head = nn.Linear(3, 8), nn.Linear(3, 8), nn.Linear(8, 1)
            nn.init.constant_(self.gate.bias, 3.0)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.gate(x).sigmoid() * self.body(x))

    return Model(), regression(), F.mse_loss


@healthy
def offsets_of_as_many_levels_as_samples() -> Setup:
    """(N, 1) plus a parameter (Q,), where Q happens to be N."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.level, self.offsets = nn.Linear(3, 1), nn.Parameter(torch.linspace(-1, 1, 16))

        def forward(self, x: Tensor) -> Tensor:
            return self.level(x) + self.offsets

    return Model(), (torch.randn(16, 3), torch.randn(16, 16)), F.mse_loss

"""Faults as they stand in training scripts: forecasting, portfolio and control models, losses of every signature."""

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty, regression


class Forecaster(nn.Module):
    """Hidden size 8, one output."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x).tanh())


def window() -> tuple[Tensor, Tensor]:
    return torch.randn(8, 6, 3), torch.randn(8, 1)


@faulty("detach", line="h = h.detach()")
def state_reset_inside_the_loop() -> Setup:
    """Every step is detached: what the first layer has put into the state is lost."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.cell, self.head = nn.Linear(3, 8), nn.GRUCell(8, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros(len(x), 8)
            for t in range(x.shape[1]):
                h = self.cell(self.embed(x[:, t]), h)
                h = h.detach()
            return self.head(h)

    return Model(), window(), F.mse_loss


@faulty("detach", "python", line="self.memory.append(h.detach()")
def replay_memory_is_all_that_is_read() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(3, 8), nn.Linear(8, 1)
            self.memory: deque[Tensor] = deque(maxlen=4)

        def forward(self, x: Tensor) -> Tensor:
            h = self.encoder(x).tanh()
            self.memory.append(h.detach())
            return self.head(torch.stack(list(self.memory)).mean(0))

    return Model(), regression(), F.mse_loss


@faulty("data", line="lower.data, upper.data")
def quantiles_sorted_by_data() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lower, self.upper = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            lower, upper = self.lower(x), self.upper(x)
            lower.data, upper.data = torch.minimum(lower, upper), torch.maximum(lower, upper)
            return torch.cat([lower, upper], 1)

    return Model(), (torch.randn(16, 3), torch.randn(16, 2)), F.mse_loss


@faulty("no_grad", "data", line="probabilities.clamp_(min=1e-3)")
def clamped_in_place_without_grad() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            probabilities = self.body(x) * 0.5
            with torch.no_grad():
                probabilities.clamp_(min=1e-3)
            return probabilities

    return Model(), (torch.randn(16, 3), torch.rand(16, 4)), F.mse_loss


@faulty("python", "copy", "detach", line="np.convolve(")
def smoothed_by_numpy() -> Setup:
    class Model(Forecaster):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)[:, 0]
            smooth = np.convolve(y.detach().numpy(), np.ones(3) / 3, mode="same")
            return torch.from_numpy(smooth).float().unsqueeze(1)

    return Model(), regression(), F.mse_loss


@faulty("integer", "not_differentiable", "rounding", line="torch.searchsorted(")
def quantile_bins() -> Setup:
    class Model(Forecaster):
        def forward(self, x: Tensor) -> Tensor:
            y = super().forward(x)
            levels = torch.linspace(-1, 1, 9)
            return levels[torch.searchsorted(levels, y.contiguous()).clamp(max=8)]

    return Model(), regression(), F.mse_loss


@faulty("python", "detach", "copy", line="np.sign(")
def positions_by_numpy() -> Setup:
    class Model(Forecaster):
        def forward(self, x: Tensor) -> Tensor:
            return torch.as_tensor(np.sign(super().forward(x).detach().numpy()))

    return Model(), regression(), lambda position, returns: -(position * returns).mean()


@faulty("in_place", line="prices[:, t] = prices[:, t - 1] *")
def simulated_path_in_one_tensor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drift = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            prices, drift = torch.ones(16, 5), self.drift(x)[:, 0]
            for t in range(1, 5):
                prices[:, t] = prices[:, t - 1] * drift.exp()
            return prices[:, -1:]

    return Model(), regression(), F.mse_loss


@faulty("in_place", line="h[:, -1] += skip")
def skip_added_to_softplus() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.skip, self.head = nn.Linear(3, 8), nn.Linear(3, 1), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h, skip = torch.sigmoid(self.body(x)), self.skip(x)[:, 0]
            h[:, -1] += skip
            return self.head(h)

    return Model(), regression(), F.mse_loss


@faulty("never_called", line="self.exogenous = nn.Linear")
def exogenous_branch_forgotten() -> Setup:
    class Model(Forecaster):
        def __init__(self) -> None:
            super().__init__()
            self.exogenous = nn.Linear(2, 8)

        def forward(self, x: Tensor, stocks: Tensor) -> Tensor:
            return super().forward(x)

    return Model(), ((torch.randn(16, 3), torch.randn(16, 2)), torch.randn(16, 1)), F.mse_loss


@faulty("plain_list", line="self.by_market = {")
def one_model_per_market() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by_market = {name: Forecaster() for name in ("brent", "ttf")}
            self.mix = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([m(x) for m in self.by_market.values()], 1) @ self.mix.softmax(0).unsqueeze(1)

    return Model(), regression(), F.mse_loss


@faulty("broadcast")
def forecast_of_one_step_against_flat_returns() -> Setup:
    return Forecaster(), (torch.randn(12, 3), torch.randn(12)), nn.HuberLoss()


@faulty("broadcast", line="(model(x) - y).abs()")
def broadcast_in_a_loss_of_the_model() -> Setup:
    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        x, y = batch
        return (model(x) - y).abs().mean()

    return Forecaster(), (torch.randn(12, 3), torch.randn(12)), loss_fn


@faulty("detach", line="model(batch[0]).detach()")
def detached_in_a_loss_of_the_model() -> Setup:
    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        output = model(batch[0]).detach()
        return F.mse_loss(output, batch[1])

    return Forecaster(), regression(), loss_fn


@faulty("nan_gradient", "infinite_gradient", "not_finite", "nan_loss", line="drawdown.sqrt()")
def root_of_a_drawdown() -> Setup:
    def objective(position: Tensor, returns: Tensor) -> Tensor:
        wealth = (1 + 0.01 * position * returns).cumprod(0)
        drawdown = 1 - wealth / wealth.cummax(0).values
        return drawdown.sqrt().mean()

    return Forecaster(), regression(), objective


@faulty("nan_gradient", "infinite_gradient", "not_finite", "nan_loss", line="returns.mean() / returns.std()")
def sharpe_of_one_day() -> Setup:
    def objective(position: Tensor, target: Tensor) -> Tensor:
        returns = (position * target)[:, 0]
        return -(returns.mean() / returns.std())

    return Forecaster(), (torch.randn(1, 3), torch.randn(1, 1)), objective


@faulty("zero_gradient", line=("(output[:0] - target[:0])"))
def no_row_after_the_warm_up() -> Setup:
    return Forecaster(), regression(), lambda output, target: (output[:0] - target[:0]).square().sum()


@faulty("double_softmax", "double_activation")
def softmax_weights_into_cross_entropy() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.out = nn.Linear(3, 8), nn.Linear(8, 3)
            self.activation = nn.Softmax(dim=-1)

        def forward(self, x: Tensor) -> Tensor:
            return self.activation(self.out(self.body(x).relu()))

    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    return Model(), (torch.randn(16, 3), torch.randint(3, (16,))), lambda output, target: criterion(output, target)


@faulty("graph_kept", line="self.position")
def previous_position_kept() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.position = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.zeros(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            self.position = self.body(torch.cat([x, self.position], 1)).tanh()
            return self.position

    return Model(), regression(), lambda position, returns: -(position * returns).mean()


@faulty("not_a_parameter", line="self.decay = torch.tensor(0.9, requires_grad=True)")
def learned_decay_is_a_plain_tensor() -> Setup:
    class Model(Forecaster):
        def __init__(self) -> None:
            super().__init__()
            self.decay = torch.tensor(0.9, requires_grad=True)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x * self.decay)

    return Model(), regression(), F.mse_loss


@faulty("python", line="window=int(self.length)")
def learned_window_length() -> Setup:
    def moving_average(x: Tensor, window: int) -> Tensor:
        return x.unfold(1, window, 1).mean(-1)[:, -1]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.length, self.head = nn.Parameter(torch.tensor(3.0)), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(moving_average(x, window=int(self.length)))

    return Model(), window(), F.mse_loss


@faulty("input_not_finite", "nan_gradient", "not_finite")
def first_return_of_a_series() -> Setup:
    """A difference that was filled with NaN, as pandas does, and not dropped."""
    prices = torch.rand(16, 4) + 1
    returns = torch.cat([torch.full((16, 1), torch.nan), prices[:, 1:].log() - prices[:, :-1].log()], 1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), (returns, torch.randn(16, 1)), F.mse_loss

"""State that keeps its graph, so that the second step fails."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty, regression


def sequences() -> tuple[Tensor, Tensor]:
    return torch.randn(4, 5, 3), torch.randn(4, 1)


@faulty("graph_kept", line="self.state")
def recurrent_state_kept() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head, self.state = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1), torch.zeros(1, 4, 8)

        def forward(self, x: Tensor) -> Tensor:
            y, self.state = self.rnn(x, self.state)
            return self.head(y[:, -1])

    return Model(), sequences(), F.mse_loss


@faulty("graph_kept", line="self.hidden")
def lstm_state_kept() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
            self.hidden = None

        def forward(self, x: Tensor) -> Tensor:
            y, self.hidden = self.lstm(x, self.hidden)
            return self.head(y[:, -1])

    return Model(), sequences(), F.mse_loss


@faulty("graph_kept", line="self.h = self.cell(")
def cell_state_kept() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(3, 8), nn.Linear(8, 1)
            self.register_buffer("h", torch.zeros(16, 8))

        def forward(self, x: Tensor) -> Tensor:
            self.h = self.cell(x, self.h)
            return self.head(self.h)

    return Model(), regression(), F.mse_loss


@faulty("graph_kept", line="self.mean = ")
def running_mean_attached() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x).tanh()
            self.mean = 0.9 * self.mean + 0.1 * h.mean(0)
            return self.last(h - self.mean)

    return Model(), regression(), F.mse_loss


@faulty("graph_kept", line="self.cache")
def features_computed_once() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(3, 8), nn.Linear(8, 1)
            self.cache: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            if self.cache is None:
                self.cache = self.encoder(x).tanh()
            return self.head(self.cache)

    return Model(), regression(), F.mse_loss


@faulty("graph_kept", line="self.total")
def running_loss_attached() -> Setup:
    class Loss:
        total: Tensor | float = 0.0

        def __call__(self, output: Tensor, target: Tensor) -> Tensor:
            self.total = self.total + F.mse_loss(output, target)
            return self.total

    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), regression(), Loss()


@faulty("graph_kept", line=("self.bank.append(", "torch.cat(self.bank)"))
def memory_bank_attached() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head, self.bank = nn.Linear(3, 8), nn.Linear(8, 1), list[Tensor]()

        def forward(self, x: Tensor) -> Tensor:
            h = self.encoder(x).tanh()
            self.bank.append(h)
            return self.head(h + torch.cat(self.bank).mean(0))

    return Model(), regression(), F.mse_loss


@faulty("graph_kept", "not_a_parameter", line="self.scaled")
def weight_scaled_in_constructor() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.head = nn.Parameter(torch.randn(8, 3)), nn.Linear(8, 1)
            self.scaled = self.weight / self.weight.norm(dim=1, keepdim=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.head((x @ self.scaled.T).tanh())

    return Model(), regression(), F.mse_loss


@faulty("graph_kept", line="self.positions")
def positions_encoded_once() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.embed, self.head = nn.Embedding(5, 8), nn.Linear(3, 8), nn.Linear(8, 1)
            self.mix, self.positions = nn.Linear(8, 8), dict[int, Tensor]()

        def forward(self, x: Tensor) -> Tensor:
            if x.shape[1] not in self.positions:
                self.positions[x.shape[1]] = self.mix(self.table(torch.arange(x.shape[1]))).tanh()
            return self.head((self.embed(x) + self.positions[x.shape[1]]).tanh().mean(1))

    return Model(), sequences(), F.mse_loss


@faulty("graph_kept", line="self.previous")
def smoothness_against_last_step() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.previous = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), torch.zeros(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            output = self.layer(x)
            turnover = (output - self.previous).abs()
            self.previous = output
            return output - 0.1 * turnover

    return Model(), regression(), F.mse_loss

"""Detached values inside whole models: recurrences, residual branches, features and weights."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Between, Setup, faulty, regression


@faulty("detach", line="self.cell(x, h.detach())")
def detach_in_recurrence() -> Setup:
    """The encoder of the first state gets no gradient: it is cut at every step."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.start, self.cell, self.head = nn.Linear(3, 8), nn.GRUCell(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.start(x)
            for _ in range(3):
                h = self.cell(x, h.detach())
            return self.head(h)

    return Model(), regression(), F.mse_loss


@faulty("detach", line="self.body(x).detach()")
def detach_residual_branch() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(x + self.body(x).detach())

    return Model(), regression(), F.mse_loss


@faulty("detach", line="features.append(x.detach())")
def detach_feature_list() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4)])
            self.head = nn.Linear(12, 1)

        def forward(self, x: Tensor) -> Tensor:
            features = []
            for layer in self.layers:
                x = layer(x).tanh()
                features.append(x.detach())
            return self.head(torch.cat(features, 1))

    return Model(), regression(), F.mse_loss


@faulty("detach", "copy", line="state_dict()")
def weights_from_state_dict() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            weights = self.table.state_dict()
            return self.head(F.linear(x, weights["weight"], weights["bias"]).tanh())

    return Model(), regression(), F.mse_loss


@faulty("detach", line="p.detach()")
def functional_call_detached() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(3, 8), nn.Linear(8, 1)

        def forward(self, x: Tensor) -> Tensor:
            weights = {name: p.detach() for name, p in self.body.named_parameters()}
            return self.head(torch.func.functional_call(self.body, weights, (x,)))

    return Model(), regression(), F.mse_loss


@faulty("no_grad", line="self.model(x)")
def no_grad_around_a_model() -> Setup:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.head = Between(torch.tanh), nn.Linear(1, 1)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                features = self.model(x)
            return self.head(features)

    return Wrapper(), regression(), F.mse_loss

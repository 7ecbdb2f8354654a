"""Layers and parameters that are never used, frozen, or missing."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Between, Setup, faulty, regression
from corpus.models.structure import Base, setup


@faulty("never_called", line="self.spare = nn.Linear")
def layer_never_called() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.Linear(8, 8)

    return setup(Model)


@faulty("never_called", line="self.second = nn.Linear")
def one_layer_called_twice() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.middle = nn.Linear(8, 8)
            self.second = nn.Linear(8, 8)

        def extra(self, h: Tensor) -> Tensor:
            return self.middle(self.middle(h).relu())

    return setup(Model)


@faulty("never_called", line="self.shift = nn.Parameter")
def parameter_never_used() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(8))

    return setup(Model)


@faulty("frozen")
def every_parameter_frozen() -> Setup:
    model = Base()
    for p in model.parameters():
        p.requires_grad = False
    return model, regression(), F.mse_loss


@faulty("frozen")
def module_frozen_by_method() -> Setup:
    return Between(torch.tanh).requires_grad_(False), regression(), F.mse_loss


@faulty("frozen")
def parameters_made_frozen() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 1), requires_grad=False)

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.weight

    return setup(Model)


@faulty(
    "never_called",
    "integer",
    line=("self.logits = nn.Parameter(torch.randn(8))", "self.mask = (self.logits.sigmoid() > 0.5)"),
)
def mask_computed_in_constructor() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Parameter(torch.randn(8))
            self.mask = (self.logits.sigmoid() > 0.5).float()

        def extra(self, h: Tensor) -> Tensor:
            return h * self.mask

    return setup(Model)


@faulty("crash", line="self.missing(h)")
def layer_that_does_not_exist() -> Setup:
    class Model(Base):
        def extra(self, h: Tensor) -> Any:
            return self.missing(h)

    return setup(Model)

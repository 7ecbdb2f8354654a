"""Layers and parameters made, replaced or reassigned in the forward pass."""

import torch
from torch import Tensor, nn

from corpus.models.entries import Setup, faulty
from corpus.models.structure import Base, setup

NEW = ("new_parameter", "not_a_parameter")


@faulty(*NEW, line="nn.Linear(8, 8)(h)")
def layer_made_in_forward() -> Setup:
    class Model(Base):
        def extra(self, h: Tensor) -> Tensor:
            return nn.Linear(8, 8)(h)

    return setup(Model)


@faulty(*NEW, "never_called", line=("self.mix = nn.Linear(h.shape[1], 8)",))
def layer_made_again_in_forward() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.mix: nn.Module = nn.Linear(8, 8)

        def extra(self, h: Tensor) -> Tensor:
            self.mix = nn.Linear(h.shape[1], 8)
            return self.mix(h)

    return setup(Model)


@faulty(*NEW, line="nn.Parameter(torch.randn(8, 8))")
def parameter_made_in_forward() -> Setup:
    class Model(Base):
        def extra(self, h: Tensor) -> Tensor:
            return h @ nn.Parameter(torch.randn(8, 8))

    return setup(Model)


@faulty(*NEW, "copy", "detach", "never_called", "data", line="self.scale = nn.Parameter(self.scale * 1.1)")
def parameter_replaced_in_forward() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8))

        def extra(self, h: Tensor) -> Tensor:
            self.scale = nn.Parameter(self.scale * 1.1)
            return h * self.scale

    return setup(Model)


@faulty("crash", "not_a_parameter", line="self.scale = self.scale * 1.1")
def parameter_reassigned_by_operation() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8))

        def extra(self, h: Tensor) -> Tensor:
            self.scale = self.scale * 1.1
            return h * self.scale

    return setup(Model)

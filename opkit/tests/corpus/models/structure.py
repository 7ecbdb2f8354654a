"""Layers and parameters that the optimizer does not see, or that never learn."""

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpus.models.entries import Setup, faulty, regression

FORGOTTEN = ("not_a_parameter",)


class Base(nn.Module):
    """Two linear layers; `extra` comes between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.extra(self.first(x).tanh()))

    def extra(self, h: Tensor) -> Tensor:
        return h


def setup(model: type[nn.Module]) -> Setup:
    return model(), regression(), F.mse_loss


@faulty("plain_list", line="self.layers = [nn.Linear")
def list_of_layers() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(8, 8) for _ in range(2)]

        def extra(self, h: Tensor) -> Tensor:
            for layer in self.layers:
                h = layer(h).tanh()
            return h

    return setup(Model)


@faulty("plain_list", line="self.layers = (nn.Linear")
def tuple_of_layers() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.layers = (nn.Linear(8, 8), nn.Linear(8, 8))

        def extra(self, h: Tensor) -> Tensor:
            return self.layers[1](self.layers[0](h))

    return setup(Model)


@faulty("plain_list", line='self.heads = {"oil"')
def dict_of_layers() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.heads = {"oil": nn.Linear(8, 8), "gas": nn.Linear(8, 8)}

        def extra(self, h: Tensor) -> Tensor:
            return self.heads["oil"](h) + self.heads["gas"](h)

    return setup(Model)


@faulty("plain_list", line="self.grid = [[nn.Linear")
def nested_lists_of_layers() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.grid = [[nn.Linear(8, 8), nn.Linear(8, 8)], [nn.Linear(8, 8)]]

        def extra(self, h: Tensor) -> Tensor:
            return sum(layer(h) for row in self.grid for layer in row)

    return setup(Model)


@faulty("plain_list", line="self.parts = [nn.Sequential")
def list_only_in_a_submodule() -> Setup:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [nn.Sequential(nn.Linear(8, 8), nn.ReLU())]

        def forward(self, h: Tensor) -> Tensor:
            return self.parts[0](h)

    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def extra(self, h: Tensor) -> Tensor:
            return self.block(h)

    return setup(Model)


@faulty("plain_list", "not_a_parameter", line=("SimpleNamespace(mix=", "self.parts.mix(h)"))
def layer_in_a_namespace() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.parts = SimpleNamespace(mix=nn.Linear(8, 8))

        def extra(self, h: Tensor) -> Tensor:
            return self.parts.mix(h)

    return setup(Model)


@faulty("plain_list", "not_a_parameter", line=("layer = nn.Linear(8, 8)", "layer(h).tanh()", "self.mix(h)"))
def layer_in_a_closure() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.Linear(8, 8)
            self.mix = lambda h: layer(h).tanh()

        def extra(self, h: Tensor) -> Tensor:
            return self.mix(h)

    return setup(Model)


SHARED = nn.Linear(8, 8)


@faulty("plain_list", "not_a_parameter", line=("SHARED(h)", "SHARED ="))
def layer_of_the_module_file() -> Setup:
    class Model(Base):
        def extra(self, h: Tensor) -> Tensor:
            return SHARED(h)

    return setup(Model)


@faulty("plain_list", "not_a_parameter", line="self.weights = {")
def parameters_in_a_dict() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.weights = {"mix": nn.Parameter(torch.randn(8, 8))}

        def extra(self, h: Tensor) -> Tensor:
            return h @ self.weights["mix"]

    return setup(Model)


@faulty("plain_list", "not_a_parameter", line="self.scales = [nn.Parameter")
def parameters_in_a_list() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.scales = [nn.Parameter(torch.ones(8)) for _ in range(3)]

        def extra(self, h: Tensor) -> Tensor:
            return h * sum(self.scales)

    return setup(Model)


@faulty(*FORGOTTEN, line="self.scale = torch.ones(8, requires_grad=True)")
def tensor_instead_of_parameter() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.ones(8, requires_grad=True)

        def extra(self, h: Tensor) -> Tensor:
            return h * self.scale

    return setup(Model)


@faulty(*FORGOTTEN, line='self.register_buffer("scale"')
def buffer_instead_of_parameter() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(8, requires_grad=True))

        def extra(self, h: Tensor) -> Tensor:
            return h * self.scale

    return setup(Model)


@faulty(*FORGOTTEN, "graph_kept", line="self.mix = nn.Parameter(torch.randn(8, 8)).double()")
def parameter_converted_after_wrapping() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Parameter(torch.randn(8, 8)).double()

        def extra(self, h: Tensor) -> Tensor:
            return (h.double() @ self.mix).float()

    return setup(Model)


@faulty(*FORGOTTEN, "graph_kept", line="requires_grad=True) * 0.1")
def leaf_scaled_after_creation() -> Setup:
    class Model(Base):
        def __init__(self) -> None:
            super().__init__()
            self.mix = torch.randn(8, 8, requires_grad=True) * 0.1

        def extra(self, h: Tensor) -> Tensor:
            return h @ self.mix

    return setup(Model)


@faulty("no_parameters", "not_a_parameter", "frozen")
def model_of_plain_tensors() -> Setup:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = torch.randn(3, 1), torch.zeros(1)

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.weight + self.bias

    return setup(Model)

"""Layers that keep their input alone: a training step, forward and backward, against torch's own layers."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor

from torchcommodity import nn, ops

Layer = torch.nn.Module


def step(layer: Layer, x: Tensor, grad: Tensor) -> Call:
    """One training step, without the optimizer."""
    x, parameters = x.clone().requires_grad_(), list(layer.parameters())
    return lambda: torch.autograd.grad(layer(x), [x, *parameters], grad)


def kept(layer: Layer, x: Tensor) -> int:
    """Bytes that the forward pass keeps for the backward pass, without the parameters."""
    known = {parameter.data_ptr() for parameter in layer.parameters()}
    found: dict[int, int] = {}

    def pack(y: Tensor) -> Tensor:
        storage = y.untyped_storage()
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage.nbytes()
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        layer(x.clone().requires_grad_())
    return sum(found.values())


def row(operator: str, name: str, ours: Layer, theirs: Layer, x: Tensor, call: Callable[[Tensor], Tensor]) -> Row:
    theirs.load_state_dict(dict(zip(theirs.state_dict(), ours.state_dict().values())))
    grad = torch.randn_like(call(x))
    memory = kept(ours, x) / kept(theirs, x)
    return Row(
        operator,
        f"training step, {name}; keeps {memory:.2f} of its bytes",
        lambda: (x,),
        call,
        {"torch.nn": lambda x: step(theirs, x, grad)},
        timed=lambda x: step(ours, x, grad),
        target=1 / 1.15,
    )


def convolution(batch: int, channels: int, outputs: int, *positions: int, kernel: int = 3) -> Row:
    pad = kernel // 2
    fused, plain, norm = {
        1: (nn.ConvBN1d, torch.nn.Conv1d, torch.nn.BatchNorm1d),
        2: (nn.ConvBN2d, torch.nn.Conv2d, torch.nn.BatchNorm2d),
    }[len(positions)]
    ours = fused(channels, outputs, kernel, padding=pad)
    theirs = torch.nn.Sequential(plain(channels, outputs, kernel, padding=pad), norm(outputs))
    x = torch.randn(batch, channels, *positions, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {channels}, {', '.join(map(str, positions))}) to {outputs}, kernel {kernel}"
    return row("conv_bn", name, ours, theirs, x, lambda x: ops.conv_bn(x, ours.conv.weight, padding=pad).output)


def linear(batch: int, features: int, outputs: int) -> Row:
    ours = nn.LinearBNReLU(features, outputs)
    theirs = torch.nn.Sequential(torch.nn.Linear(features, outputs), torch.nn.BatchNorm1d(outputs), torch.nn.ReLU())
    x = torch.randn(batch, features, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {features}) to {outputs}"
    return row("linear_bn_relu", name, ours, theirs, x, lambda x: ops.linear_bn_relu(x, ours.linear.weight).output)


ROWS = (
    convolution(32, 32, 32, 256),
    convolution(64, 16, 16, 252),
    convolution(64, 16, 16, 20, 20),
    convolution(64, 64, 64, 20, 20),
    linear(4096, 64, 64),
    linear(4096, 256, 256),
)

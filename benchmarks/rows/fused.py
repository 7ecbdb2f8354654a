"""Fused layers: a training step, forward and backward, against torch.nn."""

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


def saved_bytes(layer: Layer, x: Tensor) -> int:
    """Bytes that the forward pass saves for the backward pass, without the parameters."""
    parameters = {parameter.data_ptr() for parameter in layer.parameters()}
    saved: dict[int, int] = {}

    def pack(y: Tensor) -> Tensor:
        storage = y.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        layer(x.clone().requires_grad_())
    return sum(saved.values())


def row(operator: str, name: str, fused: Layer, unfused: Layer, x: Tensor, call: Callable[[Tensor], Tensor]) -> Row:
    unfused.load_state_dict(dict(zip(unfused.state_dict(), fused.state_dict().values())))
    grad = torch.randn_like(call(x))
    memory = saved_bytes(fused, x) / saved_bytes(unfused, x)
    return Row(
        operator,
        f"training step, {name}; saves {memory:.2f} of torch's bytes",
        lambda: (x,),
        call,
        {"torch.nn": lambda x: step(unfused, x, grad)},
        timed=lambda x: step(fused, x, grad),
        goal=1 / 1.15,
    )


def convolution(batch: int, channels: int, outputs: int, *positions: int, kernel: int = 3) -> Row:
    pad = kernel // 2
    layer, torch_layer, torch_norm = {
        1: (nn.ConvBN1d, torch.nn.Conv1d, torch.nn.BatchNorm1d),
        2: (nn.ConvBN2d, torch.nn.Conv2d, torch.nn.BatchNorm2d),
    }[len(positions)]
    fused = layer(channels, outputs, kernel, padding=pad)
    unfused = torch.nn.Sequential(torch_layer(channels, outputs, kernel, padding=pad), torch_norm(outputs))
    x = torch.randn(batch, channels, *positions, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {channels}, {', '.join(map(str, positions))}) to {outputs}, kernel {kernel}"
    return row("conv_bn", name, fused, unfused, x, lambda x: ops.conv_bn(x, fused.conv.weight, padding=pad).output)


def linear(batch: int, features: int, outputs: int) -> Row:
    fused = nn.LinearBNReLU(features, outputs)
    unfused = torch.nn.Sequential(torch.nn.Linear(features, outputs), torch.nn.BatchNorm1d(outputs), torch.nn.ReLU())
    x = torch.randn(batch, features, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {features}) to {outputs}"
    return row("linear_bn_relu", name, fused, unfused, x, lambda x: ops.linear_bn_relu(x, fused.linear.weight).output)


ROWS = (
    convolution(32, 32, 32, 256),
    convolution(64, 16, 16, 252),
    convolution(64, 16, 16, 20, 20),
    convolution(64, 64, 64, 20, 20),
    linear(4096, 64, 64),
    linear(4096, 256, 256),
)

"""Fused layers: a training step, forward and backward, against torch.nn; the input is data, or needs a gradient."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from row import Call, Row
from torch import Tensor

from torchcommodity import nn, ops

Layer = torch.nn.Module


def step(layer: Layer, x: Tensor, grad: Tensor, data: bool) -> Call:
    """One training step, without the optimizer."""
    x = x.clone().requires_grad_(not data)
    leaves = [*layer.parameters(), *([] if data else [x])]
    return lambda: torch.autograd.grad(layer(x), leaves, grad)


def saved_bytes(layer: Layer, x: Tensor, data: bool) -> int:
    """Bytes that the forward pass saves for the backward pass, without the parameters."""
    parameters = {parameter.data_ptr() for parameter in layer.parameters()}
    saved: dict[int, int] = {}

    def pack(y: Tensor) -> Tensor:
        storage = y.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return y

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda y: y):
        layer(x.clone().requires_grad_(not data))
    return sum(saved.values())


def rows(
    operator: str, name: str, fused: Layer, unfused: Layer, x: Tensor, call: Callable[[Tensor], Tensor]
) -> tuple[Row, ...]:
    """The product recomputed or saved, each with a gradient for the input and on data."""
    unfused.load_state_dict(dict(zip(unfused.state_dict(), fused.state_dict().values())))
    grad = torch.randn_like(call(x))

    def row(recompute: bool, data: bool) -> Row:
        layer: Any = copy.deepcopy(fused)
        layer.recompute = recompute
        memory = saved_bytes(layer, x, data) / saved_bytes(unfused, x, data)
        task = f"training step{' on data' if data else ''}, {name}, recompute={recompute}"
        products = 2 if data else 3
        return Row(
            operator,
            f"{task}; keeps {memory:.2f} of torch's bytes",
            lambda: (x,),
            call,
            {"torch.nn": lambda x: step(unfused, x, grad, data)},
            timed=lambda x: step(layer, x, grad, data),
            goal=products / (products + 1) if recompute else 0.95,
        )

    return tuple(row(recompute, data) for recompute in (True, False) for data in (False, True))


def convolution(batch: int, channels: int, outputs: int, *positions: int, kernel: int = 3) -> tuple[Row, ...]:
    pad = kernel // 2
    layer, torch_layer, torch_norm = {
        1: (nn.ConvBN1d, torch.nn.Conv1d, torch.nn.BatchNorm1d),
        2: (nn.ConvBN2d, torch.nn.Conv2d, torch.nn.BatchNorm2d),
    }[len(positions)]
    fused = layer(channels, outputs, kernel, padding=pad)
    unfused = torch.nn.Sequential(torch_layer(channels, outputs, kernel, padding=pad), torch_norm(outputs))
    x = torch.randn(batch, channels, *positions, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {channels}, {', '.join(map(str, positions))}) to {outputs}, kernel {kernel}"
    return rows("conv_bn", name, fused, unfused, x, lambda x: ops.conv_bn(x, fused.conv.weight, padding=pad).output)


def linear(batch: int, features: int, outputs: int) -> tuple[Row, ...]:
    fused = nn.LinearBNReLU(features, outputs)
    unfused = torch.nn.Sequential(torch.nn.Linear(features, outputs), torch.nn.BatchNorm1d(outputs), torch.nn.ReLU())
    x = torch.randn(batch, features, generator=torch.Generator().manual_seed(0))
    name = f"({batch}, {features}) to {outputs}"
    return rows("linear_bn_relu", name, fused, unfused, x, lambda x: ops.linear_bn_relu(x, fused.linear.weight).output)


ROWS = (*convolution(32, 32, 32, 256), *convolution(64, 64, 64, 20, 20), *linear(4096, 256, 256))

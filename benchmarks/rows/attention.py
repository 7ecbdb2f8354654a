"""Attention across commodities, against torch's own layer with the same weights and the same missing assets."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor

from torchcommodity import nn


def masked(layer: torch.nn.MultiheadAttention, x: Tensor) -> Tensor:
    """What it takes for torch's layer to do the same: a mask, zeros for the missing, and zeros out of them."""
    missing = x.isnan().any(-1)
    filled = x.masked_fill(missing.unsqueeze(-1), 0.0)
    y = layer(filled, filled, filled, key_padding_mask=missing, need_weights=False)[0]
    return y.masked_fill(missing.unsqueeze(-1), 0.0)


def forward(call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Call]:
    return lambda x: torch.no_grad()(lambda: call(x))


def step(layer: torch.nn.Module, call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Call]:
    """One training step, without the optimizer."""

    def make(x: Tensor) -> Call:
        leaf, parameters = x.clone().requires_grad_(), list(layer.parameters())
        return lambda: torch.autograd.grad(call(leaf).sum(), [leaf, *parameters])

    return make


def pair(rows: int, assets: int, features: int, heads: int) -> tuple[Row, Row]:
    """The forward pass in evaluation, and a training step. One asset in twenty is missing, never all of a row."""
    ours = nn.CrossAssetAttention(features, heads)
    theirs = torch.nn.MultiheadAttention(features, heads, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    evaluated = torch.nn.MultiheadAttention(features, heads, batch_first=True).eval()
    evaluated.load_state_dict(ours.state_dict())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, assets, features, generator=generator)
    missing = torch.rand(rows, assets, generator=generator) < 0.05
    missing[:, 0] = False
    x[missing] = torch.nan
    name = f"({rows}, {assets}, {features}), {heads} heads"
    peer = "nn.MultiheadAttention"
    verb = "nn.CrossAssetAttention"
    return (
        Row(
            "",
            f"{name}, forward",
            lambda: (x,),
            ours,
            {peer: forward(lambda x: masked(evaluated, x))},
            forward(ours),
            verb,
        ),
        Row(
            "",
            f"{name}, forward+backward",
            lambda: (x,),
            ours,
            {peer: step(theirs, lambda x: masked(theirs, x))},
            step(ours, ours),
            verb,
        ),
    )


ROWS = (
    *pair(2016, 5, 8, 2),
    *pair(2016, 20, 32, 4),
    *pair(504, 100, 64, 4),
)

"""`CrossAssetAttention` against `torch.nn.MultiheadAttention` with the same weights and missing assets."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor

from torchcommodity import nn


def masked(layer: torch.nn.MultiheadAttention, x: Tensor) -> Tensor:
    """The same with torch's layer: a mask, and zeros for missing assets before and after."""
    missing = x.isnan().any(-1)
    filled = x.masked_fill(missing.unsqueeze(-1), 0.0)
    y = layer(filled, filled, filled, key_padding_mask=missing, need_weights=False)[0]
    return y.masked_fill(missing.unsqueeze(-1), 0.0)


def forward(call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Call]:
    return lambda x: torch.no_grad()(lambda: call(x))


def step(layer: torch.nn.Module, call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Call]:
    """A training step without the optimizer."""

    def make(x: Tensor) -> Call:
        leaf, parameters = x.clone().requires_grad_(), list(layer.parameters())
        return lambda: torch.autograd.grad(call(leaf).sum(), [leaf, *parameters])

    return make


def rows_of(rows: int, assets: int, features: int, heads: int) -> tuple[Row, Row]:
    """Forward pass in evaluation mode, and a training step. One asset in twenty is missing, never all of a row."""
    layer = nn.CrossAssetAttention(features, heads)
    reference = torch.nn.MultiheadAttention(features, heads, batch_first=True)
    reference.load_state_dict(layer.state_dict())
    reference_eval = torch.nn.MultiheadAttention(features, heads, batch_first=True).eval()
    reference_eval.load_state_dict(layer.state_dict())
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
            layer,
            {peer: forward(lambda x: masked(reference_eval, x))},
            forward(layer),
            verb,
        ),
        Row(
            "",
            f"{name}, forward+backward",
            lambda: (x,),
            layer,
            {peer: step(reference, lambda x: masked(reference, x))},
            step(layer, layer),
            verb,
        ),
    )


ROWS = (
    *rows_of(2016, 5, 8, 2),
    *rows_of(2016, 20, 32, 4),
    *rows_of(504, 100, 64, 4),
)

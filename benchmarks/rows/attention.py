"""`CrossAssetAttention` against `torch.nn.MultiheadAttention` with the same weights and missing assets."""

from collections.abc import Callable

import torch
from row import Call, Row
from torch import Tensor

from torchcommodity import nn


def masked_attention(layer: torch.nn.MultiheadAttention, x: Tensor) -> Tensor:
    """`CrossAssetAttention` with torch's layer: missing assets are masked, and zero before and after."""
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


def make_rows(rows: int, assets: int, features: int, heads: int) -> tuple[Row, Row]:
    """Forward pass in evaluation mode, and a training step. One asset in twenty is missing, never a whole row."""
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
    title = "nn.CrossAssetAttention"
    return (
        Row(
            "",
            f"{name}, forward",
            lambda: (x,),
            layer,
            {peer: forward(lambda x: masked_attention(reference_eval, x))},
            forward(layer),
            title,
        ),
        Row(
            "",
            f"{name}, forward+backward",
            lambda: (x,),
            layer,
            {peer: step(reference, lambda x: masked_attention(reference, x))},
            step(layer, layer),
            title,
        ),
    )


ROWS = (
    *make_rows(2016, 5, 8, 2),
    *make_rows(2016, 20, 32, 4),
    *make_rows(504, 100, 64, 4),
)

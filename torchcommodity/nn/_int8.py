"""Weights in eight bits: stored as whole numbers with one scale a row, and made floating point where they are used."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchcommodity.nn._recurrent import LLTM, LSTM
from torchcommodity.opkit.arguments import raise_invalid


class Int8(nn.Module):
    """Parametrization of a weight by int8 numbers (rows, columns) and the scale (rows, 1) of each row.

        weight = scale * numbers,   scale = max |weight| of the row / 127

    The error of a weight is at most half its row's scale. For layers whose kernels read weights in floating point, as
    recurrent ones do; nothing is kept of the weight but the numbers and the scales.

    Example:
        >>> import torch
        >>> numbers, scale = Int8().right_inverse(torch.tensor([[1.27, -0.5], [0.0, 0.0]]))
        >>> numbers
        tensor([[127, -50],
                [  0,   0]], dtype=torch.int8)
    """

    def forward(self, numbers: Tensor, scale: Tensor) -> Tensor:
        return numbers.to(scale.dtype) * scale

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        scale = weight.abs().amax(-1, keepdim=True) / 127
        scale = torch.where(scale > 0, scale, 1.0)
        return (weight / scale).round().to(torch.int8), scale


@torch.no_grad()
def to_int8(layer: nn.Module, name: str) -> None:
    """Store the weight `name` of a layer, of two axes, in eight bits from now on; it no longer learns.

    Raises:
        ValueError: the weight does not have two axes, or is not finite.

    Example:
        >>> layer = LSTM(3, 5)
        >>> to_int8(layer, "weight_hh_l0")
        >>> layer.parametrizations.weight_hh_l0.original0.dtype
        torch.int8
    """
    weight = getattr(layer, name)
    if weight.dim() != 2 or not torch.isfinite(weight).all():
        raise_invalid("to_int8", "a weight must be finite, of two axes", weight=weight)
    weight.requires_grad_(False)
    parametrize.register_parametrization(layer, name, Int8(), unsafe=True)


def recurrent_weights(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """Every matrix of the recurrent layers inside a module, as layer and name."""
    layers = [layer for layer in module.modules() if isinstance(layer, LSTM | LLTM)]
    return [(layer, name) for layer in layers for name, x in layer.named_parameters(recurse=False) if x.dim() == 2]

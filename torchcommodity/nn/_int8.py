"""Weight-only int8 quantization: integers with one scale per row, dequantized on use."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torchcommodity.nn._recurrent import LLTM, LSTM
from torchcommodity.opkit.arguments import raise_invalid


class Int8(nn.Module):
    """Parametrization of a weight by int8 integers (rows, columns) and one scale per row (rows, 1).

        weight = scale * integers,   scale = max |weight| of the row / 127

    The error of a weight is at most half the scale of its row. For layers whose kernels need floating-point weights,
    such as the recurrent ones.

    Example:
        >>> import torch
        >>> integers, scale = Int8().right_inverse(torch.tensor([[1.27, -0.5], [0.0, 0.0]]))
        >>> integers
        tensor([[127, -50],
                [  0,   0]], dtype=torch.int8)
    """

    def forward(self, integers: Tensor, scale: Tensor) -> Tensor:
        """Dequantize."""
        return integers.to(scale.dtype) * scale

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Quantize: integers and scale."""
        scale = weight.abs().amax(-1, keepdim=True) / 127
        scale = torch.where(scale > 0, scale, 1.0)
        return (weight / scale).round().to(torch.int8), scale


@torch.no_grad()
def to_int8(layer: nn.Module, name: str) -> None:
    """Replace a weight matrix by int8 integers and scales, in place; it is no longer trained.

    Args:
        layer: the layer that owns the weight.
        name: attribute of the weight matrix.

    Raises:
        ValueError: the weight is not a matrix, or not finite.

    Example:
        >>> layer = LSTM(3, 5)
        >>> to_int8(layer, "weight_hh_l0")
        >>> layer.parametrizations.weight_hh_l0.original0.dtype
        torch.int8
    """
    weight = getattr(layer, name)
    if weight.dim() != 2 or not torch.isfinite(weight).all():
        raise_invalid("to_int8", "weight must be a finite matrix", weight=weight)
    weight.requires_grad_(False)
    parametrize.register_parametrization(layer, name, Int8(), unsafe=True)


def recurrent_weights(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """List the weight matrices of all `LSTM` and `LLTM` layers inside a module, as (layer, name).

    Example:
        >>> [name for _, name in recurrent_weights(LSTM(3, 5))]
        ['weight_ih_l0', 'weight_hh_l0']
    """
    layers = [layer for layer in module.modules() if isinstance(layer, LSTM | LLTM)]
    return [(layer, name) for layer in layers for name, x in layer.named_parameters(recurse=False) if x.dim() == 2]

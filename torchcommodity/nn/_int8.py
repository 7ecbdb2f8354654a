"""Weight-only int8 quantization: integers with one scale per row, dequantized on use."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from torch_opkit.arguments import raise_invalid


class Int8(nn.Module):
    """Parametrization of a weight by int8 integers (rows, ...) and one scale per row (rows, 1, ...).

        weight = scale * integers,   scale = max |weight| of the row / 127

    A row is the first axis: an output of a linear or recurrent layer, a channel of a convolution, an entry of an
    embedding. The error of a weight is at most half the scale of its row. For layers whose kernels need floating-point
    weights.

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
        scale = weight.abs().amax(tuple(range(1, weight.dim())), keepdim=True) / 127
        scale = torch.where(scale > 0, scale, 1.0)
        return (weight / scale).round().to(torch.int8), scale


@torch.no_grad()
def to_int8(layer: nn.Module, name: str) -> None:
    """Replace a weight of two or more axes by int8 integers and scales, in place; it is no longer trained.

    Args:
        layer: the layer that owns the weight, of torch or of this package.
        name: attribute of the weight.

    Raises:
        ValueError: the weight has fewer than two axes, no entries, or is not finite.

    Example:
        >>> layer = nn.LSTM(3, 5)
        >>> to_int8(layer, "weight_hh_l0")
        >>> layer.parametrizations.weight_hh_l0.original0.dtype
        torch.int8
    """
    weight = getattr(layer, name)
    if weight.dim() < 2 or not weight.numel() or not torch.isfinite(weight).all():
        raise_invalid("to_int8", "weight must be finite and have two or more axes", weight=weight)
    weight.requires_grad_(False)
    parametrize.register_parametrization(layer, name, Int8(), unsafe=True)

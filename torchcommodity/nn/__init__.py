"""Layers that own parameters: thin objects over `ops`."""

from torchcommodity.nn.fused import ConvBN1d as ConvBN1d
from torchcommodity.nn.fused import ConvBN2d as ConvBN2d
from torchcommodity.nn.fused import LinearBNReLU as LinearBNReLU

__all__ = ["ConvBN1d", "ConvBN2d", "LinearBNReLU"]
